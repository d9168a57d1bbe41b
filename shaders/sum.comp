#version 450
#extension GL_GOOGLE_include_directive : require
#include "info.glsl"

// Words: outputs, length, lanes, order, then the views out and x over the kept
// axes, and x over the reduced axes (offset 0).
//
// A group serves size/lanes outputs with `lanes` invocations each, a power of
// two. order 0 puts the lanes of one output side by side, order 1 the outputs:
// whichever makes neighbours read neighbouring elements.
//
// Each lane adds runs of 32, the sums of 32 runs, and the sums of 32 of those
// before it adds to its total, and the lanes are added as a tree. So an element
// goes through at most 96 + length/32768 + log2(lanes) roundings, and the
// order depends on the shape and the group size alone.

layout(local_size_x = 64, local_size_x_id = 0) in;

layout(set = 0, binding = 1, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Out { float result[]; };

shared float part[gl_WorkGroupSize.x];

const uint RUN = 32u;

uint reducedIndex(uint v, uint r, uint i) {
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

void main() {
    uint outputs = info[0];
    uint len = info[1];
    uint lanes = info[2];
    uint perGroup = gl_WorkGroupSize.x / lanes;
    uint lid = gl_LocalInvocationID.x;
    uint lane = info[3] == 0u ? lid % lanes : lid / perGroup;
    uint slot = info[3] == 0u ? lid / lanes : lid % perGroup;

    uint o = linearGroup() * perGroup + slot;
    bool live = o < outputs;

    uint vo = 4u;
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

    precise float total = 0.0;
    if (live) {
        uint i = lane;
        while (i < len) {
            precise float s2 = 0.0;
            for (uint k2 = 0u; k2 < RUN && i < len; k2++) {
                precise float s1 = 0.0;
                for (uint k1 = 0u; k1 < RUN && i < len; k1++) {
                    precise float s0 = 0.0;
                    for (uint k0 = 0u; k0 < RUN && i < len; k0++) {
                        s0 += x[ix + reducedIndex(vr, rr, i)];
                        i += lanes;
                    }
                    s1 += s0;
                }
                s2 += s1;
            }
            total += s2;
        }
    }

    // No invocation may leave before the barriers; the loop runs equally often
    // for all of them.
    uint me = lane * perGroup + slot;
    part[me] = total;
    for (uint step = lanes / 2u; step > 0u; step /= 2u) {
        barrier();
        if (lane < step) {
            precise float s = part[me] + part[me + step * perGroup];
            part[me] = s;
        }
    }
    if (live && lane == 0u) {
        result[io] = part[me];
    }
}
