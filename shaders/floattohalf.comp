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

layout(local_size_x = 64, local_size_x_id = 0) in;

layout(set = 0, binding = 1, std430) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1, std430) readonly buffer X4 { uvec4 x4[]; };
layout(set = 0, binding = 2, std430) buffer Out { uint result[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Out4 { uvec2 result4[]; };

void main() {
    uvec4 work = info4[WALK];
    uint g = linearGroup();
    if (g >= work.x) {
        return;
    }
    uint first = g * work.y + gl_LocalInvocationID.x;
    uint last = min(g * work.y + work.y, work.z);
    for (uint e = first; e < last; e += gl_WorkGroupSize.x) {
        uint run = walk(e, BLOCKS);
        for (uint k = 0u; k < run; k++) {
            result4[at[0] + k] = toHalves(x4[at[1] + k]);
        }
    }
    uvec4 steps = info4[WALK + 5u];
    last = min(g * work.y + work.y, work.w);
    for (uint e = first; e < last; e += gl_WorkGroupSize.x) {
        uint run = walk(e, SINGLES);
        for (uint k = 0u; k < run; k++) {
            uint i = at[0] + k * steps.x;
            uint h = toHalf(x[at[1] + k * steps.y]);
            uint shift = 16u * (i & 1u);
            atomicAnd(result[i >> 1u], 0xffff0000u >> shift);
            atomicOr(result[i >> 1u], h << shift);
        }
    }
}
