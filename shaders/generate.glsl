// The kernels that fill a tensor from the numbers of its elements. RANDOM selects
// the random ones; float.glsl and info.glsl come before.
//
// Words: n (elements), elements per work item, work items per invocation, four
// parameters, then view out, whose axes are in logical order: element i of out
// is made from the number i.
//
// iota (0 float32, 1 integers): a + i·b in the element's type, one element an
// item. The random kernels take four elements an item from one block of
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy
// as 1, 2, 3", SC 2011): key (seed, stream), counter (item, 0, 0, 0), seed and
// stream being push constants.

layout(local_size_x = 64, local_size_x_id = 0) in;
// OP mirrors the generator constants of generate.go.
layout(constant_id = 2) const uint OP = 0u;

layout(set = 0, binding = 1, std430) writeonly buffer Out { uint result[]; };

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

void put(uint vo, uint i, uint v) {
    uint r = info[vo];
    uint io = VIEW_OFFSET(vo);
    for (uint d = r; d-- > 0u;) {
        uint c = i;
        if (d > 0u) {
            uint s = VIEW_SHAPE(vo, d);
            i = c / s;
            c -= i * s;
        }
        io += c * VIEW_STRIDE(vo, r, d);
    }
    result[io] = v;
}

void main() {
    uint n = info[0];
    uint width = info[1];
    uint items = (n - 1u) / width + 1u;
    uint chunk = gl_WorkGroupSize.x * info[2];
    uint g = linearGroup();
    if (g > (items - 1u) / chunk) {
        return;
    }
    uint vo = 5u;
    uint last = min(items - g * chunk, chunk);
    for (uint e = gl_LocalInvocationID.x; e < last; e += gl_WorkGroupSize.x) {
        uint i = g * chunk + e;
#ifdef RANDOM
        uvec4 bits = philox(uvec4(i, 0u, 0u, 0u), uvec2(seed, stream));
        float a = uintBitsToFloat(info[3]);
        float b = uintBitsToFloat(info[4]);
        vec4 v;
        if (OP == 0u) { // a + (b-a)·u, u in [0, 1) a multiple of 2⁻²⁴
            v = a + (b - a) * (vec4(bits >> 8) * 5.9604644775390625e-8);
        } else {
            v = vec4(normal(bits.x, bits.y), normal(bits.z, bits.w)) * b + a;
        }
        for (uint l = 0u; l < 4u && 4u * i + l < n; l++) {
            put(vo, 4u * i + l, floatBitsToUint(v[l]));
        }
#else
        uint v = info[3] + i * info[4];
        if (OP == 0u) {
            precise float f = float(i) * uintBitsToFloat(info[4]);
            v = floatBitsToUint(uintBitsToFloat(info[3]) + f);
        }
        put(vo, i, v);
#endif
    }
}
