#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"
#include "half.glsl"

// gather.comp with a table of float16. Words: the same; the table counts in halves.

#define TENSORS 3
#define WALK 1u
#include "walk.glsl"

layout(set = 0, binding = 1, std430) readonly buffer Table { uint table[]; };
layout(set = 0, binding = 1, std430) readonly buffer Table4 { uvec2 table4[]; };
layout(set = 0, binding = 2, std430) readonly buffer Ids { int ids[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Out { uint result[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Out4 { uvec4 result4[]; };

void main() {
    uint i = item();
    if (i >= head.z) {
        return;
    }
    uvec4 rows = info4[0];
    uint length = walk(i);
    uint run = blocks ? length : 0u;
    uint id = 0u;
    if (blocks) {
        id = uint(ids[at[2]]); // negative ones become larger than any row
    }
    uint from = at[1] + id * rows.z;
    bool inside = id < rows.x;
    for (uint k = 0u; k < run; k++) {
        uvec2 v = uvec2(0u);
        if (inside) {
            v = table4[from + k];
        }
        result4[at[0] + k] = fromHalves(v);
    }
    run = singles(i, length);
    for (uint k = 0u; k < run; k++) {
        uint id = uint(ids[at[2] + k * steps.z]);
        uint v = 0u;
        if (id < rows.x) {
            uint j = at[1] + k * steps.y + id * rows.y;
            v = fromHalf(uvec4(HALF(table, j))).x;
        }
        result[at[0] + k * steps.x] = v;
    }
}
