#version 450
#extension GL_GOOGLE_include_directive : require
#include "info.glsl"

// Words: n, elements per invocation, rows of out, step between them, offset of the
// position, then views out, x, and the row number, all of x's shape.

layout(local_size_x = 64, local_size_x_id = 0) in;

layout(set = 0, binding = 1, std430) readonly buffer X { uint x[]; };
layout(set = 0, binding = 2, std430) readonly buffer Position { int position[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Out { uint result[]; };

void main() {
    uint n = info[0];
    uint chunk = gl_WorkGroupSize.x * info[1];
    uint rows = info[2];
    uint g = linearGroup();
    if (g > (n - 1u) / chunk) {
        return;
    }
    uint first = uint(position[info[4]]);
    uint vo = 5u;
    uint r = info[vo];
    uint vx = vo + VIEW_WORDS(r);
    uint vc = vx + VIEW_WORDS(r);
    uint last = min(n - g * chunk, chunk);
    for (uint e = gl_LocalInvocationID.x; e < last; e += gl_WorkGroupSize.x) {
        uint i = g * chunk + e;
        uint io = VIEW_OFFSET(vo);
        uint ix = VIEW_OFFSET(vx);
        uint row = VIEW_OFFSET(vc);
        for (uint d = r; d-- > 0u;) {
            uint c = i;
            if (d > 0u) {
                uint s = VIEW_SHAPE(vo, d);
                i = c / s;
                c -= i * s;
            }
            io += c * VIEW_STRIDE(vo, r, d);
            ix += c * VIEW_STRIDE(vx, r, d);
            row += c * VIEW_STRIDE(vc, r, d);
        }
        if (first + row < rows) { // a negative position wraps far beyond the rows
            result[io + first * info[3]] = x[ix];
        }
    }
}
