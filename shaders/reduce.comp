#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"
#include "float.glsl"

// Words: outputs, length, lanes, order, step, total, then the views out and x over
// the kept axes, and x over the reduced axes (offset 0).
//
// Output o reduces elements o·step to o·step+length of the reduced axes, as far as
// there are total ones: step is 0 but where one long reduction is cut into parts.
//
// A group serves size/lanes outputs with `lanes` invocations each, a power of
// two. order 0 puts the lanes of one output side by side, order 1 the outputs:
// whichever makes neighbours read neighbouring elements.
//
// For a sum, each lane adds 16 elements as a tree and keeps the rounding errors of
// the sums of those, and the lanes are added as a tree. So an element goes through
// some 8 + log2(lanes) roundings whatever the length, in an order that depends on
// the shape and the group size alone.
//
// The blocks of 16 are written out, not looped over, also because llvmpipe ends
// all loops of an invocation after 65535 rounds, without a word.

layout(local_size_x = 64, local_size_x_id = 0) in;
// OP mirrors the reduction constants of reduce.go.
layout(constant_id = 2) const uint OP = 0u;
const uint SUM = 0u, MEAN = 1u, MAX = 2u, MIN = 3u, ARGMAX = 4u;

layout(set = 0, binding = 1, std430) readonly buffer X { uint x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Out { uint result[]; };

shared uint part[gl_WorkGroupSize.x];
shared uint place[gl_WorkGroupSize.x];

uint reducedIndex(uint v, uint r, uint i) {
    if (r == 1u) {
        return i * VIEW_STRIDE(v, 1u, 0u);
    }
    uint at = 0u;
    [[unroll]] for (uint k = 0u; k < 7u; k++) {
        uint d = 7u - k;
        if (d < r) {
            uint s = VIEW_SHAPE(v, d);
            uint q = i / s;
            at += (i - q * s) * VIEW_STRIDE(v, r, d);
            i = q;
        }
    }
    return r == 0u ? 0u : at + i * VIEW_STRIDE(v, r, 0u);
}

float value(uint i) { return uintBitsToFloat(x[i]); }

// consider takes an element that beats all before it; the first of equals stays.
void consider(inout uint mine, inout uint at, uint bits, uint i) {
    uint k = orderKey(bits);
    if (OP == MIN && k != 0xffffffffu) {
        k = ~k;
    }
    if (k > mine) {
        mine = k;
        at = i;
    }
}

// better: the second of two (key, place) pairs wins.
bool better(uint k, uint p, uint otherKey, uint otherPlace) {
    return otherKey > k || otherKey == k && otherPlace < p;
}

void main() {
    uint outputs = info[0];
    uint lanes = info[2];
    uint perGroup = gl_WorkGroupSize.x / lanes;
    uint lid = gl_LocalInvocationID.x;
    uint lane = info[3] == 0u ? lid % lanes : lid / perGroup;
    uint slot = info[3] == 0u ? lid / lanes : lid % perGroup;

    uint o = linearGroup() * perGroup + slot;
    bool live = o < outputs;
    uint base = o * info[4];
    uint len = live && base < info[5] ? min(info[1], info[5] - base) : 0u;

    uint vo = 6u;
    uint rk = info[vo];
    uint vx = vo + VIEW_WORDS(rk);
    uint vr = vx + VIEW_WORDS(rk);
    uint rr = info[vr];
    uint io = VIEW_OFFSET(vo);
    uint ix = VIEW_OFFSET(vx);
    for (uint d = rk; d-- > 0u;) {
        uint c = o;
        if (d > 0u) {
            uint s = VIEW_SHAPE(vo, d);
            o = c / s;
            c -= o * s;
        }
        io += c * VIEW_STRIDE(vo, rk, d);
        ix += c * VIEW_STRIDE(vx, rk, d);
    }

    uint mine;
    uint at = 0xffffffffu;
    if (OP == SUM || OP == MEAN) {
        float total = 0.0;
        float rest = 0.0;
        uint i = lane;
        if (rr == 1u) {
            uint hop = lanes * VIEW_STRIDE(vr, 1u, 0u);
            uint first = ix + (base + lane) * VIEW_STRIDE(vr, 1u, 0u);
            for (; i < len && len - i > 15u * lanes; i += 16u * lanes) {
                float t[8];
                [[unroll]] for (uint k = 0u; k < 8u; k++) {
                    t[k] = value(first + 2u * k * hop) + value(first + (2u * k + 1u) * hop);
                }
                first += 16u * hop;
                twoSum(total, rest, ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7])));
            }
        }
        for (; i < len; i += lanes) {
            twoSum(total, rest, value(ix + reducedIndex(vr, rr, base + i)));
        }
        total = both(total, rest);
        mine = floatBitsToUint(total);
    } else {
        // The least key is below that of -infinity, so any element beats it. MIN
        // looks for the greatest complement; NaN, the greatest key, stays so.
        mine = 0u;
        uint i = lane;
        if (rr == 1u) {
            uint hop = lanes * VIEW_STRIDE(vr, 1u, 0u);
            uint first = ix + (base + lane) * VIEW_STRIDE(vr, 1u, 0u);
            for (; i < len && len - i > 7u * lanes; i += 8u * lanes) {
                [[unroll]] for (uint k = 0u; k < 8u; k++) {
                    consider(mine, at, x[first + k * hop], i + k * lanes);
                }
                first += 8u * hop;
            }
        }
        for (; i < len; i += lanes) {
            consider(mine, at, x[ix + reducedIndex(vr, rr, base + i)], i);
        }
    }

    // No invocation may leave before the barriers; the loop runs equally often
    // for all of them.
    uint me = lane * perGroup + slot;
    part[me] = mine;
    if (OP == ARGMAX) {
        place[me] = at;
    }
    for (uint step = lanes / 2u; step > 0u; step /= 2u) {
        barrier();
        if (lane < step) {
            uint other = part[me + step * perGroup];
            if (OP == SUM || OP == MEAN) {
                precise float s = uintBitsToFloat(part[me]) + uintBitsToFloat(other);
                part[me] = floatBitsToUint(s);
            } else if (OP == ARGMAX) {
                uint p = place[me + step * perGroup];
                if (better(part[me], place[me], other, p)) {
                    part[me] = other;
                    place[me] = p;
                }
            } else {
                part[me] = max(part[me], other);
            }
        }
    }
    if (live && lane == 0u) {
        uint r = part[me];
        switch (OP) {
        case MEAN:
            r = info[1] == 0u ? QNAN : floatBitsToUint(uintBitsToFloat(r) / float(info[1]));
            break;
        case MAX:
            r = r == 0u ? 0xff800000u : fromKey(r);
            break;
        case MIN:
            r = r == 0u ? INF : r == 0xffffffffu ? QNAN : fromKey(~r);
            break;
        case ARGMAX:
            r = place[me];
            break;
        }
        result[io] = r;
    }
}
