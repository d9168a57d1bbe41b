// y = a·x + b with a and b as push constants.
#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Constants { float a; int b; };
layout(set = 0, binding = 0, std430) readonly buffer Info { uint info[]; };
layout(set = 0, binding = 1, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y { float y[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < info[0]) y[info[2] + i] = a * x[info[1] + i] + float(b);
}
