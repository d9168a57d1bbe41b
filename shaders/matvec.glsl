// Matrix-vector products; with ADD something is added to each.
//
// Words: units, outputs, length, lanes as a power of two, order, fours, steps along the
// sum of (a, x), block, units of a group, steps from row to row of a block of (out, a, b),
// then views out, a, x (and b) over the outputs.
//
// A unit is an output, or with block 1 it is ROWS outputs, which share one vector and lie
// along one axis. An invocation then has ROWS products for each load of the vector: where
// a driver runs each load invocation by invocation, as those on the CPU do, loads are
// what a product costs, and a load of four elements costs little more than one. With
// fours 1 both factors are read so; the planner sees to it that they can be, and that
// blocks have fours.
//
// Lanes and order are as in reduce.comp. An invocation adds 16 products and keeps the
// rounding errors of the sums of those, so an element goes through some 20 + log2(lanes)
// roundings whatever the length. The 16 are written out for llvmpipe's sake, as in
// reduce.comp. What does not apply is kept short: such a driver runs it once in vain.

layout(local_size_x = 64, local_size_x_id = 0) in;
layout(constant_id = 3) const uint ROWS = 8u;

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

shared float part[gl_WorkGroupSize.x];

float total(vec4 t) { return (t.x + t.y) + (t.z + t.w); }

void main() {
    uint units = info[0];
    uint outputs = info[1];
    uint len = info[2];
    uint bits = info[3];
    bool fours = info[5] != 0u;
    uint as = info[6];
    uint xs = info[7];
    bool block = info[8] != 0u;
    uint perGroup = info[9];
    uint lid = gl_LocalInvocationID.x;
    uint lanes = 1u << bits;
    // All divisors are powers of two.
    uint slots = gl_WorkGroupSize.x >> bits;
    uint lane = info[4] == 0u ? lid & (lanes - 1u) : lid >> findMSB(slots);
    uint slot = info[4] == 0u ? lid >> bits : lid & (slots - 1u);
    uint u = linearGroup() * perGroup + slot;
    bool live = u < units && slot < perGroup;
    uint row = block ? u * ROWS : u;

    const uint vo = 13u;
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
    uint o = row;
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

    if (live && block) {
        uint last = min(ROWS, outputs - row) - 1u;
        uint at[ROWS];
        float sums[ROWS];
        float rests[ROWS];
        [[unroll]] for (uint j = 0u; j < ROWS; j++) {
            at[j] = (ia + min(j, last) * info[11]) >> 2u;
            sums[j] = 0.0;
            rests[j] = 0.0;
        }
        uint xt = ix >> 2u;
        uint count = len >> 2u;
        uint k = 0u;
        if (count >= 4u) {
            // Neighbours are a line of a cache apart: where rows are as long as a power
            // of two, all lines of a column would want the same few places of it.
            uint steps = count >> 2u;
            uint turn = lid < steps ? lid : lid % steps;
            do {
                uint from = k + 4u * turn;
                from -= from < 4u * steps ? 0u : 4u * steps;
                vec4 t[ROWS];
                [[unroll]] for (uint e = 0u; e < 4u; e++) {
                    uint ke = from + e;
                    vec4 v = x[xt + ke];
                    [[unroll]] for (uint j = 0u; j < ROWS; j++) {
                        vec4 w = a[at[j] + ke];
                        t[j] = e == 0u ? w * v : fma(w, v, t[j]);
                    }
                }
                [[unroll]] for (uint j = 0u; j < ROWS; j++) {
                    twoSum(sums[j], rests[j], total(t[j]));
                }
                k += 4u;
            } while (k + 4u <= count);
        }
        for (; k < count; k++) { // 3 at most
            vec4 v = x[xt + k];
            [[unroll]] for (uint j = 0u; j < ROWS; j++) {
                twoSum(sums[j], rests[j], total(a[at[j] + k] * v));
            }
        }
        [[unroll]] for (uint j = 0u; j < ROWS; j++) {
            if (j <= last) {
                float s = both(sums[j], rests[j]);
#ifdef ADD
                s += b[ib + j * info[12]];
#endif
                result[io + j * info[10]] = s;
            }
        }
    }

    bool single = live && !block;
    float sum = 0.0;
    float rest = 0.0;
    uint k = lane;
    uint count = single && fours ? len >> 2u : 0u;
    // Lanes leave at different rounds, so the test comes first: of a loop that tests last
    // SwiftShader loses what the final round of the lane that leaves early has added.
    if (k + 3u * lanes < count) {
        for (; k + 3u * lanes < count; k += 4u * lanes) {
            uint at = (ia >> 2u) + k;
            uint xt = (ix >> 2u) + k;
            vec4 t = a[at] * x[xt];
            [[unroll]] for (uint e = 1u; e < 4u; e++) {
                t = fma(a[at + e * lanes], x[xt + e * lanes], t);
            }
            twoSum(sum, rest, total(t));
        }
    }
    for (; k < count; k += lanes) { // 3 at most
        twoSum(sum, rest, total(a[(ia >> 2u) + k] * x[(ix >> 2u) + k]));
    }
    k = 4u * count + lane;
    count = single ? len : 0u;
    uint ah = lanes * as;
    uint xh = lanes * xs;
    for (; k + 15u * lanes < count; k += 16u * lanes) {
        uint at = ia + k * as;
        uint xt = ix + k * xs;
        vec4 t = vec4(0.0);
        [[unroll]] for (uint e = 0u; e < 16u; e++) {
            t[e & 3u] = fma(ELEMENT(a, at + e * ah), ELEMENT(x, xt + e * xh), t[e & 3u]);
        }
        twoSum(sum, rest, total(t));
    }
    for (; k < count; k += lanes) { // 15 at most
        twoSum(sum, rest, ELEMENT(a, ia + k * as) * ELEMENT(x, ix + k * xs));
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
    if (single && lane == 0u) {
        sum = part[me];
#ifdef ADD
        sum += b[ib];
#endif
        result[io] = sum;
    }
}
