#version 450
// A shader that is not to be trusted: it writes, and reads, at whatever index it is told,
// of its output or of its info, whose declaration as writable the test hides.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0, std430) coherent buffer Info { uint words[]; } info;
layout(set = 0, binding = 1, std430) buffer Out { uint data[]; } result;

layout(push_constant) uniform Push {
    uint what;   // 0: write data, 1: write words, 2: copy from data to data[0]
    uint first;  // index
    uint stride; // of the next group's index
    uint value;
} push;

void main() {
    uint index = push.first + gl_WorkGroupID.x * push.stride;
    if (push.what == 0) {
        result.data[index] = push.value;
    } else if (push.what == 1) {
        info.words[index] = push.value;
    } else {
        result.data[0] = result.data[index] + 0 * info.words[0];
    }
}
