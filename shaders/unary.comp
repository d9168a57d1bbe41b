#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"
#include "float.glsl"

// OP mirrors the unary constants of elementwise.go.
layout(constant_id = 2) const uint OP = 0u;

float exp1(float v) {
    uint b = floatBitsToUint(v);
    float e = b == 0xff800000u ? 0.0 : exp(v);
    return b == INF ? v : e;
}

// 1/(1+exp(-v)); exp may overflow to infinity, of which the reciprocal is 0.
float sigmoid(float v) { return v < -104.0 ? 0.0 : 1.0 / (1.0 + exp1(-v)); }

// silu is v·exp(v) far below 0, where exp(-v) would overflow; e⁻³² comes last, for exp(v)
// is denormal before the product is.
float silu(float v) {
    float e = exp1(v < -64.0 ? v + 32.0 : -v);
    precise float far = v * e;
    far = far * 1.26641655e-14;
    return v < -64.0 ? far : v * (1.0 / (1.0 + e));
}

// Near 0 the odd series, whose next term is below 2⁻²⁷ of the value; beyond it
// nothing cancels.
float tanh1(float v) {
    float a = uintBitsToFloat(floatBitsToUint(v) & 0x7fffffffu);
    float z = v * v;
    float near = v + v * z * (-0.333333333 + z * (0.133333333 + z * (-0.0539682540 + z * (0.0218694885 - z * 0.00886323553))));
    float t = exp1(-2.0 * a);
    float h = (1.0 - t) / (1.0 + t);
    return a < 0.3 ? near : uintBitsToFloat(floatBitsToUint(h) | (floatBitsToUint(v) & 0x80000000u));
}

// A driver on the CPU takes every way through a function, so a choice between values is
// cheaper than a return.
uint apply(uint b) {
    float v = uintBitsToFloat(b);
    uint m = b & 0x7fffffffu;
    bool negative = int(b) < 0;
    bool zero = m == 0u;
    bool nan = int(m) > int(INF);
    uint quiet = b | 0x00400000u; // what a NaN gives
    uint r = 0u;
    switch (OP) {
    case 0u: r = b; break;
    case 1u: r = b ^ 0x80000000u; break;
    case 2u: r = m; break;
    case 3u:
        r = nan ? quiet : floatBitsToUint(exp1(v));
        break;
    case 4u:
        r = b == INF ? INF : floatBitsToUint(logf(v));
        r = negative ? QNAN : r;
        r = zero ? 0xff800000u : r;
        r = nan ? quiet : r;
        break;
    case 5u:
        r = b == INF ? b : floatBitsToUint(sqrt(v));
        r = negative ? QNAN : r;
        r = zero ? b : r;
        r = nan ? quiet : r;
        break;
    case 6u:
        r = b == INF ? 0u : floatBitsToUint(inversesqrt(v));
        r = negative ? QNAN : r;
        r = zero ? INF | b : r;
        r = nan ? quiet : r;
        break;
    case 7u: r = nan ? quiet : floatBitsToUint(tanh1(v)); break;
    case 8u: r = nan ? quiet : floatBitsToUint(sigmoid(v)); break;
    case 9u: // -infinity gives 0, the limit
        r = b > 0xc2d00000u ? 0u : floatBitsToUint(silu(v));
        r = nan ? quiet : r;
        break;
    case 10u: // ½v(1+tanh y) = v·sigmoid(2y) without the cancellation
        r = floatBitsToUint(v * sigmoid(1.59576912 * (v + 0.044715 * v * v * v)));
        r = v > 8.0 ? b : r;
        r = b > 0xc1000000u ? 0u : r;
        r = nan ? quiet : r;
        break;
    case 11u:
        r = nan ? quiet : negative ? 0u : b;
        break;
    case 12u: r = nan ? quiet : floatBitsToUint(v * v); break;
    case 13u:
        r = zero ? INF | b : floatBitsToUint(1.0 / v);
        r = nan ? quiet : r;
        break;
    case 17u: // to int32
        r = uint(int(v));
        r = m >= 0x4f000000u ? (negative ? 0x80000000u : 0x7fffffffu) : r;
        r = nan ? 0u : r;
        break;
    case 18u: r = floatBitsToUint(float(int(b))); break;
    case 19u: // to uint32
        r = b >= 0x4f800000u ? 0xffffffffu : uint(v);
        r = negative || nan ? 0u : r;
        break;
    case 20u: r = floatBitsToUint(float(b)); break;
    }
    return r;
}

#define INPUTS 1
#define APPLY(x, y, z) apply(x)
#include "map.glsl"
