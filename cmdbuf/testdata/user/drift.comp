// Moves particles by their velocity, for a time that a struct of one element holds.
#version 450
layout(local_size_x = 32) in;

struct Particle {
    vec3 position;
    float mass;
    vec3 velocity;
};

layout(set = 0, binding = 0, std430) readonly buffer Info { uint info[]; };
layout(set = 0, binding = 1, std430) readonly buffer Wind { float time; vec3 gust; } wind;
layout(set = 0, binding = 2, std430) buffer Particles { Particle particles[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= info[0]) return;
    Particle p = particles[info[2] + i];
    particles[info[2] + i].position = p.position + (p.velocity + wind.gust / p.mass) * wind.time;
}
