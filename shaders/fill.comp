#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"

// Words: value, three zeros, and those of walk.glsl for out. The value is a bit
// pattern, so every 32-bit element type is served and no NaN loses its payload.

#define TENSORS 1
#define WALK 1u
#include "walk.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;

layout(set = 0, binding = 1, std430) writeonly buffer Out { uint result[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Out4 { uvec4 result4[]; };

void main() {
    uvec4 work = info4[WALK];
    uint g = linearGroup();
    if (g >= work.x) {
        return;
    }
    uint value = info[0];
    uint first = g * work.y + gl_LocalInvocationID.x;
    uint last = min(g * work.y + work.y, work.z);
    for (uint e = first; e < last; e += gl_WorkGroupSize.x) {
        uint run = walk(e, BLOCKS);
        for (uint k = 0u; k < run; k++) {
            result4[at[0] + k] = uvec4(value);
        }
    }
    uint hop = info4[WALK + 5u].x;
    last = min(g * work.y + work.y, work.w);
    for (uint e = first; e < last; e += gl_WorkGroupSize.x) {
        uint run = walk(e, SINGLES);
        for (uint k = 0u; k < run; k++) {
            result[at[0] + k * hop] = value;
        }
    }
}
