// Layer norm (LAYER) and RMS norm. Parameters: epsilon, and the steps of weight
// and bias along the row.
#define PARAMS 3u
#define TENSORS 4u
#include "rows.glsl"

// The views are out, x, weight, bias; RMS norm gives weight's again as bias's.
layout(set = 0, binding = 1, std430) readonly buffer X { vec4 x[]; };
layout(set = 0, binding = 2, std430) readonly buffer W { vec4 weight[]; };
#ifdef LAYER
layout(set = 0, binding = 3, std430) readonly buffer B { vec4 bias[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Out { vec4 result[]; };
#else
layout(set = 0, binding = 3, std430) writeonly buffer Out { vec4 result[]; };
#endif

void main() {
    uint rows = info[0];
    uint len = info[1];
    uint lanes = info[2];
    uint xs = info[3];
    uint os = info[4];
    float eps = uintBitsToFloat(info[6]);
    uint lid = gl_LocalInvocationID.x;
    uint lane = lid % lanes;
    uint row = linearGroup() * (gl_WorkGroupSize.x / lanes) + lid / lanes;
    bool live = row < rows;
    setRow(row);
    uint io = rowBase[0];
    uint ix = rowBase[1];
    uint iw = rowBase[2];
    uint ib = rowBase[3];
    uint count = live ? len : 0u;

    uint fours = info[5] == 0u ? 0u : count >> 2u;
    uint ix4 = ix >> 2u;
    uint begin = 4u * fours + lane; // of single elements

    float mean = 0.0;
#ifdef LAYER
    Sum m = Sum(0.0, 0.0);
    for (uint i = lane; i < fours; i += lanes) {
        vec4 v = x[ix4 + i];
        add(m, (v.x + v.y) + (v.z + v.w));
    }
    for (uint i = begin; i < count; i += lanes) {
        add(m, ELEMENT(x, ix + i * xs));
    }
    mean = sumLanes(m, lanes, lane) / float(len);
#endif
    Sum q = Sum(0.0, 0.0);
    for (uint i = lane; i < fours; i += lanes) {
        vec4 v = x[ix4 + i] - mean;
        v *= v;
        add(q, (v.x + v.y) + (v.z + v.w));
    }
    for (uint i = begin; i < count; i += lanes) {
        float v = ELEMENT(x, ix + i * xs) - mean;
        add(q, v * v);
    }
    float scale = inversesqrt(sumLanes(q, lanes, lane) / float(len) + eps);
    if (!live) {
        return; // after the last barrier
    }
    for (uint i = lane; i < fours; i += lanes) {
        vec4 y = (x[ix4 + i] - mean) * scale * weight[(iw >> 2u) + i];
#ifdef LAYER
        y += bias[(ib >> 2u) + i];
#endif
        result[(io >> 2u) + i] = y;
    }
    for (uint i = begin; i < len; i += lanes) {
        float y = (ELEMENT(x, ix + i * xs) - mean) * scale * ELEMENT(weight, iw + i * info[7]);
#ifdef LAYER
        y += ELEMENT(bias, ib + i * info[8]);
#endif
        ELEMENT(result, io + i * os) = y;
    }
}
