#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"
#include "float.glsl"

// Words: rows, length, elements along a row in step (x, out), 1 where a group takes
// a row and 0 where an invocation does, 1 where an invocation may read and write fours,
// then views out and x over the other axes.
//
// The sum so far is kept with its rounding errors (Knuth's two-sum), so a long row
// is as good as a short one. A group takes tiles of 8 elements an invocation, whose
// prefix sums are those of Hillis and Steele (1986): 8 + log2(size) roundings.

layout(local_size_x = 64, local_size_x_id = 0) in;

layout(set = 0, binding = 1, std430) readonly buffer X { vec4 x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Out { vec4 result[]; };

// Single elements: no driver was seen to load or store the other three.
#define ELEMENT(v, i) v[(i) >> 2u][(i) & 3u]

shared float scan[2u * gl_WorkGroupSize.x];

const uint PER = 8u;

void main() {
    uint rows = info[0];
    uint len = info[1];
    uint xs = info[2];
    uint os = info[3];
    bool shared_ = info[4] != 0u;
    uint lid = gl_LocalInvocationID.x;
    uint size = gl_WorkGroupSize.x;
    uint row = shared_ ? linearGroup() : linearGroup() * size + lid;
    bool live = row < rows;
    const uint vo = 6u;
    uint r = info[vo];
    uint vx = vo + VIEW_WORDS(r);
    uint io = VIEW_OFFSET(vo);
    uint ix = VIEW_OFFSET(vx);
    for (uint d = r; d-- > 0u;) {
        uint c = row;
        if (d > 0u) {
            uint s = VIEW_SHAPE(vo, d);
            row = c / s;
            c -= row * s;
        }
        io += c * VIEW_STRIDE(vo, r, d);
        ix += c * VIEW_STRIDE(vx, r, d);
    }
    float sum = 0.0;
    float rest = 0.0;
    if (!shared_) {
        if (live) {
            uint fours = info[5] == 0u ? 0u : len >> 2u;
            uint ix4 = ix >> 2u;
            uint io4 = io >> 2u;
            for (uint i = 0u; i < fours; i++) {
                vec4 v = x[ix4 + i];
                [[unroll]] for (uint k = 0u; k < 4u; k++) {
                    twoSum(sum, rest, v[k]);
                    v[k] = both(sum, rest);
                }
                result[io4 + i] = v;
            }
            for (uint i = 4u * fours; i < len; i++) {
                twoSum(sum, rest, ELEMENT(x, ix + i * xs));
                ELEMENT(result, io + i * os) = both(sum, rest);
            }
        }
        return;
    }
    if (!live) { // the same for the whole group
        return;
    }
    for (uint first = 0u; first < len; first += PER * size) {
        uint i = first + lid * PER;
        uint count = i < len ? min(PER, len - i) : 0u;
        float own[PER];
        float before = 0.0;
        [[unroll]] for (uint k = 0u; k < PER; k++) {
            if (k < count) {
                before += ELEMENT(x, ix + (i + k) * xs);
            }
            own[k] = before;
        }
        uint from = 0u;
        scan[lid] = before;
        for (uint step = 1u; step < size; step *= 2u) {
            barrier();
            float v = scan[from * size + lid];
            if (lid >= step) {
                v += scan[from * size + lid - step];
            }
            from = 1u - from;
            scan[from * size + lid] = v;
        }
        barrier();
        before = lid == 0u ? 0.0 : scan[from * size + lid - 1u];
        [[unroll]] for (uint k = 0u; k < PER; k++) {
            if (k < count) {
                float s = sum, e = rest;
                twoSum(s, e, before + own[k]);
                ELEMENT(result, io + (i + k) * os) = both(s, e);
            }
        }
        twoSum(sum, rest, scan[from * size + size - 1u]);
        barrier();
    }
}
