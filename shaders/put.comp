#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"

// Words: rows of out, elements and blocks from one to the next, offset of the position,
// and those of walk.glsl for out, x and the row number, all of x's shape. A run of
// blocks has one row number.

#define TENSORS 3
#define WALK 1u
#include "walk.glsl"

layout(set = 0, binding = 1, std430) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1, std430) readonly buffer X4 { uvec4 x4[]; };
layout(set = 0, binding = 2, std430) readonly buffer Position { int position[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Out { uint result[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Out4 { uvec4 result4[]; };

void main() {
    uint i = item();
    if (i >= head.z) {
        return;
    }
    uvec4 rows = info4[0];
    uint begin = uint(position[rows.w]); // a negative one wraps far beyond the rows
    uint length = walk(i);
    uint run = blocks ? length : 0u;
    if (begin + at[2] >= rows.x) {
        run = 0u;
    }
    uint to = at[0] + begin * rows.z;
    for (uint k = 0u; k < run; k++) {
        result4[to + k] = x4[at[1] + k];
    }
    run = singles(i, length);
    for (uint k = 0u; k < run; k++) {
        if (begin + at[2] + k * steps.z < rows.x) {
            result[at[0] + k * steps.x + begin * rows.y] = x[at[1] + k * steps.y];
        }
    }
}
