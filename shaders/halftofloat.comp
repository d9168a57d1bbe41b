#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"
#include "half.glsl"

// Words: those of walk.glsl for out and x, which counts in halves.

#define TENSORS 2
#define WALK 0u
#include "walk.glsl"

layout(set = 0, binding = 1, std430) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1, std430) readonly buffer X4 { uvec2 x4[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Out { uint result[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Out4 { uvec4 result4[]; };

void main() {
    uint i = item();
    if (i >= head.z) {
        return;
    }
    uint length = walk(i);
    uint run = blocks ? length : 0u;
    bool whole = !splat(1u);
    uvec2 v = uvec2(0u);
    if (!whole) {
        v = uvec2(HALF(x, at[1]) * 0x10001u);
    }
    for (uint k = 0u; k < run; k++) {
        if (whole) {
            v = x4[at[1] + k];
        }
        result4[at[0] + k] = fromHalves(v);
    }
    run = singles(i, length);
    for (uint k = 0u; k < run; k++) {
        uint j = at[1] + k * steps.y;
        result[at[0] + k * steps.x] = fromHalf(uvec4(HALF(x, j))).x;
    }
}
