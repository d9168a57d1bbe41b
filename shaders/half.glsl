// float16 in words of two, the lower half first, by integer arithmetic: no device needs a
// feature for it, none flushes what is denormal in either format, and all round alike.
// Half in half.go does the same. Four at a time and without a condition, because a driver
// on the CPU would run both sides of it.

uvec4 choose(bvec4 c, uvec4 yes, uvec4 no) { return mix(no, yes, c); }

// fromHalf is exact. A NaN becomes quiet and keeps its payload.
uvec4 fromHalf(uvec4 h) {
    uvec4 m = h & 0x7fffu;
    uvec4 moved = m << 13;
    // Denormal halves are whole multiples of 2⁻²⁴, and as floats no longer denormal.
    uvec4 v = choose(lessThan(m, uvec4(0x400u)), floatBitsToUint(vec4(m) * 5.9604644775390625e-8), moved + 0x38000000u);
    v = choose(greaterThanEqual(m, uvec4(0x7c00u)), moved | 0x7f800000u, v);
    v = choose(greaterThan(m, uvec4(0x7c00u)), v | 0x00400000u, v);
    return v | ((h & 0x8000u) << 16);
}

// toHalf rounds to nearest, to even where two are equally near.
uvec4 toHalf(uvec4 b) {
    uvec4 m = b & 0x7fffffffu;
    uvec4 n = m - 0x38000000u;
    uvec4 v = (n + 0xfffu + ((n >> 13) & 1u)) >> 13;
    // Below 2⁻¹⁴ the last bit weighs 2⁻²⁴; a shift by 25 leaves nothing.
    uvec4 shift = clamp(126u - min(m >> 23, uvec4(126u)), uvec4(14u), uvec4(25u));
    n = (m & 0x7fffffu) | 0x800000u;
    v = choose(lessThan(m, uvec4(0x38800000u)), (n + (uvec4(1u) << (shift - 1u)) - 1u + ((n >> shift) & 1u)) >> shift, v);
    v = choose(greaterThanEqual(m, uvec4(0x47800000u)), uvec4(0x7c00u), v);
    v = choose(greaterThan(m, uvec4(0x7f800000u)), 0x7e00u | ((m >> 13) & 0x1ffu), v);
    return v | ((b >> 16) & 0x8000u);
}

uvec4 fromHalves(uvec2 w) { return fromHalf(uvec4(w.x & 0xffffu, w.x >> 16, w.y & 0xffffu, w.y >> 16)); }

uvec2 toHalves(uvec4 b) {
    uvec4 h = toHalf(b);
    return uvec2(h.x | (h.y << 16), h.z | (h.w << 16));
}

// HALF takes half i out of an array of words.
#define HALF(words, i) (((words)[(i) >> 1u] >> (16u * ((i) & 1u))) & 0xffffu)
