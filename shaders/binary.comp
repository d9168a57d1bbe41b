#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"
#include "float.glsl"

// OP mirrors the binary constants of elementwise.go.
layout(constant_id = 2) const uint OP = 0u;

float pow1(uint a, uint b) {
    float x = uintBitsToFloat(a);
    float y = uintBitsToFloat(b);
    bool odd = false;
    if ((b & 0x7fffffffu) == 0u || a == 0x3f800000u) {
        return 1.0;
    }
    if (isNaN(a) || isNaN(b)) {
        return uintBitsToFloat(QNAN);
    }
    float m = uintBitsToFloat(a & 0x7fffffffu);
    bool whole = floor(y) == y;
    if (whole) {
        float h = 0.5 * y;
        odd = floor(h) != h;
    }
    if ((a & 0x80000000u) != 0u && a != 0x80000000u && a != 0xff800000u && !whole) {
        return uintBitsToFloat(QNAN);
    }
    float f;
    if ((a & 0x7fffffffu) == 0u || (a & 0x7fffffffu) == INF) {
        bool grows = ((a & 0x7fffffffu) == INF) == ((b & 0x80000000u) == 0u);
        f = grows ? uintBitsToFloat(INF) : 0.0;
    } else if ((b & 0x7fffffffu) == INF) {
        if (a == 0xbf800000u) {
            return 1.0;
        }
        bool grows = (m > 1.0) == ((b & 0x80000000u) == 0u);
        f = grows ? uintBitsToFloat(INF) : 0.0;
        odd = false;
    } else {
        float t = y * log2(m);
        f = t > 128.0 ? uintBitsToFloat(INF) : t < -150.0 ? 0.0 : exp2(t);
    }
    return (a & 0x80000000u) != 0u && odd ? -f : f;
}

// key maps float bits to signed numbers in the order of the values; -0 counts as 0.
// Signed, because the instructions of CPUs compare such.
int key(uint x) {
    int sign = int(x) >> 31;
    return (int(x & 0x7fffffffu) ^ sign) - sign;
}

// A driver on the CPU takes every way through a function, so a choice between values is
// cheaper than a return.
uint apply(uint a, uint b) {
    float x = uintBitsToFloat(a);
    float y = uintBitsToFloat(b);
    int ka = key(a);
    int kb = key(b);
    bool ordered = max(int(a & 0x7fffffffu), int(b & 0x7fffffffu)) <= int(INF); // no NaN
    switch (OP) {
    case 0u: return floatBitsToUint(x + y);
    case 1u: return floatBitsToUint(x - y);
    case 2u: return floatBitsToUint(x * y);
    case 3u: return floatBitsToUint(x / y);
    case 4u: return ordered ? (ka <= kb ? a : b) : QNAN;
    case 5u: return ordered ? (ka >= kb ? a : b) : QNAN;
    case 6u: return floatBitsToUint(pow1(a, b));
    case 7u: return uint(ordered && ka == kb);
    case 8u: return uint(ordered && ka == kb) ^ 1u;
    case 9u: return uint(ordered && ka < kb);
    case 10u: return uint(ordered && ka <= kb);
    case 11u: // silu(a)·b
        // Far below 0 silu is x·exp(x), where exp(-x) would overflow and exp(x) be
        // denormal though b may make a normal number of it: e⁻⁹⁶ comes last, by halves.
        // Below -183 no b does, but an infinity.
        float low = max(x, -183.0);
        float e = exp(x < -64.0 ? low + 96.0 : -x);
        precise float far = (low * e) * (y * 1.42516408e-21);
        far = far * 1.42516408e-21;
        uint v = floatBitsToUint(x < -64.0 ? far : x / (1.0 + e) * y);
        v = a == 0xff800000u ? ((b & 0x7fffffffu) == INF ? QNAN : 0u) : v;
        return ordered ? v : QNAN;
    case 12u: return ka > 0 || int(a & 0x7fffffffu) > int(INF) ? b : 0u; // NaN included
    case 13u: return a + b;
    case 14u: return a - b;
    case 15u: return a * b;
    case 16u: return uint(min(int(a), int(b)));
    case 17u: return uint(max(int(a), int(b)));
    case 18u: return a == b ? 1u : 0u;
    case 19u: return int(a) < int(b) ? 1u : 0u;
    }
    return 0u;
}

#define INPUTS 2
#define APPLY(x, y, z) apply(x, y)
#include "map.glsl"
