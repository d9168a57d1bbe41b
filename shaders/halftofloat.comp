#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"
#include "half.glsl"

// Words: those of walk.glsl for out and x, which counts in halves.

#define TENSORS 2
#define WALK 0u
#include "walk.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;

layout(set = 0, binding = 1, std430) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1, std430) readonly buffer X4 { uvec2 x4[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Out { uint result[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Out4 { uvec4 result4[]; };

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
            result4[at[0] + k] = fromHalves(x4[at[1] + k]);
        }
    }
    uvec4 steps = info4[WALK + 5u];
    last = min(g * work.y + work.y, work.w);
    for (uint e = first; e < last; e += gl_WorkGroupSize.x) {
        uint run = walk(e, SINGLES);
        for (uint k = 0u; k < run; k++) {
            uint i = at[1] + k * steps.y;
            result[at[0] + k * steps.x] = fromHalf(HALF(x, i));
        }
    }
}
