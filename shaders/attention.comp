#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"
#include "float.glsl"

// Words: groups, pieces of a head, elements of a head, keys in the cache, scale,
// steps along a head of (out, q, k, v), steps between keys of (k, v), offset of the
// position, then views out, q, k, v and the row number over batch, row and head.
//
// A group makes a piece of size.x elements of one row and head of out. It goes
// through the keys in tiles of size.x: an invocation works out the score of one
// key, then sums one element of the values, with the greatest score so far taken
// off (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).

layout(local_size_x = 64, local_size_x_id = 0) in;

layout(set = 0, binding = 1, std430) readonly buffer Q { float q[]; };
layout(set = 0, binding = 2, std430) readonly buffer K { float keys[]; };
layout(set = 0, binding = 3, std430) readonly buffer V { float values[]; };
layout(set = 0, binding = 4, std430) readonly buffer Position { int position[]; };
layout(set = 0, binding = 5, std430) writeonly buffer Out { float result[]; };

const uint MAX_HEAD = 1024u;
shared float query[MAX_HEAD];
shared float score[gl_WorkGroupSize.x];

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

    uint vo = 12u;
    uint r = info[vo];
    uint vq = vo + VIEW_WORDS(r);
    uint vk = vq + VIEW_WORDS(r);
    uint vv = vk + VIEW_WORDS(r);
    uint vc = vv + VIEW_WORDS(r);
    uint io = VIEW_OFFSET(vo);
    uint iq = VIEW_OFFSET(vq);
    uint ik = VIEW_OFFSET(vk);
    uint iv = VIEW_OFFSET(vv);
    uint row = VIEW_OFFSET(vc);
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
    }
    int seen = position[info[11]] + int(row) + 1;
    uint live = uint(clamp(seen, 0, int(cache)));

    uint lid = gl_LocalInvocationID.x;
    uint size = gl_WorkGroupSize.x;
    uint element = piece * size + lid;
    for (uint d = lid; d < len; d += size) {
        query[d] = q[iq + d * qs];
    }
    barrier();

    float most = uintBitsToFloat(0xff800000u);
    float weight = 0.0;
    float total = 0.0;
    for (uint first = 0u; first < live; first += size) {
        uint count = min(size, live - first);
        float mine = 0.0;
        if (lid < count) {
            uint at = ik + (first + lid) * kn;
            uint d = 0u;
            for (; d + 4u <= len; d += 4u) {
                [[unroll]] for (uint e = 0u; e < 4u; e++) {
                    mine += query[d + e] * keys[at + (d + e) * ks];
                }
            }
            for (; d < len; d++) {
                mine += query[d] * keys[at + d * ks];
            }
            mine *= scale;
            score[lid] = mine;
        }
        barrier();
        float top = most;
        uint j = 0u;
        for (; j + 8u <= count; j += 8u) {
            [[unroll]] for (uint e = 0u; e < 8u; e++) {
                top = max(top, score[j + e]);
            }
        }
        for (; j < count; j++) {
            top = max(top, score[j]);
        }
        barrier();
        if (lid < count) {
            score[lid] = expf(mine - top);
        }
        barrier();
        float fade = expf(most - top);
        most = top;
        weight *= fade;
        total *= fade;
        if (element < len) {
            uint at = iv + first * vn + element * vs;
            uint j = 0u;
            for (; j + 8u <= count; j += 8u) {
                [[unroll]] for (uint e = 0u; e < 8u; e++) {
                    float p = score[j + e];
                    weight += p;
                    total += p * values[at + (j + e) * vn];
                }
            }
            for (; j < count; j++) {
                float p = score[j];
                weight += p;
                total += p * values[at + j * vn];
            }
        }
        barrier();
    }
    if (element < len) {
        result[io + element * os] = live == 0u ? 0.0 : total / weight;
    }
}
