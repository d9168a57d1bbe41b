#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"

// Words: number of ids, rows of out, rows of a part, word of the view of the ids; the
// step between rows of out in elements and in blocks, two zeros; those of walk.glsl
// for a row of out, a row of x and the first row of a part, parts being an axis; then
// views of the ids and of the rows of x that belong to them (offset 0).
//
// An invocation owns some columns of some consecutive rows and adds what belongs
// there in the order of the ids, so no two touch one element and equal launches give
// equal bits.

#define TENSORS 3
#define WALK 2u
#include "walk.glsl"

layout(set = 0, binding = 1, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) readonly buffer X4 { vec4 x4[]; };
layout(set = 0, binding = 2, std430) readonly buffer Ids { int ids[]; };
layout(set = 0, binding = 3, std430) buffer Out { float result[]; };
layout(set = 0, binding = 3, std430) buffer Out4 { vec4 result4[]; };

uint element(uint v, uint r, uint i) {
    uint index = VIEW_OFFSET(v);
    for (uint d = r; d-- > 0u;) {
        uint c = i;
        if (d > 0u) {
            uint s = VIEW_SHAPE(v, d);
            i = c / s;
            c -= i * s;
        }
        index += c * VIEW_STRIDE(v, r, d);
    }
    return index;
}

// EACH does BODY for every id of the part, with from where its row of x begins. Ids on
// one axis come eight at a time, as llvmpipe counts rounds: see reduce.comp.
#define EACH(PART, BODY) { \
    uint n = sizes.x, i = 0u; \
    uint part = PART; \
    uint to = min(part + sizes.z, sizes.y); \
    if (axes == 1u) { \
        for (; i + 8u <= n; i += 8u) { \
            [[unroll]] for (uint u = 0u; u < 8u; u++) { \
                uint id = uint(ids[begin + (i + u) * idStep]); \
                uint from = (i + u) * xStep; \
                if (id >= part && id < to) { BODY } \
            } \
        } \
    } \
    for (; i < n; i++) { \
        uint id = uint(ids[element(vi, axes, i)]); \
        uint from = element(vj, axes, i); \
        if (id >= part && id < to) { BODY } \
    } }

void main() {
    uint i = item();
    if (i >= head.z) {
        return;
    }
    uvec4 sizes = info4[0];
    uvec4 row = info4[1];
    uint vi = sizes.w;
    uint axes = info[vi];
    uint vj = vi + VIEW_WORDS(axes);
    uint begin = VIEW_OFFSET(vi);
    uint idStep = axes == 1u ? VIEW_STRIDE(vi, 1u, 0u) : 0u;
    uint xStep = axes == 1u ? VIEW_STRIDE(vj, 1u, 0u) : 0u;
    uint length = walk(i);
    uint run = blocks ? length : 0u;
    for (uint k = 0u; k < run; k++) {
        EACH(at[2], result4[at[0] + k + id * row.y] += x4[at[1] + k + from / 4u];)
    }
    run = singles(i, length);
    for (uint k = 0u; k < run; k++) {
        EACH(at[2] + k * steps.z, result[at[0] + k * steps.x + id * row.x] += x[at[1] + k * steps.y + from];)
    }
}
