// Element-wise kernels. The including file says how many INPUTS there are (1, 2
// or 3) and defines APPLY(x, y, z) from bit patterns to a bit pattern.
//
// Words: those of walk.glsl. Tensor 0 is out, the inputs follow.

#define TENSORS (INPUTS + 1)
#define WALK 0u
#include "walk.glsl"

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
    uint i = item();
    if (i >= head.z) {
        return;
    }
    bool wholeX = !splat(1u), wholeY = !splat(2u), wholeZ = !splat(3u);
    uint length = walk(i);
    uint run = blocks ? length : 0u;
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
    run = singles(i, length);
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
