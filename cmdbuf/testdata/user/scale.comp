// x = a·x, where there are no info words: it stops at the length of its buffer.
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 1, std430) readonly buffer A { float a[]; };
layout(set = 0, binding = 2, std430) buffer X { float x[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < x.length()) x[i] *= a[i];
}
