#version 450

// The Mandelbrot set: how many steps of z² + c stay within a circle, made smooth by how
// far the last one went (Linas Vepstas, "Renormalizing the Mandelbrot Escape", 1997).

layout(local_size_x = 64) in;

layout(set = 0, binding = 1, std430) writeonly buffer Out { float result[]; };
layout(push_constant) uniform Push { uint size; float width; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= size * size) {
        return;
    }
    vec2 c = vec2(-0.743643, 0.131825) + ((vec2(i % size, i / size) + 0.5) / float(size) - 0.5) * width;
    const uint most = 160u;
    vec2 z = vec2(0.0);
    uint n = 0u;
    for (; n < most && dot(z, z) < 64.0; n++) {
        z = vec2(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c;
    }
    result[i] = n == most ? 0.0 : (float(n) + 1.0 - log2(0.5 * log2(dot(z, z)))) / float(most);
}
