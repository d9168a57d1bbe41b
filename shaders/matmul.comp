#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"
#include "float.glsl"

// Words: groups, M, N, K, tiles along M, tiles along N, then views a, b, out.
// The last two axes of each view are the matrix, the ones before it the batch,
// of the same shape in all three.
//
// There are two ways. Where the group has a height, it makes a tile of 4·size.y by
// 4·size.x results, 4×4 of them in each invocation, from slices of DEPTH along K
// that it stages in shared memory. What lies beyond a matrix is staged as 0, in
// both factors, so it adds nothing even beside a NaN or an infinity.
//
// Where the group is flat, nothing is shared: each invocation makes 16 rows of 4
// columns. The elements of a are the same for the whole group, which a CPU driver
// loads once; there a read through shared memory costs as much as one of the
// buffer, for each invocation, and barriers cost more than they save.
//
// Every BLOCK products the sums so far are added to the result and the rounding
// errors of that are kept, so an element goes through BLOCK + 2 roundings at most.

layout(local_size_x = 16, local_size_x_id = 0, local_size_y = 8, local_size_y_id = 1) in;

layout(set = 0, binding = 1, std430) readonly buffer A { float a[]; };
layout(set = 0, binding = 2, std430) readonly buffer B { float b[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Out { float result[]; };

const uint MICRO = 4u;
const uint DEPTH = 16u;
const uint ROWS = 16u;
const uint BLOCK = 256u;

shared float sa[DEPTH * MICRO * gl_WorkGroupSize.y];
shared float sb[DEPTH * MICRO * gl_WorkGroupSize.x];

void main() {
    uint g = linearGroup();
    if (g >= info[0]) { // the same for the whole group
        return;
    }
    uint M = info[1];
    uint N = info[2];
    uint K = info[3];
    uint tilesM = info[4];
    uint tilesN = info[5];

    uint va = 6u;
    uint r = info[va];
    uint vb = va + VIEW_WORDS(r);
    uint vo = vb + VIEW_WORDS(r);
    uint ia = VIEW_OFFSET(va);
    uint ib = VIEW_OFFSET(vb);
    uint io = VIEW_OFFSET(vo);

    uint tile = g % (tilesM * tilesN);
    uint batch = g / (tilesM * tilesN);
    for (uint d = r - 2u; d-- > 0u;) {
        uint c = batch;
        if (d > 0u) {
            uint s = VIEW_SHAPE(vo, d);
            batch = c / s;
            c -= batch * s;
        }
        ia += c * VIEW_STRIDE(va, r, d);
        ib += c * VIEW_STRIDE(vb, r, d);
        io += c * VIEW_STRIDE(vo, r, d);
    }
    uint aM = VIEW_STRIDE(va, r, r - 2u);
    uint aK = VIEW_STRIDE(va, r, r - 1u);
    uint bK = VIEW_STRIDE(vb, r, r - 2u);
    uint bN = VIEW_STRIDE(vb, r, r - 1u);
    uint oM = VIEW_STRIDE(vo, r, r - 2u);
    uint oN = VIEW_STRIDE(vo, r, r - 1u);

    if (gl_WorkGroupSize.y == 1u) {
        uint row0 = (tile / tilesN) * ROWS;
        uint col0 = (tile % tilesN) * MICRO * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
        if (col0 >= N) { // no barrier follows
            return;
        }
        uint at[ROWS];
        uint bt[MICRO];
        [[unroll]] for (uint i = 0u; i < ROWS; i++) {
            at[i] = ia + min(row0 + i, M - 1u) * aM;
        }
        [[unroll]] for (uint j = 0u; j < MICRO; j++) {
            bt[j] = ib + min(col0 + j * gl_WorkGroupSize.x, N - 1u) * bN;
        }
        float sum[ROWS][MICRO];
        float rest[ROWS][MICRO];
        [[unroll]] for (uint i = 0u; i < ROWS; i++) {
            [[unroll]] for (uint j = 0u; j < MICRO; j++) {
                sum[i][j] = 0.0;
                rest[i][j] = 0.0;
            }
        }
        for (uint k0 = 0u; k0 < K; k0 += BLOCK) {
            float acc[ROWS][MICRO];
            [[unroll]] for (uint i = 0u; i < ROWS; i++) {
                [[unroll]] for (uint j = 0u; j < MICRO; j++) {
                    acc[i][j] = 0.0;
                }
            }
            uint end = min(k0 + BLOCK, K);
            for (uint k = k0; k < end; k++) {
                float f[MICRO];
                [[unroll]] for (uint j = 0u; j < MICRO; j++) {
                    f[j] = b[bt[j] + k * bK];
                }
                [[unroll]] for (uint i = 0u; i < ROWS; i++) {
                    float e = a[at[i] + k * aK];
                    [[unroll]] for (uint j = 0u; j < MICRO; j++) {
                        acc[i][j] += e * f[j];
                    }
                }
            }
            [[unroll]] for (uint i = 0u; i < ROWS; i++) {
                [[unroll]] for (uint j = 0u; j < MICRO; j++) {
                    twoSum(sum[i][j], rest[i][j], acc[i][j]);
                }
            }
        }
        [[unroll]] for (uint i = 0u; i < ROWS; i++) {
            [[unroll]] for (uint j = 0u; j < MICRO; j++) {
                uint m = row0 + i;
                uint n = col0 + j * gl_WorkGroupSize.x;
                if (m < M && n < N) {
                    result[io + m * oM + n * oN] = both(sum[i][j], rest[i][j]);
                }
            }
        }
        return;
    }

    uint sx = gl_WorkGroupSize.x;
    uint sy = gl_WorkGroupSize.y;
    uint tx = gl_LocalInvocationID.x;
    uint ty = gl_LocalInvocationID.y;
    uint lid = ty * sx + tx;
    uint size = sx * sy;
    uint rows = MICRO * sy;
    uint cols = MICRO * sx;
    uint row0 = (tile / tilesN) * rows;
    uint col0 = (tile % tilesN) * cols;

    float acc[MICRO][MICRO];
    float sum[MICRO][MICRO];
    float rest[MICRO][MICRO];
    [[unroll]] for (uint i = 0u; i < MICRO; i++) {
        [[unroll]] for (uint j = 0u; j < MICRO; j++) {
            acc[i][j] = 0.0;
            sum[i][j] = 0.0;
            rest[i][j] = 0.0;
        }
    }

    for (uint k0 = 0u; k0 < K; k0 += DEPTH) {
        for (uint e = lid; e < DEPTH * rows; e += size) {
            // Neighbouring invocations read along the axis of unit stride.
            uint k = aK == 1u ? e % DEPTH : e / rows;
            uint m = aK == 1u ? e / DEPTH : e % rows;
            float v = 0.0;
            if (row0 + m < M && k0 + k < K) {
                v = a[ia + (row0 + m) * aM + (k0 + k) * aK];
            }
            sa[k * rows + m] = v;
        }
        for (uint e = lid; e < DEPTH * cols; e += size) {
            uint k = bK == 1u ? e % DEPTH : e / cols;
            uint n = bK == 1u ? e / DEPTH : e % cols;
            float v = 0.0;
            if (col0 + n < N && k0 + k < K) {
                v = b[ib + (k0 + k) * bK + (col0 + n) * bN];
            }
            sb[k * cols + n] = v;
        }
        barrier();
        [[unroll]] for (uint k = 0u; k < DEPTH; k++) {
            float fa[MICRO];
            float fb[MICRO];
            [[unroll]] for (uint i = 0u; i < MICRO; i++) {
                fa[i] = sa[k * rows + ty + i * sy];
                fb[i] = sb[k * cols + tx + i * sx];
            }
            [[unroll]] for (uint i = 0u; i < MICRO; i++) {
                [[unroll]] for (uint j = 0u; j < MICRO; j++) {
                    acc[i][j] += fa[i] * fb[j];
                }
            }
        }
        if ((k0 + DEPTH) % BLOCK == 0u || k0 + DEPTH >= K) {
            [[unroll]] for (uint i = 0u; i < MICRO; i++) {
                [[unroll]] for (uint j = 0u; j < MICRO; j++) {
                    twoSum(sum[i][j], rest[i][j], acc[i][j]);
                    acc[i][j] = 0.0;
                }
            }
        }
        barrier();
    }

    for (uint i = 0u; i < MICRO; i++) {
        uint m = row0 + ty + i * sy;
        for (uint j = 0u; j < MICRO; j++) {
            uint n = col0 + tx + j * sx;
            if (m < M && n < N) {
                result[io + m * oM + n * oN] = both(sum[i][j], rest[i][j]);
            }
        }
    }
}
