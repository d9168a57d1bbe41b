// Kernels that work on rows, the last axis, with `lanes` invocations a row, a
// power of two. A group serves size/lanes rows side by side.
//
// Words: rows, length, lanes, step along a row of x and of out, fours, parameters as the
// kernel says (PARAMS of them), then the views over the other axes: out, x, and
// one for labels where there are any (TENSORS altogether).
//
// With fours 1 every row of x and out, and of what is read along with them, lies side by
// side from a multiple of four elements on, and is read and written four at a time: a
// driver on the CPU runs loads and stores invocation by invocation, and four elements
// cost it little more than one. What is left of four comes one by one.

layout(local_size_x = 64, local_size_x_id = 0) in;

shared uint part[gl_WorkGroupSize.x];

uint rowBase[TENSORS];

// setRow works out where the tensors' rows begin.
void setRow(uint row) {
    uint v = 6u + PARAMS;
    uint r = info[v];
    for (uint t = 0u; t < TENSORS; t++) {
        rowBase[t] = info[v + t * VIEW_WORDS(r) + 1u];
    }
    for (uint d = r; d-- > 0u;) {
        uint c = row;
        if (d > 0u) {
            uint s = VIEW_SHAPE(v, d);
            row = c / s;
            c -= row * s;
        }
        for (uint t = 0u; t < TENSORS; t++) {
            rowBase[t] += c * VIEW_STRIDE(v + t * VIEW_WORDS(r), r, d);
        }
    }
}

// Single elements: no driver was seen to load or store the other three.
#define ELEMENT(v, i) v[(i) >> 2u][(i) & 3u]

// A sum with its rounding error beside it (Kahan and Babuška).
struct Sum { float sum; float rest; };

void add(inout Sum s, float v) {
    precise float t = s.sum + v;
    precise float b = t - s.sum;
    precise float e = (s.sum - (t - b)) + (v - b);
    s.sum = t;
    s.rest += e;
}

// Both combine the lanes of each row, as a tree; every invocation of the group must
// come here, and each gets the result of its row.
float sumLanes(Sum s, uint lanes, uint lane) {
    uint lid = gl_LocalInvocationID.x;
    float mine = s.sum + s.rest;
    if (lanes == 1u) {
        return mine;
    }
    part[lid] = floatBitsToUint(mine);
    for (uint step = lanes / 2u; step > 0u; step /= 2u) {
        barrier();
        if (lane < step) {
            part[lid] = floatBitsToUint(uintBitsToFloat(part[lid]) + uintBitsToFloat(part[lid + step]));
        }
    }
    barrier();
    float all = uintBitsToFloat(part[lid - lane]);
    barrier();
    return all;
}

uint maxLanes(uint k, uint lanes, uint lane) {
    uint lid = gl_LocalInvocationID.x;
    if (lanes == 1u) {
        return k;
    }
    part[lid] = k;
    for (uint step = lanes / 2u; step > 0u; step /= 2u) {
        barrier();
        if (lane < step) {
            part[lid] = max(part[lid], part[lid + step]);
        }
    }
    barrier();
    uint all = part[lid - lane];
    barrier();
    return all;
}
