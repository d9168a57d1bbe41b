// Takes structs apart and makes others of the parts: each kind of member that a buffer
// can have, in std430.
#version 450
layout(local_size_x = 16) in;

struct Joint {
    vec3 axis;
    float angle;
};

struct Particle {
    float mass;
    vec3 position;
    vec2 charge;
    int kind;
    uint flags;
    vec4 color;
    mat3 turn;
    float history[5];
    Joint joints[2];
    ivec3 cell;
    uvec2 pair;
};

struct Parts {
    float v[39];
};

layout(set = 0, binding = 0, std430) readonly buffer Info { uint info[]; };
layout(set = 0, binding = 1, std430) readonly buffer Particles { Particle particles[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Flat { Parts parts[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Moved { Particle moved[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= info[0]) return;
    Particle p = particles[info[1] + i];
    uint o = info[2] + i;
    uint n = 0;
    parts[o].v[n++] = p.mass;
    for (int k = 0; k < 3; k++) parts[o].v[n++] = p.position[k];
    for (int k = 0; k < 2; k++) parts[o].v[n++] = p.charge[k];
    parts[o].v[n++] = float(p.kind);
    parts[o].v[n++] = float(p.flags);
    for (int k = 0; k < 4; k++) parts[o].v[n++] = p.color[k];
    for (int c = 0; c < 3; c++)
        for (int r = 0; r < 3; r++) parts[o].v[n++] = p.turn[c][r];
    for (int k = 0; k < 5; k++) parts[o].v[n++] = p.history[k];
    for (int j = 0; j < 2; j++) {
        for (int k = 0; k < 3; k++) parts[o].v[n++] = p.joints[j].axis[k];
        parts[o].v[n++] = p.joints[j].angle;
    }
    for (int k = 0; k < 3; k++) parts[o].v[n++] = float(p.cell[k]);
    for (int k = 0; k < 2; k++) parts[o].v[n++] = float(p.pair[k]);
    p.position += vec3(p.charge, p.mass);
    p.turn = transpose(p.turn);
    p.cell = -p.cell;
    moved[info[3] + i] = p;
}
