#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"
#include "float.glsl"

// Words: outputs, length, lanes as a power of two, order, step, total, wide, step between
// the outputs of an invocation, split, extent and step of a row, word of the view of x
// over the kept axes, word of that over the reduced axes, then the views out and x over
// the kept axes, and x over the reduced axes without the row (offset 0).
//
// Output o reduces elements o·step to o·step+length of the reduced axes, as far as
// there are total ones: step is 0 but where one long reduction is cut into parts.
//
// A group serves size/lanes outputs with `lanes` invocations each, a power of
// two. order 0 puts the lanes of one output side by side, order 1 the outputs:
// whichever makes neighbours read neighbouring elements. The reduced axes are walked
// row by row, the last axis being the row; lanes share each row, or with split 1 the
// rows.
//
// Loads are of four elements wherever they can be, because a driver on the CPU runs
// them invocation by invocation, and four elements cost it little more than one. With
// wide 1 they are four of a row, whose ends are taken one by one; with wide 2 they
// belong to four outputs of an invocation, and outputs count fours.
//
// For a sum, each invocation adds four loads as a tree, component by component, and
// keeps the rounding errors of the sums of those; in the end components and lanes are
// added as a tree. So an element goes through some 8 + log2(lanes) roundings whatever
// the length, in an order that depends on shape, offset and group size alone.
//
// Four loads are written out, not looped over, also because llvmpipe ends all loops of
// an invocation after 65535 rounds, without a word.

layout(local_size_x = 64, local_size_x_id = 0) in;
// OP mirrors the reduction constants of reduce.go.
layout(constant_id = 2) const uint OP = 0u;
const uint SUM = 0u, MEAN = 1u, MAX = 2u, MIN = 3u, ARGMAX = 4u;

layout(set = 0, binding = 1, std430) readonly buffer X { uvec4 x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Out { uint result[]; };

// Four values of each invocation with wide 2, one otherwise.
shared uint part[4u * gl_WorkGroupSize.x];
shared uint place[4u * gl_WorkGroupSize.x];

// Single elements: no driver was seen to load the other three.
#define ELEMENT(v, i) v[(i) >> 2u][(i) & 3u]

// What has been seen so far: sums with their rounding errors; for MAX and MIN the
// greatest as a signed number and the least and greatest as unsigned ones, from which
// either result follows; for ARGMAX a rank and where it was.
vec4 sums = vec4(0.0);
vec4 rests = vec4(0.0);
ivec4 top = ivec4(0x80000000);
uvec4 least = uvec4(0xffffffffu);
uvec4 most = uvec4(0u);
uvec4 ranks = uvec4(0u);
uvec4 places = uvec4(0xffffffffu);

void addSums(vec4 v) {
    precise vec4 s = sums + v;
    precise vec4 b = s - sums;
    precise vec4 e = (sums - (s - b)) + (v - b);
    sums = s;
    rests += e;
}

// rank numbers floats from 1 in the order of their values: -0 as 0, every NaN alike
// and above infinity.
uvec4 rank(uvec4 v) {
    // From 0 first, so that no NaN wraps to the number of nothing.
    uvec4 up = v + 0x7f800000u;
    uvec4 down = 0xff800000u - v;
    return min(mix(up, down, lessThan(ivec4(v), ivec4(0))), uvec4(0xff000001u)) + 1u;
}

// take considers four elements, the second of which is hop places behind the first.
void take(uvec4 v, uint at, uint hop) {
    if (OP == SUM || OP == MEAN) {
        addSums(uintBitsToFloat(v));
    } else if (OP == ARGMAX) {
        // Places rise within a component, so the first of equals stays.
        uvec4 k = rank(v);
        bvec4 more = greaterThan(k, ranks);
        ranks = mix(ranks, k, more);
        places = mix(places, at + hop * uvec4(0u, 1u, 2u, 3u), more);
    } else {
        top = max(top, ivec4(v));
        least = min(least, v);
        most = max(most, v);
    }
}

// takeOne considers one element, in the first component, at a place that may lie
// before others.
void takeOne(uint v, uint at) {
    if (OP == SUM || OP == MEAN) {
        twoSum(sums.x, rests.x, uintBitsToFloat(v));
    } else if (OP == ARGMAX) {
        uint k = rank(uvec4(v)).x;
        if (k > ranks.x || k == ranks.x && at < places.x) {
            ranks.x = k;
            places.x = at;
        }
    } else {
        top.x = max(top.x, int(v));
        least.x = min(least.x, v);
        most.x = max(most.x, v);
    }
}

// key is the result of MAX or MIN in component c as a number that grows as the result
// gets better: 0 for nothing, the greatest for NaN.
uint key(uint c) {
    if (least[c] > most[c]) {
        return 0u;
    }
    if (top[c] > int(INF) || most[c] > (INF | 0x80000000u)) {
        return 0xffffffffu;
    }
    if (OP == MAX) {
        return orderKey(top[c] >= 0 ? uint(top[c]) : least[c]);
    }
    return ~orderKey(int(most[c]) < 0 ? most[c] : least[c]);
}

// better: the second of two (key, place) pairs wins.
bool better(uint k, uint p, uint otherKey, uint otherPlace) {
    return otherKey > k || otherKey == k && otherPlace < p;
}

// join makes one of two results.
void join(inout uint k, inout uint p, uint otherKey, uint otherPlace) {
    if (OP == SUM || OP == MEAN) {
        precise float s = uintBitsToFloat(k) + uintBitsToFloat(otherKey);
        k = floatBitsToUint(s);
    } else if (OP == ARGMAX) {
        if (better(k, p, otherKey, otherPlace)) {
            k = otherKey;
            p = otherPlace;
        }
    } else {
        k = max(k, otherKey);
    }
}

void main() {
    uint outputs = info[0];
    uint bits = info[2];
    uint lanes = 1u << bits;
    uint wide = info[6];
    uint perGroup = gl_WorkGroupSize.x >> bits;
    uint lid = gl_LocalInvocationID.x;
    // Of the group's size all divisors are powers of two, which GLSL cannot know.
    uint lane = info[3] == 0u ? lid & (lanes - 1u) : lid >> findMSB(perGroup);
    uint slot = info[3] == 0u ? lid >> bits : lid & (perGroup - 1u);

    uint o = linearGroup() * perGroup + slot;
    bool live = o < outputs;
    uint begin = min(o * info[4], info[5]);
    uint end = live ? min(begin + info[1], info[5]) : begin;

    uint row = info[9];
    uint hop = info[10];
    const uint vo = 13u;
    uint rk = info[vo];
    uint vx = info[11];
    uint vr = info[12];
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

    uint rowLane = info[8] == 0u ? 0u : lane;
    uint rowLanes = info[8] == 0u ? 1u : lanes;
    uint first = info[8] == 0u ? lane : 0u;
    uint next = info[8] == 0u ? lanes : 1u;
    // Without a second division: rows times their extent, which planners keep in range.
    for (uint q = begin / row + rowLane; q * row < end; q += rowLanes) {
        uint at = ix;
        uint c = q;
        for (uint d = info[vr]; d-- > 0u;) {
            uint i = c;
            if (d > 0u) {
                uint s = VIEW_SHAPE(vr, d);
                c = i / s;
                i -= c * s;
            }
            at += i * VIEW_STRIDE(vr, info[vr], d);
        }
        uint lo = max(begin, q * row) - q * row;
        uint count = min(end - q * row, row) - lo;
        uint where = q * row + lo - begin;
        at += lo * hop;
        // Fours begin where a row is aligned. What is before and after comes last.
        uint head = wide == 1u ? min((0u - at) & 3u, count) : 0u;
        uint fours = wide == 0u ? 0u : wide == 1u ? (count - head) >> 2u : count;
        uint from = (at + head) >> 2u;
        uint by = wide == 1u ? 1u : hop >> 2u;
        uint places4 = wide == 1u ? 4u : 1u;
        uint apart = wide == 1u ? 1u : 0u;
        uint i = first;
        if (i + 3u * next < fours) {
            do {
                uvec4 v0 = x[from + i * by];
                uvec4 v1 = x[from + (i + next) * by];
                uvec4 v2 = x[from + (i + 2u * next) * by];
                uvec4 v3 = x[from + (i + 3u * next) * by];
                if (OP == SUM || OP == MEAN) {
                    addSums((uintBitsToFloat(v0) + uintBitsToFloat(v1)) + (uintBitsToFloat(v2) + uintBitsToFloat(v3)));
                } else {
                    uint p = where + head + i * places4;
                    take(v0, p, apart);
                    take(v1, p + next * places4, apart);
                    take(v2, p + 2u * next * places4, apart);
                    take(v3, p + 3u * next * places4, apart);
                }
                i += 4u * next;
            } while (i + 3u * next < fours);
        }
        for (; i < fours; i += next) { // 3 at most
            take(x[from + i * by], where + head + i * places4, apart);
        }
        uint done = wide == 1u ? 4u * fours : fours;
        uint e = first;
        if (wide == 0u) {
            for (; e + 3u * next < count; e += 4u * next) {
                uint to = at + e * hop;
                uint far = next * hop;
                take(uvec4(ELEMENT(x, to), ELEMENT(x, to + far), ELEMENT(x, to + 2u * far), ELEMENT(x, to + 3u * far)), where + e, next);
            }
        }
        for (; e < count - done; e += next) {
            uint p = e < head ? e : e + done;
            takeOne(ELEMENT(x, at + p * hop), where + p);
        }
    }

    uint me = lane * perGroup + slot;
    uint size = gl_WorkGroupSize.x;
    uint values = wide == 2u ? 4u : 1u;
    uint k[4];
    [[unroll]] for (uint c = 0u; c < 4u; c++) {
        k[c] = OP == ARGMAX ? ranks[c] : OP == SUM || OP == MEAN ? floatBitsToUint(both(sums[c], rests[c])) : key(c);
    }
    if (wide != 2u) {
        join(k[2], places.z, k[3], places.w);
        join(k[0], places.x, k[1], places.y);
        join(k[0], places.x, k[2], places.z);
    }
    part[me] = k[0];
    if (OP == ARGMAX) {
        place[me] = places[0];
    }
    if (wide == 2u) {
        [[unroll]] for (uint c = 1u; c < 4u; c++) {
            part[me + c * size] = k[c];
            if (OP == ARGMAX) {
                place[me + c * size] = places[c];
            }
        }
    }
    // No invocation may leave before the barriers; the loops run equally often
    // for all of them.
    for (uint step = lanes / 2u; step > 0u; step /= 2u) {
        barrier();
        if (lane < step) {
            for (uint c = 0u; c < values; c++) {
                uint mine = c * size + me;
                uint other = mine + step * perGroup;
                uint p = 0u;
                uint q = 0u;
                if (OP == ARGMAX) {
                    p = place[mine];
                    q = place[other];
                }
                uint m = part[mine];
                join(m, p, part[other], q);
                part[mine] = m;
                if (OP == ARGMAX) {
                    place[mine] = p;
                }
            }
        }
    }
    if (live && lane == 0u) {
        for (uint c = 0u; c < values; c++) {
            uint r = part[me + c * size];
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
                r = place[me + c * size];
                break;
            }
            result[io + c * info[7]] = r;
        }
    }
}
