#version 450
#extension GL_GOOGLE_include_directive : require
#include "info.glsl"
#include "float.glsl"

// Words: n pairs, pairs per invocation, distance of a pair's elements in out and x,
// offset of the position, then views out, x, the row number and the frequencies,
// all of the shape of the pairs.

layout(local_size_x = 64, local_size_x_id = 0) in;

layout(set = 0, binding = 1, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 2, std430) readonly buffer F { float frequencies[]; };
layout(set = 0, binding = 3, std430) readonly buffer Position { int position[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Out { float result[]; };

void main() {
    uint n = info[0];
    uint chunk = gl_WorkGroupSize.x * info[1];
    uint g = linearGroup();
    if (g > (n - 1u) / chunk) {
        return;
    }
    uint vo = 5u;
    uint r = info[vo];
    uint vx = vo + VIEW_WORDS(r);
    uint vc = vx + VIEW_WORDS(r);
    uint vf = vc + VIEW_WORDS(r);
    uint last = min(n - g * chunk, chunk);
    for (uint e = gl_LocalInvocationID.x; e < last; e += gl_WorkGroupSize.x) {
        uint i = g * chunk + e;
        uint io = VIEW_OFFSET(vo);
        uint ix = VIEW_OFFSET(vx);
        uint row = VIEW_OFFSET(vc);
        uint jf = VIEW_OFFSET(vf);
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
            jf += c * VIEW_STRIDE(vf, r, d);
        }
        float s, c;
        sincosf(float(position[info[4]] + int(row)) * frequencies[jf], s, c);
        float a = x[ix];
        float b = x[ix + info[3]];
        result[io] = a * c - b * s;
        result[io + info[2]] = a * s + b * c;
    }
}
