// float16 in words of two, the lower half first, by integer arithmetic: no device needs a
// feature for it, none flushes what is denormal in either format, and all round alike.
// Half in half.go does the same.

// fromHalf is exact. A NaN becomes quiet and keeps its payload.
uint fromHalf(uint h) {
    uint sign = (h & 0x8000u) << 16;
    uint m = h & 0x7fffu;
    if (m > 0x7c00u) {
        return sign | 0x7fc00000u | (m << 13);
    }
    if (m == 0x7c00u) {
        return sign | 0x7f800000u;
    }
    // Denormal halves are whole multiples of 2⁻²⁴, and as floats no longer denormal.
    return sign | (m < 0x400u ? floatBitsToUint(float(m) * 5.9604644775390625e-8) : (m << 13) + 0x38000000u);
}

// toHalf rounds to nearest, to even where two are equally near.
uint toHalf(uint b) {
    uint sign = (b >> 16) & 0x8000u;
    uint m = b & 0x7fffffffu;
    if (m > 0x7f800000u) {
        return sign | 0x7e00u | ((m >> 13) & 0x1ffu);
    }
    if (m >= 0x47800000u) {
        return sign | 0x7c00u;
    }
    if (m >= 0x38800000u) {
        m -= 0x38000000u;
        return sign | ((m + 0xfffu + ((m >> 13) & 1u)) >> 13);
    }
    if (m < 0x33000000u) {
        return sign;
    }
    uint shift = 126u - (m >> 23);
    m = (m & 0x7fffffu) | 0x800000u;
    return sign | ((m + (1u << (shift - 1u)) - 1u + ((m >> shift) & 1u)) >> shift);
}

uvec4 fromHalves(uvec2 w) {
    return uvec4(fromHalf(w.x & 0xffffu), fromHalf(w.x >> 16), fromHalf(w.y & 0xffffu), fromHalf(w.y >> 16));
}

uvec2 toHalves(uvec4 v) {
    return uvec2(toHalf(v.x) | (toHalf(v.y) << 16), toHalf(v.z) | (toHalf(v.w) << 16));
}

// HALF takes half i out of an array of words.
#define HALF(words, i) (((words)[(i) >> 1u] >> (16u * ((i) & 1u))) & 0xffffu)
