// y = x² + x + ⅓ in double precision.
#version 450
#extension GL_ARB_gpu_shader_fp64 : require
layout(local_size_x = 32) in;
layout(set = 0, binding = 0, std430) readonly buffer Info { uint info[]; };
layout(set = 0, binding = 1, std430) readonly buffer X { double x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y { double y[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= info[0]) return;
    double v = x[info[1] + i];
    y[info[2] + i] = fma(v, v, v) + 1.0lf / 3.0lf;
}
