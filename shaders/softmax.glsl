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

layout(set = 0, binding = 1, std430) readonly buffer X { uvec4 x[]; };
#ifdef LABELS
layout(set = 0, binding = 2, std430) readonly buffer Labels { int labels[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Out { vec4 result[]; };
#else
layout(set = 0, binding = 2, std430) writeonly buffer Out { vec4 result[]; };
#endif

// exp4 is expf of four.
vec4 exp4(vec4 v) {
    return mix(exp(v), vec4(0.0), equal(floatBitsToUint(v), uvec4(0xff800000u)));
}

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
    uint fours = info[5] == 0u ? 0u : count >> 2u;
    uint ix4 = ix >> 2u;
    uint begin = 4u * fours + lane; // of single elements

    // The greatest as a signed number, the least and greatest as unsigned ones: from
    // these follow the maximum and whether there is a NaN.
    ivec4 tops = ivec4(0x80000000);
    uvec4 leasts = uvec4(0xffffffffu);
    uvec4 mosts = uvec4(0u);
    for (uint i = lane; i < fours; i += lanes) {
        uvec4 v = x[ix4 + i];
        tops = max(tops, ivec4(v));
        leasts = min(leasts, v);
        mosts = max(mosts, v);
    }
    for (uint i = begin; i < count; i += lanes) {
        uint v = ELEMENT(x, ix + i * xs);
        tops.x = max(tops.x, int(v));
        leasts.x = min(leasts.x, v);
        mosts.x = max(mosts.x, v);
    }
    int top = max(max(tops.x, tops.y), max(tops.z, tops.w));
    uint least = min(min(leasts.x, leasts.y), min(leasts.z, leasts.w));
    uint last = max(max(mosts.x, mosts.y), max(mosts.z, mosts.w));
    uint key = 0u;
    if (least <= last) { // there were any
        key = top > int(INF) || last > (INF | 0x80000000u) ? 0xffffffffu : orderKey(top >= 0 ? uint(top) : least);
    }
    key = maxLanes(key, lanes, lane);
    // A NaN or an infinite maximum makes the row NaN.
    bool bad = key == 0xffffffffu || key <= 0x007fffffu || key == (INF | 0x80000000u);
    float most = uintBitsToFloat(fromKey(key));
    Sum s = Sum(0.0, 0.0);
    for (uint i = lane; i < fours; i += lanes) {
        vec4 e = exp4(uintBitsToFloat(x[ix4 + i]) - most);
        add(s, (e.x + e.y) + (e.z + e.w));
    }
    for (uint i = begin; i < count; i += lanes) {
        add(s, expf(uintBitsToFloat(ELEMENT(x, ix + i * xs)) - most));
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
                uint b = ELEMENT(x, ix + uint(label) * xs);
                loss = bad ? uintBitsToFloat(QNAN) : b == 0xff800000u ? uintBitsToFloat(INF) :
                    logf(total) + (most - uintBitsToFloat(b));
            }
            ELEMENT(result, io) = loss;
        }
        return;
    }
    float scale = uintBitsToFloat(info[6]);
#endif
    for (uint i = lane; i < fours; i += lanes) {
        vec4 p = exp4(uintBitsToFloat(x[ix4 + i]) - most) / total;
        if (bad) {
            p = vec4(uintBitsToFloat(QNAN));
        }
#ifdef LABELS
        p -= vec4(equal(uvec4(4u * i) + uvec4(0u, 1u, 2u, 3u), uvec4(label)));
        p = known ? p * scale : vec4(0.0);
#endif
        result[(io >> 2u) + i] = p;
    }
    for (uint i = begin; i < len; i += lanes) {
        float p = expf(uintBitsToFloat(ELEMENT(x, ix + i * xs)) - most) / total;
        if (bad) {
            p = uintBitsToFloat(QNAN);
        }
#ifdef LABELS
        if (i == uint(label)) {
            p -= 1.0;
        }
        p = known ? p * scale : 0.0;
#endif
        ELEMENT(result, io + i * os) = p;
    }
}
