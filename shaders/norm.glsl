// Layer norm (LAYER) and RMS norm. Parameters: epsilon, and the steps of weight
// and bias along the row.
#define PARAMS 3u
#define TENSORS 4u
#include "rows.glsl"

// The views are out, x, weight, bias; RMS norm gives weight's again as bias's.
layout(set = 0, binding = 1, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 2, std430) readonly buffer W { float weight[]; };
#ifdef LAYER
layout(set = 0, binding = 3, std430) readonly buffer B { float bias[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Out { float result[]; };
#else
layout(set = 0, binding = 3, std430) writeonly buffer Out { float result[]; };
#endif

void main() {
    uint rows = info[0];
    uint len = info[1];
    uint lanes = info[2];
    uint xs = info[3];
    uint os = info[4];
    float eps = uintBitsToFloat(info[5]);
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

    float mean = 0.0;
#ifdef LAYER
    Sum m = Sum(0.0, 0.0);
    for (uint i = lane; i < count; i += lanes) {
        add(m, x[ix + i * xs]);
    }
    mean = sumLanes(m, lanes, lane) / float(len);
#endif
    Sum q = Sum(0.0, 0.0);
    for (uint i = lane; i < count; i += lanes) {
        float v = x[ix + i * xs] - mean;
        add(q, v * v);
    }
    float scale = inversesqrt(sumLanes(q, lanes, lane) / float(len) + eps);
    if (!live) {
        return; // after the last barrier
    }
    for (uint i = lane; i < len; i += lanes) {
        float y = (x[ix + i * xs] - mean) * scale * weight[iw + i * info[6]];
#ifdef LAYER
        y += bias[ib + i * info[7]];
#endif
        result[io + i * os] = y;
    }
}
