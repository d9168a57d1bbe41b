// The kernels that fill a tensor from the numbers of its elements. RANDOM selects
// the random ones; float.glsl and info.glsl come before.
//
// Words: a, b, two zeros, and those of walk.glsl for out and for the numbers of its
// elements: element i of out is made from the number i.
//
// iota (0 float32, 1 integers): a + i·b in the element's type. The random kernels
// make elements 4j to 4j+3 from one block of Philox4x32-10 (Salmon, Moraes, Dror,
// Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011): key (seed, stream),
// counter (j, 0, 0, 0), seed and stream being push constants.

#define TENSORS 2
#define WALK 1u
#include "walk.glsl"

layout(constant_id = 2) const uint OP = 0u;

layout(set = 0, binding = 1, std430) writeonly buffer Out { uint result[]; };
layout(set = 0, binding = 1, std430) writeonly buffer Out4 { uvec4 result4[]; };

#ifdef RANDOM
layout(push_constant) uniform Push { uint seed; uint stream; };

uvec4 philox(uvec4 c, uvec2 k) {
    for (uint i = 0u; i < 10u; i++) {
        uint h0, l0, h1, l1;
        umulExtended(0xD2511F53u, c.x, h0, l0);
        umulExtended(0xCD9E8D57u, c.z, h1, l1);
        c = uvec4(h1 ^ c.y ^ k.x, l1, h0 ^ c.w ^ k.y, l0);
        k += uvec2(0x9E3779B9u, 0xBB67AE85u);
    }
    return c;
}

// Box and Muller (1958): two normal numbers from two uniform ones, the first in
// (0, 1] so that its logarithm is finite.
vec2 normal(uint a, uint b) {
    float u = float((a >> 8) + 1u) * 5.9604644775390625e-8;
    float r = u == 1.0 ? 0.0 : sqrt(-2.0 * logf(u));
    float s, c;
    sincosf(float(b >> 8) * (6.28318531 * 5.9604644775390625e-8), s, c);
    return vec2(r * c, r * s);
}
#endif

// block makes elements 4j to 4j+3.
uvec4 block(uint j, uint a, uint b) {
#ifdef RANDOM
    uvec4 bits = philox(uvec4(j, 0u, 0u, 0u), uvec2(seed, stream));
    float from = uintBitsToFloat(a);
    float to = uintBitsToFloat(b);
    vec4 v;
    if (OP == 0u) { // a + (b-a)·u, u in [0, 1) a multiple of 2⁻²⁴
        v = from + (to - from) * (vec4(bits >> 8) * 5.9604644775390625e-8);
    } else {
        v = vec4(normal(bits.x, bits.y), normal(bits.z, bits.w)) * to + from;
    }
    return floatBitsToUint(v);
#else
    uvec4 i = 4u * j + uvec4(0u, 1u, 2u, 3u);
    if (OP == 0u) {
        precise vec4 f = vec4(i) * uintBitsToFloat(b);
        return floatBitsToUint(uintBitsToFloat(a) + f);
    }
    uint n = b + b;
    return a + 4u * j * b + uvec4(0u, b, n, n + b);
#endif
}

void main() {
    uint i = item();
    if (i >= head.z) {
        return;
    }
    uvec4 p = info4[0];
    uint length = walk(i);
    uint run = blocks ? length : 0u;
    for (uint k = 0u; k < run; k++) {
        result4[at[0] + k] = block(at[1] + k, p.x, p.y);
    }
    run = singles(i, length);
    for (uint k = 0u; k < run; k++) {
        uint i = at[1] + k * steps.y;
        uvec4 v = block(i / 4u, p.x, p.y);
        uint l = i & 3u;
        result[at[0] + k * steps.x] = l < 2u ? (l == 0u ? v.x : v.y) : (l == 2u ? v.z : v.w);
    }
}
