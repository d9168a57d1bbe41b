#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"

// Words: number of ids, columns, rows of out, rows per part, parts, step between
// rows of out, then the views out and x over the columns, and ids and x (offset 0)
// over the ids.
//
// An invocation owns one column of some consecutive rows and adds what belongs
// there in the order of the ids, so no two touch one element and equal launches
// give equal bits.

layout(local_size_x = 64, local_size_x_id = 0) in;

layout(set = 0, binding = 1, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 2, std430) readonly buffer Ids { int ids[]; };
layout(set = 0, binding = 3, std430) buffer Out { float result[]; };

uint walk(uint v, uint r, uint i) {
    uint at = VIEW_OFFSET(v);
    for (uint d = r; d-- > 0u;) {
        uint c = i;
        if (d > 0u) {
            uint s = VIEW_SHAPE(v, d);
            i = c / s;
            c -= i * s;
        }
        at += c * VIEW_STRIDE(v, r, d);
    }
    return at;
}

void main() {
    uint n = info[0];
    uint columns = info[1];
    uint e = linearGroup() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    uint part = e / columns;
    uint column = e - part * columns;
    if (part >= info[4]) {
        return;
    }
    uint from = part * info[3];
    uint to = min(from + info[3], info[2]);
    uint vo = 6u;
    uint rc = info[vo];
    uint vx = vo + VIEW_WORDS(rc);
    uint vi = vx + VIEW_WORDS(rc);
    uint ri = info[vi];
    uint vj = vi + VIEW_WORDS(ri);
    uint io = walk(vo, rc, column);
    uint ix = walk(vx, rc, column);
    uint i = 0u;
    if (ri == 1u) { // eight at a time, as llvmpipe counts rounds: see reduce.comp
        uint at = VIEW_OFFSET(vi);
        uint ids1 = VIEW_STRIDE(vi, 1u, 0u);
        uint xs = VIEW_STRIDE(vj, 1u, 0u);
        for (; i + 8u <= n; i += 8u) {
            [[unroll]] for (uint k = 0u; k < 8u; k++) {
                uint id = uint(ids[at + (i + k) * ids1]);
                if (id >= from && id < to) {
                    result[io + id * info[5]] += x[ix + (i + k) * xs];
                }
            }
        }
    }
    for (; i < n; i++) {
        uint id = uint(ids[walk(vi, ri, i)]);
        if (id >= from && id < to) {
            result[io + id * info[5]] += x[ix + walk(vj, ri, i)];
        }
    }
}
