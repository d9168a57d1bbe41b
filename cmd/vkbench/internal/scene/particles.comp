#version 450

// A step of particles that three masses attract, and how many of them fall on each
// pixel. A particle is four numbers: place and velocity.

layout(local_size_x = 64) in;

layout(set = 0, binding = 1, std430) buffer State { vec4 state[]; };
layout(set = 0, binding = 2, std430) buffer Count { uint count[]; };
layout(push_constant) uniform Push { uint size; uint particles; };

vec2 pull(vec2 at, vec2 mass, float strength) {
    vec2 d = mass - at;
    return strength * d / pow(dot(d, d) + 0.004, 1.5);
}

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= particles) {
        return;
    }
    vec4 s = state[i];
    vec2 force = pull(s.xy, vec2(0.50, 0.52), 0.020) + pull(s.xy, vec2(0.30, 0.38), 0.007) + pull(s.xy, vec2(0.68, 0.36), 0.006);
    const float step = 0.01;
    s.zw += step * force;
    s.xy += step * s.zw;
    state[i] = s;
    ivec2 p = ivec2(floor(s.xy * float(size)));
    if (all(greaterThanEqual(p, ivec2(0))) && all(lessThan(p, ivec2(size)))) {
        atomicAdd(count[uint(p.y) * size + uint(p.x)], 1u);
    }
}
