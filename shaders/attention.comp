#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"
#include "float.glsl"

// Words: groups, pieces of a head, elements of a head, keys in the cache, scale,
// steps along a head of (out, q, k, v), steps between keys of (k, v), columns, fours,
// then views out, q, k, v, the row number and the position over batch, row and head.
//
// A group makes a piece of one row and head of out: one unit for each of its columns, a
// power of two of invocations. A unit is an element, or with fours 1, where heads lie side
// by side and aligned, four of them, which a driver on the CPU loads at the price of one.
// It goes through the keys in tiles of size.x: an invocation works out the score of one
// key, then sums one unit of the values over the keys of its part of the group, with the
// greatest score so far taken off (Milakov and Gimelshein, "Online normalizer calculation
// for softmax", 2018). In the end the parts are added.

layout(local_size_x = 64, local_size_x_id = 0) in;

layout(set = 0, binding = 1, std430) readonly buffer Q { vec4 q[]; };
layout(set = 0, binding = 2, std430) readonly buffer K { vec4 keys[]; };
layout(set = 0, binding = 3, std430) readonly buffer V { vec4 values[]; };
layout(set = 0, binding = 4, std430) readonly buffer Position { int position[]; };
layout(set = 0, binding = 5, std430) writeonly buffer Out { vec4 result[]; };

// Single elements: no driver was seen to load or store the other three.
#define ELEMENT(v, i) v[(i) >> 2u][(i) & 3u]

const uint MAX_HEAD = 1024u;
shared vec4 query[MAX_HEAD / 4u];
// Scores of a tile, later the sums of parts.
shared vec4 score[gl_WorkGroupSize.x / 4u + 1u];
shared vec4 sums[gl_WorkGroupSize.x];
shared float weights[gl_WorkGroupSize.x];

void main() {
    uint g = linearGroup();
    if (g >= info[0]) { // the same for the whole group
        return;
    }
    uint pieces = info[1];
    uint len = info[2];
    uint cache = info[3];
    float scale = uintBitsToFloat(info[4]);
    uint os = info[5], qs = info[6], ks = info[7], vs = info[8];
    uint kn = info[9], vn = info[10];

    uint columns = info[11];
    bool fours = info[12] != 0u;

    const uint vo = 13u;
    uint r = info[vo];
    uint vq = vo + VIEW_WORDS(r);
    uint vk = vq + VIEW_WORDS(r);
    uint vv = vk + VIEW_WORDS(r);
    uint vc = vv + VIEW_WORDS(r);
    uint vp = vc + VIEW_WORDS(r);
    uint io = VIEW_OFFSET(vo);
    uint iq = VIEW_OFFSET(vq);
    uint ik = VIEW_OFFSET(vk);
    uint iv = VIEW_OFFSET(vv);
    uint row = VIEW_OFFSET(vc);
    uint ip = VIEW_OFFSET(vp);
    uint i = g / pieces;
    uint piece = g - i * pieces;
    for (uint d = r; d-- > 0u;) {
        uint c = i;
        if (d > 0u) {
            uint s = VIEW_SHAPE(vo, d);
            i = c / s;
            c -= i * s;
        }
        io += c * VIEW_STRIDE(vo, r, d);
        iq += c * VIEW_STRIDE(vq, r, d);
        ik += c * VIEW_STRIDE(vk, r, d);
        iv += c * VIEW_STRIDE(vv, r, d);
        row += c * VIEW_STRIDE(vc, r, d);
        ip += c * VIEW_STRIDE(vp, r, d);
    }
    int seen = position[ip] + int(row) + 1;
    uint live = uint(clamp(seen, 0, int(cache)));

    uint lid = gl_LocalInvocationID.x;
    uint size = gl_WorkGroupSize.x;
    uint parts = size / columns;
    uint part = lid / columns;
    uint units = fours ? len >> 2u : len;
    uint unit = piece * columns + (lid & (columns - 1u));
    bool mine = unit < units;
    uint four = fours ? units : 0u; // of a head that are read so
    for (uint d = lid; d < four; d += size) {
        query[d] = q[(iq >> 2u) + d];
    }
    for (uint d = 4u * four + lid; d < len; d += size) {
        ELEMENT(query, d) = ELEMENT(q, iq + d * qs);
    }
    barrier();

    const float NOTHING = uintBitsToFloat(0xff800000u);
    float most = NOTHING;
    float weight = 0.0;
    vec4 total = vec4(0.0);
    for (uint first = 0u; first < live; first += size) {
        uint count = min(size, live - first);
        float own = NOTHING;
        if (lid < count) {
            uint at = ik + (first + lid) * kn;
            uint at4 = at >> 2u;
            vec4 dots = vec4(0.0);
            for (uint d = 0u; d < four; d++) {
                dots += query[d] * keys[at4 + d];
            }
            for (uint d = 4u * four; d < len; d += 4u) {
                [[unroll]] for (uint e = 0u; e < 4u; e++) {
                    if (d + e < len) {
                        dots[e] += ELEMENT(query, d + e) * ELEMENT(keys, at + (d + e) * ks);
                    }
                }
            }
            own = ((dots.x + dots.y) + (dots.z + dots.w)) * scale;
        }
        ELEMENT(score, lid) = own;
        barrier();
        vec4 tops = vec4(most);
        for (uint j = 0u; j < size >> 2u; j++) {
            tops = max(tops, score[j]);
        }
        float top = max(max(tops.x, tops.y), max(tops.z, tops.w));
        barrier();
        ELEMENT(score, lid) = lid < count ? expf(own - top) : 0.0;
        barrier();
        float fade = expf(most - top);
        most = top;
        weight *= fade;
        total *= fade;
        uint at = iv + first * vn;
        uint at4 = (at >> 2u) + unit;
        uint vn4 = uint(int(vn) >> 2);
        uint end = mine && fours ? count : 0u;
        for (uint j = 4u * part; j < end; j += 4u * parts) {
            vec4 p = score[j >> 2u];
            weight += (p.x + p.y) + (p.z + p.w);
            [[unroll]] for (uint e = 0u; e < 4u; e++) {
                if (j + e < end) {
                    total += p[e] * values[at4 + (j + e) * vn4];
                }
            }
        }
        at += unit * vs;
        end = mine && !fours ? count : 0u;
        for (uint j = 4u * part; j < end; j += 4u * parts) {
            vec4 p = score[j >> 2u];
            weight += (p.x + p.y) + (p.z + p.w);
            [[unroll]] for (uint e = 0u; e < 4u; e++) {
                if (j + e < end) {
                    total.x += p[e] * ELEMENT(values, at + (j + e) * vn);
                }
            }
        }
        barrier();
    }
    sums[lid] = total;
    weights[lid] = weight;
    for (uint step = parts / 2u; step > 0u; step /= 2u) {
        barrier();
        if (part < step) {
            sums[lid] += sums[lid + step * columns];
            weights[lid] += weights[lid + step * columns];
        }
    }
    if (part == 0u && mine) {
        vec4 v = live == 0u ? vec4(0.0) : sums[lid] / weights[lid];
        if (fours) {
            result[(io >> 2u) + unit] = v;
        } else {
            ELEMENT(result, io + unit * os) = v.x;
        }
    }
}
