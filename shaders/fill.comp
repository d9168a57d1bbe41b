#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"

// Words: value, n, elements per invocation, then view out. The value is a bit
// pattern, so every 32-bit element type is served and no NaN loses its payload.

layout(local_size_x = 64, local_size_x_id = 0) in;

layout(set = 0, binding = 1, std430) writeonly buffer Out { uint result[]; };

void main() {
    uint n = info[1];
    uint chunk = gl_WorkGroupSize.x * info[2];
    uint g = linearGroup();
    if (g > (n - 1u) / chunk) {
        return;
    }
    uint vo = 3u;
    uint r = info[vo];
    uint last = min(n - g * chunk, chunk);
    uint e = gl_LocalInvocationID.x;
    if (r <= 1u) { // as in map.glsl
        uint so = r == 1u ? VIEW_STRIDE(vo, 1u, 0u) : 0u;
        uint hop = gl_WorkGroupSize.x * so;
        uint io = VIEW_OFFSET(vo) + (g * chunk + e) * so;
        uint value = info[0];
        for (; e + 7u * gl_WorkGroupSize.x < last; e += 8u * gl_WorkGroupSize.x) {
            [[unroll]] for (uint k = 0u; k < 8u; k++) {
                result[io + k * hop] = value;
            }
            io += 8u * hop;
        }
    }
    for (; e < last; e += gl_WorkGroupSize.x) {
        uint i = g * chunk + e;
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
}
