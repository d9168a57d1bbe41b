// Element-wise kernels. The including file says how many INPUTS there are (1, 2
// or 3) and defines APPLY(x, y, z) from bit patterns to a bit pattern.
//
// Words: those of walk.glsl. Tensor 0 is out, the inputs follow.

#define TENSORS (INPUTS + 1)
#define WALK 0u
#include "walk.glsl"

layout(local_size_x = 64, local_size_x_id = 0) in;

layout(set = 0, binding = 1, std430) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1, std430) readonly buffer X4 { uvec4 x4[]; };
#if INPUTS > 1
layout(set = 0, binding = 2, std430) readonly buffer Y { uint y[]; };
layout(set = 0, binding = 2, std430) readonly buffer Y4 { uvec4 y4[]; };
#endif
#if INPUTS > 2
layout(set = 0, binding = 3, std430) readonly buffer Z { uint z[]; };
layout(set = 0, binding = 3, std430) readonly buffer Z4 { uvec4 z4[]; };
#endif
layout(set = 0, binding = INPUTS + 1, std430) writeonly buffer Out { uint result[]; };
layout(set = 0, binding = INPUTS + 1, std430) writeonly buffer Out4 { uvec4 result4[]; };

uvec4 block(uvec4 a, uvec4 b, uvec4 c) {
    uvec4 v;
    [[unroll]] for (uint k = 0u; k < 4u; k++) {
        v[k] = APPLY(a[k], b[k], c[k]);
    }
    return v;
}

void main() {
    uvec4 work = info4[WALK];
    uint g = linearGroup();
    if (g >= work.x) {
        return;
    }
    uint splat = info4[WALK + 2u].x;
    bool wholeX = (splat & 2u) == 0u;
    bool wholeY = (splat & 4u) == 0u;
    bool wholeZ = (splat & 8u) == 0u;
    uint first = g * work.y + gl_LocalInvocationID.x;
    uint last = min(g * work.y + work.y, work.z);
    for (uint e = first; e < last; e += gl_WorkGroupSize.x) {
        uint run = walk(e, BLOCKS);
        uvec4 a = uvec4(0u), b = uvec4(0u), c = uvec4(0u);
        if (!wholeX) {
            a = uvec4(x[at[1]]);
        }
#if INPUTS > 1
        if (!wholeY) {
            b = uvec4(y[at[2]]);
        }
#endif
#if INPUTS > 2
        if (!wholeZ) {
            c = uvec4(z[at[3]]);
        }
#endif
        for (uint k = 0u; k < run; k++) {
            if (wholeX) {
                a = x4[at[1] + k];
            }
#if INPUTS > 1
            if (wholeY) {
                b = y4[at[2] + k];
            }
#endif
#if INPUTS > 2
            if (wholeZ) {
                c = z4[at[3] + k];
            }
#endif
            result4[at[0] + k] = block(a, b, c);
        }
    }
    uvec4 steps = info4[WALK + 5u];
    last = min(g * work.y + work.y, work.w);
    for (uint e = first; e < last; e += gl_WorkGroupSize.x) {
        uint run = walk(e, SINGLES);
        for (uint k = 0u; k < run; k++) {
            uint a = x[at[1] + k * steps.y];
            uint b = 0u, c = 0u;
#if INPUTS > 1
            b = y[at[2] + k * steps.z];
#endif
#if INPUTS > 2
            c = z[at[3] + k * steps.w];
#endif
            result[at[0] + k * steps.x] = APPLY(a, b, c);
        }
    }
}
