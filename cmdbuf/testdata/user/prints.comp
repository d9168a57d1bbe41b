// Says what it does: y = x², with a message for every element that is negative.
#version 450
#extension GL_EXT_debug_printf : require
layout(local_size_x = 8) in;
layout(set = 0, binding = 1, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Y { float y[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= y.length()) return;
    float v = x[i];
    if (v < 0) debugPrintfEXT("element %u is %f", i, v);
    y[i] = v * v;
}
