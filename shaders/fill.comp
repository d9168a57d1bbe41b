#version 450
#extension GL_GOOGLE_include_directive : require
#include "info.glsl"

// Words: value, n, then view out. The value is a bit pattern, so every 32-bit
// element type is served and no NaN loses its payload.

layout(local_size_x = 64, local_size_x_id = 0) in;

layout(set = 0, binding = 1, std430) writeonly buffer Out { uint result[]; };

void main() {
    uint i = linearGroup() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (i >= info[1]) {
        return;
    }
    uint vo = 2u;
    uint r = info[vo];
    uint io = VIEW_OFFSET(vo);
    for (uint d = r; d-- > 0u;) {
        uint c = i;
        if (d > 0u) {
            uint s = VIEW_SHAPE(vo, d);
            i = c / s;
            c -= i * s;
        }
        io += c * VIEW_STRIDE(vo, r, d);
    }
    result[io] = info[0];
}
