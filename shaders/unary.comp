#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"
#include "float.glsl"

// OP mirrors the unary constants of elementwise.go.
layout(constant_id = 2) const uint OP = 0u;

float exp1(float v) {
    uint b = floatBitsToUint(v);
    return b == INF ? v : expf(v);
}

// 1/(1+exp(-v)); exp may overflow to infinity, of which the reciprocal is 0.
float sigmoid(float v) { return v < -104.0 ? 0.0 : 1.0 / (1.0 + exp1(-v)); }

// Near 0 the odd series, whose next term is below 2⁻²⁷ of the value; beyond it
// nothing cancels.
float tanh1(float v) {
    float a = uintBitsToFloat(floatBitsToUint(v) & 0x7fffffffu);
    if (a < 0.3) {
        float z = v * v;
        return v + v * z * (-0.333333333 + z * (0.133333333 + z * (-0.0539682540 + z * (0.0218694885 - z * 0.00886323553))));
    }
    float t = expf(-2.0 * a);
    float h = (1.0 - t) / (1.0 + t);
    return uintBitsToFloat(floatBitsToUint(h) | (floatBitsToUint(v) & 0x80000000u));
}

uint apply(uint b) {
    float v = uintBitsToFloat(b);
    bool negative = (b & 0x80000000u) != 0u;
    bool zero = (b & 0x7fffffffu) == 0u;
    switch (OP) {
    case 0u: return b;
    case 1u: return b ^ 0x80000000u;
    case 2u: return b & 0x7fffffffu;
    }
    if (OP == 17u) { // to int32
        if (isNaN(b)) { return 0u; }
        uint m = b & 0x7fffffffu;
        if (m >= 0x4f000000u) { return negative ? 0x80000000u : 0x7fffffffu; }
        return uint(int(v));
    }
    if (OP == 18u) { return floatBitsToUint(float(int(b))); }
    if (OP == 19u) { // to uint32
        if (negative || isNaN(b)) { return 0u; }
        if (b >= 0x4f800000u) { return 0xffffffffu; }
        return uint(v);
    }
    if (OP == 20u) { return floatBitsToUint(float(b)); }
    if (isNaN(b)) {
        return b | 0x00400000u;
    }
    float f = v;
    switch (OP) {
    case 3u: f = exp1(v); break;
    case 4u:
        if (zero) { return 0xff800000u; }
        if (negative) { return QNAN; }
        if (b == INF) { return INF; }
        f = logf(v);
        break;
    case 5u:
        if (zero || b == INF) { return b; }
        if (negative) { return QNAN; }
        f = sqrt(v);
        break;
    case 6u:
        if (zero) { return INF | b; }
        if (negative) { return QNAN; }
        if (b == INF) { return 0u; }
        f = inversesqrt(v);
        break;
    case 7u: f = tanh1(v); break;
    case 8u: f = sigmoid(v); break;
    case 9u: // -infinity gives 0, the limit
        if (b > 0xc2d00000u) { return 0u; }
        f = v * sigmoid(v);
        break;
    case 10u: // ½v(1+tanh y) = v·sigmoid(2y) without the cancellation
        if (b > 0xc1000000u) { return 0u; }
        f = v > 8.0 ? v : v * sigmoid(1.59576912 * (v + 0.044715 * v * v * v));
        break;
    case 11u: return negative ? 0u : b;
    case 12u: f = v * v; break;
    case 13u: f = 1.0 / v;
        if (zero) { return INF | b; }
        break;
    }
    return floatBitsToUint(f);
}

#define INPUTS 1
#define APPLY(x, y, z) apply(x)
#include "map.glsl"
