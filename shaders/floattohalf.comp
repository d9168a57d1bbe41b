#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"
#include "half.glsl"

// Words: those of walk.glsl for out, which counts in halves, and x.
//
// A single half shares its word with another one, which somebody else may be writing:
// each takes its own bits away and puts its own there, neither of which the other sees.

#define TENSORS 2
#define WALK 0u
#include "walk.glsl"

layout(set = 0, binding = 1, std430) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1, std430) readonly buffer X4 { uvec4 x4[]; };
layout(set = 0, binding = 2, std430) buffer Out { uint result[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Out4 { uvec2 result4[]; };

void main() {
    uint i = item();
    if (i >= head.z) {
        return;
    }
    uint length = walk(i);
    uint run = blocks ? length : 0u;
    bool whole = !splat(1u);
    uvec4 v = uvec4(0u);
    if (!whole) {
        v = uvec4(x[at[1]]);
    }
    for (uint k = 0u; k < run; k++) {
        if (whole) {
            v = x4[at[1] + k];
        }
        result4[at[0] + k] = toHalves(v);
    }
    run = singles(i, length);
    for (uint k = 0u; k < run; k++) {
        uint j = at[0] + k * steps.x;
        uint h = toHalf(uvec4(x[at[1] + k * steps.y])).x;
        uint shift = 16u * (j & 1u);
        atomicAnd(result[j >> 1u], 0xffff0000u >> shift);
        atomicOr(result[j >> 1u], h << shift);
    }
}
