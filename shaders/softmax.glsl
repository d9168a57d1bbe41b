// OP mirrors the constants of rows.go: 1 cross entropy, 2 its gradient.
// Parameter: the scale of the gradient.
layout(constant_id = 2) const uint OP = 0u;

#define PARAMS 1u
#ifdef LABELS
#define TENSORS 3u
#else
#define TENSORS 2u
#endif
#include "rows.glsl"

layout(set = 0, binding = 1, std430) readonly buffer X { uint x[]; };
#ifdef LABELS
layout(set = 0, binding = 2, std430) readonly buffer Labels { int labels[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Out { float result[]; };
#else
layout(set = 0, binding = 2, std430) writeonly buffer Out { float result[]; };
#endif

void main() {
    uint rows = info[0];
    uint len = info[1];
    uint lanes = info[2];
    uint xs = info[3];
    uint os = info[4];
    uint lid = gl_LocalInvocationID.x;
    uint lane = lid % lanes;
    uint row = linearGroup() * (gl_WorkGroupSize.x / lanes) + lid / lanes;
    bool live = row < rows;
    setRow(row);
    uint io = rowBase[0];
    uint ix = rowBase[1];
    uint count = live ? len : 0u;

    uint key = 0u;
    for (uint i = lane; i < count; i += lanes) {
        key = max(key, orderKey(x[ix + i * xs]));
    }
    key = maxLanes(key, lanes, lane);
    // A NaN or an infinite maximum makes the row NaN.
    bool bad = key == 0xffffffffu || key <= 0x007fffffu || key == (INF | 0x80000000u);
    float most = uintBitsToFloat(fromKey(key));
    Sum s = Sum(0.0, 0.0);
    for (uint i = lane; i < count; i += lanes) {
        add(s, expf(uintBitsToFloat(x[ix + i * xs]) - most));
    }
    float total = sumLanes(s, lanes, lane);
    if (!live) {
        return; // after the last barrier
    }
#ifdef LABELS
    int label = labels[rowBase[2]];
    bool known = label >= 0 && uint(label) < len;
    if (OP == 1u) {
        if (lane == 0u) {
            float loss = 0.0;
            if (known) {
                uint b = x[ix + uint(label) * xs];
                loss = bad ? uintBitsToFloat(QNAN) : b == 0xff800000u ? uintBitsToFloat(INF) :
                    logf(total) + (most - uintBitsToFloat(b));
            }
            result[io] = loss;
        }
        return;
    }
    float scale = uintBitsToFloat(info[5]);
#endif
    for (uint i = lane; i < len; i += lanes) {
        float p = expf(uintBitsToFloat(x[ix + i * xs]) - most) / total;
        if (bad) {
            p = uintBitsToFloat(QNAN);
        }
#ifdef LABELS
        if (i == uint(label)) {
            p -= 1.0;
        }
        p = known ? p * scale : 0.0;
#endif
        result[io + i * os] = p;
    }
}
