#version 450
#extension GL_GOOGLE_include_directive : require
#include "info.glsl"

// Words: n, elements per invocation, rows of the table, step between them, then
// views out, table (its row aside) and ids, all of out's shape.

layout(local_size_x = 64, local_size_x_id = 0) in;

layout(set = 0, binding = 1, std430) readonly buffer Table { uint table[]; };
layout(set = 0, binding = 2, std430) readonly buffer Ids { int ids[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Out { uint result[]; };

void main() {
    uint n = info[0];
    uint chunk = gl_WorkGroupSize.x * info[1];
    uint rows = info[2];
    uint g = linearGroup();
    if (g > (n - 1u) / chunk) {
        return;
    }
    uint vo = 4u;
    uint r = info[vo];
    uint vt = vo + VIEW_WORDS(r);
    uint vi = vt + VIEW_WORDS(r);
    uint last = min(n - g * chunk, chunk);
    for (uint e = gl_LocalInvocationID.x; e < last; e += gl_WorkGroupSize.x) {
        uint i = g * chunk + e;
        uint io = VIEW_OFFSET(vo);
        uint it = VIEW_OFFSET(vt);
        uint ii = VIEW_OFFSET(vi);
        for (uint d = r; d-- > 0u;) {
            uint c = i;
            if (d > 0u) {
                uint s = VIEW_SHAPE(vo, d);
                i = c / s;
                c -= i * s;
            }
            io += c * VIEW_STRIDE(vo, r, d);
            it += c * VIEW_STRIDE(vt, r, d);
            ii += c * VIEW_STRIDE(vi, r, d);
        }
        uint id = uint(ids[ii]); // negative ones become larger than any row
        uint v = 0u;
        if (id < rows) {
            v = table[it + id * info[3]];
        }
        result[io] = v;
    }
}
