#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"
#include "float.glsl"
#include "half.glsl"

// A matrix of float16 times a vector of float32.
//
// Words: outputs, length, lanes as a power of two, order, fours, steps along the sum of
// (a, x), outputs of a group, then views out, a, x over the outputs. Lanes, order and
// fours are as in matvec.glsl, of whose blocks there are none here.

layout(local_size_x = 64, local_size_x_id = 0) in;

layout(set = 0, binding = 1, std430) readonly buffer A { uint a[]; };
layout(set = 0, binding = 1, std430) readonly buffer A4 { uvec2 a4[]; };
layout(set = 0, binding = 2, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 2, std430) readonly buffer X4 { vec4 x4[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Out { float result[]; };

shared float part[gl_WorkGroupSize.x];

float total(vec4 t) { return (t.x + t.y) + (t.z + t.w); }

float one(uint i) { return uintBitsToFloat(fromHalf(uvec4(HALF(a, i))).x); }

vec4 four(uint i) { return uintBitsToFloat(fromHalves(a4[i])); }

void main() {
    uint outputs = info[0];
    uint len = info[1];
    uint bits = info[2];
    bool fours = info[4] != 0u;
    uint as = info[5];
    uint xs = info[6];
    uint perGroup = info[7];
    uint lid = gl_LocalInvocationID.x;
    uint lanes = 1u << bits;
    uint slots = gl_WorkGroupSize.x >> bits;
    uint lane = info[3] == 0u ? lid & (lanes - 1u) : lid >> findMSB(slots);
    uint slot = info[3] == 0u ? lid >> bits : lid & (slots - 1u);
    uint o = linearGroup() * perGroup + slot;
    bool live = o < outputs && slot < perGroup;

    const uint vo = 8u;
    uint r = info[vo];
    uint va = vo + VIEW_WORDS(r);
    uint vx = va + VIEW_WORDS(r);
    uint io = VIEW_OFFSET(vo);
    uint ia = VIEW_OFFSET(va);
    uint ix = VIEW_OFFSET(vx);
    for (uint d = r; d-- > 0u;) {
        uint c = o;
        if (d > 0u) {
            uint s = VIEW_SHAPE(vo, d);
            o = c / s;
            c -= o * s;
        }
        io += c * VIEW_STRIDE(vo, r, d);
        ia += c * VIEW_STRIDE(va, r, d);
        ix += c * VIEW_STRIDE(vx, r, d);
    }

    float sum = 0.0;
    float rest = 0.0;
    uint k = lane;
    uint count = live && fours ? len >> 2u : 0u;
    for (; k + 3u * lanes < count; k += 4u * lanes) {
        uint at = (ia >> 2u) + k;
        uint xt = (ix >> 2u) + k;
        vec4 t = four(at) * x4[xt];
        [[unroll]] for (uint e = 1u; e < 4u; e++) {
            t = fma(four(at + e * lanes), x4[xt + e * lanes], t);
        }
        twoSum(sum, rest, total(t));
    }
    for (; k < count; k += lanes) { // 3 at most
        twoSum(sum, rest, total(four((ia >> 2u) + k) * x4[(ix >> 2u) + k]));
    }
    k = 4u * count + lane;
    count = live ? len : 0u;
    for (; k + 3u * lanes < count; k += 4u * lanes) {
        vec4 t;
        [[unroll]] for (uint e = 0u; e < 4u; e++) {
            t[e] = one(ia + (k + e * lanes) * as) * x[ix + (k + e * lanes) * xs];
        }
        twoSum(sum, rest, total(t));
    }
    for (; k < count; k += lanes) { // 3 at most
        twoSum(sum, rest, one(ia + k * as) * x[ix + k * xs]);
    }
    sum = both(sum, rest);
    uint me = lane * slots + slot;
    part[me] = sum;
    for (uint step = lanes / 2u; step > 0u; step /= 2u) {
        barrier();
        if (lane < step) {
            part[me] += part[me + step * slots];
        }
    }
    if (live && lane == 0u) {
        result[io] = part[me];
    }
}
