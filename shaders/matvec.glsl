// Matrix-vector products; with ADD something is added to each.
//
// Words: outputs, length, lanes, order, 1 where all outputs share one vector, steps
// along the sum of (a, x), outputs of a group in blocks (or 0), then views out, a, x
// (and b) over the outputs.
//
// In blocks, an invocation makes BLOCK outputs from loads of four elements: where a
// driver runs each load invocation by invocation, as those on the CPU do, the loads are
// what a product costs, and four elements cost little more than one. The planner sees to
// it that a and x can be read so.
//
// Lanes and order are as in reduce.comp. An invocation adds 16 products and
// keeps the rounding errors of the sums of those, so an element goes through some
// 20 + log2(lanes) roundings whatever the length. The 16 are written out for
// llvmpipe's sake, as in reduce.comp.

layout(local_size_x = 64, local_size_x_id = 0) in;

layout(set = 0, binding = 1, std430) readonly buffer A { vec4 a[]; };
layout(set = 0, binding = 2, std430) readonly buffer X { vec4 x[]; };
#ifdef ADD
layout(set = 0, binding = 3, std430) readonly buffer B { float b[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Out { float result[]; };
#else
layout(set = 0, binding = 3, std430) writeonly buffer Out { float result[]; };
#endif

// Single elements: no driver was seen to load the other three.
#define ELEMENT(v, i) v[(i) >> 2u][(i) & 3u]

const uint BLOCK = 4u;

shared float part[gl_WorkGroupSize.x];

// blocks makes the outputs of a group that works in blocks. The blocks' rows lie
// per / BLOCK apart, so that neighbouring invocations have neighbouring rows.
void blocks(uint outputs, uint len, uint per) {
    uint apart = per / BLOCK;
    uint lid = gl_LocalInvocationID.x;
    uint first = linearGroup() * per;
    uint last = min(outputs, first + per);
    if (lid >= apart || first + lid >= last) { // no barrier follows
        return;
    }
    uint vo = 8u;
    uint r = info[vo];
    uint va = vo + VIEW_WORDS(r);
    uint vx = va + VIEW_WORDS(r);
    uint vb = vx + VIEW_WORDS(r);
    uint io[BLOCK];
    uint ia[BLOCK];
    uint ib[BLOCK];
    float sum[BLOCK];
    float rest[BLOCK];
    [[unroll]] for (uint j = 0u; j < BLOCK; j++) {
        uint o = min(first + lid + j * apart, last - 1u);
        io[j] = VIEW_OFFSET(vo);
        ia[j] = VIEW_OFFSET(va);
#ifdef ADD
        ib[j] = VIEW_OFFSET(vb);
#endif
        for (uint d = r; d-- > 0u;) {
            uint c = o;
            if (d > 0u) {
                uint s = VIEW_SHAPE(vo, d);
                o = c / s;
                c -= o * s;
            }
            io[j] += c * VIEW_STRIDE(vo, r, d);
            ia[j] += c * VIEW_STRIDE(va, r, d);
#ifdef ADD
            ib[j] += c * VIEW_STRIDE(vb, r, d);
#endif
        }
        ia[j] /= 4u;
        sum[j] = 0.0;
        rest[j] = 0.0;
    }
    uint ix = VIEW_OFFSET(vx) / 4u;
    uint fours = len / 4u;
    uint k = 0u;
    for (; k + 4u <= fours; k += 4u) {
        vec4 t[BLOCK];
        [[unroll]] for (uint j = 0u; j < BLOCK; j++) {
            t[j] = vec4(0.0);
        }
        [[unroll]] for (uint e = 0u; e < 4u; e++) {
            vec4 v = x[ix + k + e];
            [[unroll]] for (uint j = 0u; j < BLOCK; j++) {
                t[j] += a[ia[j] + k + e] * v;
            }
        }
        [[unroll]] for (uint j = 0u; j < BLOCK; j++) {
            twoSum(sum[j], rest[j], (t[j].x + t[j].y) + (t[j].z + t[j].w));
        }
    }
    for (; k < fours; k++) { // 3 at most
        vec4 v = x[ix + k];
        [[unroll]] for (uint j = 0u; j < BLOCK; j++) {
            vec4 t = a[ia[j] + k] * v;
            twoSum(sum[j], rest[j], (t.x + t.y) + (t.z + t.w));
        }
    }
    [[unroll]] for (uint j = 0u; j < BLOCK; j++) {
        if (first + lid + j * apart < last) {
            float s = both(sum[j], rest[j]);
#ifdef ADD
            s += b[ib[j]];
#endif
            result[io[j]] = s;
        }
    }
}

void main() {
    uint outputs = info[0];
    uint len = info[1];
    uint lanes = info[2];
    uint as = info[5];
    uint xs = info[6];
    if (info[7] > 0u) {
        blocks(outputs, len, info[7]);
        return;
    }
    uint perGroup = gl_WorkGroupSize.x / lanes;
    uint lid = gl_LocalInvocationID.x;
    uint lane = info[3] == 0u ? lid % lanes : lid / perGroup;
    uint slot = info[3] == 0u ? lid / lanes : lid % perGroup;
    uint o = linearGroup() * perGroup + slot;
    bool live = o < outputs;

    uint vo = 8u;
    uint r = info[vo];
    uint va = vo + VIEW_WORDS(r);
    uint vx = va + VIEW_WORDS(r);
    uint vb = vx + VIEW_WORDS(r);
    uint io = VIEW_OFFSET(vo);
    uint ia = VIEW_OFFSET(va);
    uint ix = VIEW_OFFSET(vx);
#ifdef ADD
    uint ib = VIEW_OFFSET(vb);
#endif
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
#ifdef ADD
        ib += c * VIEW_STRIDE(vb, r, d);
#endif
    }

    float sum = 0.0;
    float rest = 0.0;
    uint k = lane;
    if (live && lanes == 1u && info[4] != 0u) {
        // All invocations want the same element of x: its index depends on the
        // info alone, so a driver may load it once.
        uint jx = VIEW_OFFSET(vx);
        for (; k + 16u <= len; k += 16u) {
            uint at = ia + k * as;
            uint xt = jx + k * xs;
            float t[4] = float[4](0.0, 0.0, 0.0, 0.0);
            [[unroll]] for (uint e = 0u; e < 16u; e++) {
                t[e & 3u] += ELEMENT(a, at + e * as) * ELEMENT(x, xt + e * xs);
            }
            twoSum(sum, rest, (t[0] + t[1]) + (t[2] + t[3]));
        }
    } else if (live) {
        uint ah = lanes * as;
        uint xh = lanes * xs;
        for (; k < len && len - k > 15u * lanes; k += 16u * lanes) {
            uint at = ia + k * as;
            uint xt = ix + k * xs;
            float t[4] = float[4](0.0, 0.0, 0.0, 0.0);
            [[unroll]] for (uint e = 0u; e < 16u; e++) {
                t[e & 3u] += ELEMENT(a, at + e * ah) * ELEMENT(x, xt + e * xh);
            }
            twoSum(sum, rest, (t[0] + t[1]) + (t[2] + t[3]));
        }
    }
    if (live) {
        float t = 0.0; // 15 at most
        for (; k < len; k += lanes) {
            t += ELEMENT(a, ia + k * as) * ELEMENT(x, ix + k * xs);
        }
        twoSum(sum, rest, t);
    }
    sum = both(sum, rest);
    if (lanes > 1u) {
        uint me = lane * perGroup + slot;
        part[me] = sum;
        for (uint step = lanes / 2u; step > 0u; step /= 2u) {
            barrier();
            if (lane < step) {
                part[me] += part[me + step * perGroup];
            }
        }
        sum = part[me];
    }
    if (live && lane == 0u) {
#ifdef ADD
        sum += b[ib];
#endif
        result[io] = sum;
    }
}
