#version 450

// Reads memory, and with COPY writes it elsewhere, in blocks of four floats. Each
// invocation takes `blocks` of them: neighbours take neighbouring ones, as a GPU likes it,
// or with RUNS each a run of its own, as the cores of a CPU do.

layout(local_size_x = 64, local_size_x_id = 0) in;

layout(set = 0, binding = 1, std430) readonly buffer X { vec4 x[]; };
#ifdef COPY
layout(set = 0, binding = 2, std430) writeonly buffer Out { vec4 result[]; };
#else
layout(set = 0, binding = 2, std430) writeonly buffer Out { float result[]; };
#endif
layout(push_constant) uniform Push { uint blocks; };

void main() {
    uint i = gl_GlobalInvocationID.x;
#ifdef RUNS
    uint at = i * blocks;
    const uint next = 1u;
#else
    uint next = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    uint at = i;
#endif
#ifdef COPY
    for (uint b = 0u; b < blocks; b++) {
        result[at] = x[at];
        at += next;
    }
#else
    // Four sums, so that additions do not wait for each other.
    vec4 s0 = vec4(0.0), s1 = vec4(0.0), s2 = vec4(0.0), s3 = vec4(0.0);
    for (uint b = 0u; b < blocks; b += 4u) {
        s0 += x[at];
        s1 += x[at + next];
        s2 += x[at + 2u * next];
        s3 += x[at + 3u * next];
        at += 4u * next;
    }
    result[i] = dot(s0 + s1 + s2 + s3, vec4(1.0));
#endif
}
