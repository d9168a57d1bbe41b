#version 450

// A field of numbers as pixels, red in the lowest byte, dark to bright through five
// colours.

layout(local_size_x = 64) in;

layout(set = 0, binding = 1, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Out { uint result[]; };
layout(push_constant) uniform Push { uint n; float gain; };

const vec3 colours[5] = vec3[](vec3(0.03, 0.04, 0.10), vec3(0.24, 0.10, 0.44), vec3(0.76, 0.22, 0.40), vec3(0.98, 0.60, 0.25), vec3(1.00, 0.97, 0.80));

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= n) {
        return;
    }
    float v = 4.0 * sqrt(clamp(gain * x[i], 0.0, 1.0));
    uint k = min(uint(v), 3u);
    vec3 c = mix(colours[k], colours[k + 1u], v - float(k));
    uvec3 b = uvec3(c * 255.0 + 0.5);
    result[i] = b.r | b.g << 8 | b.b << 16 | 0xff000000u;
}
