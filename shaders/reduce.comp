#version 450
#extension GL_GOOGLE_include_directive : require
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
// For a sum, each lane adds runs of 32, the sums of 32 runs, and the sums of 32 of
// those before it adds to its total, and the lanes are added as a tree. So an
// element goes through at most 96 + length/32768 + log2(lanes) roundings, and the
// order depends on the shape and the group size alone.

layout(local_size_x = 64, local_size_x_id = 0) in;
// OP mirrors the reduction constants of reduce.go.
layout(constant_id = 2) const uint OP = 0u;
const uint SUM = 0u, MEAN = 1u, MAX = 2u, MIN = 3u, ARGMAX = 4u;

layout(set = 0, binding = 1, std430) readonly buffer X { uint x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Out { uint result[]; };

shared uint part[gl_WorkGroupSize.x];
shared uint place[gl_WorkGroupSize.x];

const uint RUN = 32u;

uint reducedIndex(uint v, uint r, uint i) {
    if (r == 1u) {
        return i * VIEW_STRIDE(v, 1u, 0u);
    }
    uint at = 0u;
    for (uint d = r; d-- > 0u;) {
        uint c = i;
        if (d > 0u) {
            uint s = VIEW_SHAPE(v, d);
            i = c / s;
            c -= i * s;
        }
        at += c * VIEW_STRIDE(v, r, d);
    }
    return at;
}

float value(uint i) { return uintBitsToFloat(x[i]); }

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
        precise float total = 0.0;
        uint i = lane;
        while (i < len) {
            precise float s2 = 0.0;
            for (uint k2 = 0u; k2 < RUN && i < len; k2++) {
                precise float s1 = 0.0;
                for (uint k1 = 0u; k1 < RUN && i < len; k1++) {
                    precise float s0 = 0.0;
                    for (uint k0 = 0u; k0 < RUN && i < len; k0++) {
                        s0 += value(ix + reducedIndex(vr, rr, base + i));
                        i += lanes;
                    }
                    s1 += s0;
                }
                s2 += s1;
            }
            total += s2;
        }
        mine = floatBitsToUint(total);
    } else {
        // The least key is below that of -infinity, so any element beats it. MIN
        // looks for the greatest complement; NaN, the greatest key, stays so.
        mine = 0u;
        for (uint i = lane; i < len; i += lanes) {
            uint k = orderKey(x[ix + reducedIndex(vr, rr, base + i)]);
            if (OP == MIN && k != 0xffffffffu) {
                k = ~k;
            }
            if (k > mine) { // the first of equals stays
                mine = k;
                at = i;
            }
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
