#version 450

// A step of heat diffusion on a plate: five points, explicit in time, stable for rates
// up to 1/4. The rim is cold, and three spots are held hot.

layout(local_size_x = 64) in;

layout(set = 0, binding = 1, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Out { float result[]; };
layout(push_constant) uniform Push { uint size; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= size * size) {
        return;
    }
    uint px = i % size, py = i / size;
    vec2 at = (vec2(px, py) + 0.5) / float(size);
    if (px == 0u || py == 0u || px == size - 1u || py == size - 1u) {
        result[i] = 0.0;
        return;
    }
    if (distance(at, vec2(0.30, 0.35)) < 0.06 || distance(at, vec2(0.72, 0.30)) < 0.04 || distance(at, vec2(0.55, 0.74)) < 0.08) {
        result[i] = 1.0;
        return;
    }
    float c = x[i];
    result[i] = c + 0.24 * (x[i - 1u] + x[i + 1u] + x[i - size] + x[i + size] - 4.0 * c);
}
