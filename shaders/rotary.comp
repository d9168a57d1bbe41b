#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"
#include "float.glsl"

// Words: heads of an item, from one head to the next in out and in x, offset of the
// position; distance of a pair's elements in out and in x, apart, 0; and those of
// walk.glsl for out, x, the row number and the frequencies, of the shape of the pairs
// with one head out of those of an item. In blocks, which hold four pairs, all is
// counted in blocks; where apart is 2 the pairs are neighbours, and a block is 8
// elements long.
//
// All heads of a row turn by the same angles, so an item works them out once.

#define TENSORS 4
#define WALK 2u
#include "walk.glsl"

layout(set = 0, binding = 1, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 1, std430) readonly buffer X4 { vec4 x4[]; };
layout(set = 0, binding = 2, std430) readonly buffer F { float frequencies[]; };
layout(set = 0, binding = 2, std430) readonly buffer F4 { vec4 frequencies4[]; };
layout(set = 0, binding = 3, std430) readonly buffer Position { int position[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Out { float result[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Out4 { vec4 result4[]; };

void main() {
    uint i = item();
    if (i >= head.z) {
        return;
    }
    uvec4 heads = info4[0];
    uvec4 pair = info4[1];
    int begin = position[heads.w];
    uint length = walk(i);
    uint run = blocks ? length : 0u;
    float row = float(begin + int(at[2]));
    for (uint k = 0u; k < run; k++) {
        vec4 angle = row * frequencies4[at[3] + k];
        vec4 s, c;
        [[unroll]] for (uint l = 0u; l < 4u; l++) {
            float sine, cosine;
            sincosf(angle[l], sine, cosine);
            s[l] = sine;
            c[l] = cosine;
        }
        uint to = (at[0] + k) * pair.z;
        uint from = (at[1] + k) * pair.z;
        for (uint h = 0u; h < heads.x; h++) {
            vec4 p = x4[from];
            vec4 q = x4[from + pair.y];
            if (pair.z == 2u) {
                vec4 a = vec4(p.xz, q.xz), b = vec4(p.yw, q.yw);
                vec4 u = a * c - b * s, v = a * s + b * c;
                p = vec4(u.x, v.x, u.y, v.y);
                q = vec4(u.z, v.z, u.w, v.w);
            } else {
                vec4 a = p;
                p = a * c - q * s;
                q = a * s + q * c;
            }
            result4[to] = p;
            result4[to + pair.x] = q;
            to += heads.y;
            from += heads.z;
        }
    }
    run = singles(i, length);
    for (uint k = 0u; k < run; k++) {
        float s, c;
        int row = begin + int(at[2] + k * steps.z);
        sincosf(float(row) * frequencies[at[3] + k * steps.w], s, c);
        uint to = at[0] + k * steps.x;
        uint from = at[1] + k * steps.y;
        for (uint h = 0u; h < heads.x; h++) {
            float a = x[from];
            float b = x[from + pair.y];
            result[to] = a * c - b * s;
            result[to + pair.x] = a * s + b * c;
            to += heads.y;
            from += heads.z;
        }
    }
}
