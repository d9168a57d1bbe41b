#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"

// Words: value, three zeros, and those of walk.glsl for out. The value is a bit
// pattern, so every 32-bit element type is served and no NaN loses its payload.

#define TENSORS 1
#define WALK 1u
#include "walk.glsl"

layout(set = 0, binding = 1, std430) writeonly buffer Out { uint result[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Out4 { uvec4 result4[]; };

void main() {
    uint i = item();
    if (i >= head.z) {
        return;
    }
    uint value = info[0];
    uint length = walk(i);
    uint run = blocks ? length : 0u;
    for (uint k = 0u; k < run; k++) {
        result4[at[0] + k] = uvec4(value);
    }
    run = singles(i, length);
    for (uint k = 0u; k < run; k++) {
        result[at[0] + k * steps.x] = value;
    }
}
