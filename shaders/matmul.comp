#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "info.glsl"
#include "float.glsl"

// Words: tiles, M, N, K, tiles along M, tiles along N, how direct operands are read
// (below), then views a, b, out. The last two axes of each view are the matrix, the
// ones before it the batch, of the same shape in all three.
//
// An invocation makes ROWS by COLS results. There are two ways.
//
// STAGED: a tile is what a group makes, ROWS·size.y by COLS·size.x results, from slices of DEPTH along K that the group stages in shared memory. What
// lies beyond a matrix is staged as 0, in both factors, so it adds nothing even beside
// a NaN or an infinity.
//
// Otherwise a tile is an invocation's, which loads for itself, patches of 4×4 elements in four loads of
// four, whichever axis has unit stride: a patch that lies the other way is turned over
// in registers. A driver that runs loads invocation by invocation, as those on the CPU
// do, spends its time on loads, whether of one element or four; patches make that
// ROWS·COLS multiply-adds for ROWS+COLS elements of four loads each. Shared memory costs
// such a driver as much as a buffer, and barriers more than they save.
// The word is 0 where the layouts do not allow patches, else 4, plus 1 if those of a
// lie along M and 2 if those of b lie along K.
//
// Every BLOCK products the sums so far are added to the result and the rounding
// errors of that are kept, so an element goes through BLOCK + 2 roundings at most.

layout(local_size_x = 16, local_size_x_id = 0, local_size_y = 8, local_size_y_id = 1) in;
// ROWS and COLS are powers of two, of 4 at least if not STAGED.
layout(constant_id = 3) const uint ROWS = 4u;
layout(constant_id = 4) const uint COLS = 4u;
layout(constant_id = 5) const uint STAGED = 1u;

layout(set = 0, binding = 1, std430) readonly buffer A { vec4 a[]; };
layout(set = 0, binding = 2, std430) readonly buffer B { vec4 b[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Out { float result[]; };

// Single elements: no driver was seen to load the other three.
#define ELEMENT(v, i) v[(i) >> 2u][(i) & 3u]

const uint DEPTH = 16u;
const uint BLOCK = 256u;

shared float sa[DEPTH * ROWS * gl_WorkGroupSize.y * STAGED + 1u];
shared float sb[DEPTH * COLS * gl_WorkGroupSize.x * STAGED + 1u];

void main() {
    uint sx = gl_WorkGroupSize.x;
    uint sy = gl_WorkGroupSize.y;
    uint tx = gl_LocalInvocationID.x;
    uint ty = gl_LocalInvocationID.y;
    uint lid = ty * sx + tx;
    uint size = sx * sy;
    uint g = STAGED != 0u ? linearGroup() : linearGroup() * size + lid;
    if (g >= info[0]) { // the same for the whole group where it has barriers
        return;
    }
    uint M = info[1];
    uint N = info[2];
    uint K = info[3];
    uint tilesM = info[4];
    uint tilesN = info[5];

    uint va = 7u;
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

    float sum[ROWS][COLS];
    float rest[ROWS][COLS];
    [[unroll]] for (uint i = 0u; i < ROWS; i++) {
        [[unroll]] for (uint j = 0u; j < COLS; j++) {
            sum[i][j] = 0.0;
            rest[i][j] = 0.0;
        }
    }

    if (STAGED == 0u) {
        uint row0 = (tile / tilesN) * ROWS;
        uint col0 = (tile % tilesN) * COLS;
        bool turnA = (info[6] & 1u) != 0u;
        bool turnB = (info[6] & 2u) != 0u;
        uint fours = info[6] == 0u ? 0u : K & ~3u;
        // Which four a load of a patch begins with, and how many elements on one of K is.
        uint at[ROWS];
        uint bt[COLS];
        uint aStep = turnA ? aK : 1u;
        uint bStep = turnB ? 1u : bK;
        [[unroll]] for (uint i = 0u; i < ROWS; i++) {
            at[i] = (ia + (turnA ? min(row0 + (i & ~3u), M - 4u) + (i & 3u) * aK : min(row0 + i, M - 1u) * aM)) >> 2u;
        }
        [[unroll]] for (uint j = 0u; j < COLS; j++) {
            bt[j] = (ib + (turnB ? min(col0 + j, N - 1u) * bN : min(col0 + (j & ~3u), N - 4u) + (j & 3u) * bK)) >> 2u;
        }
        for (uint k0 = 0u; k0 < K; k0 += BLOCK) {
            float acc[ROWS][COLS];
            [[unroll]] for (uint i = 0u; i < ROWS; i++) {
                [[unroll]] for (uint j = 0u; j < COLS; j++) {
                    acc[i][j] = 0.0;
                }
            }
            uint end = min(k0 + BLOCK, K);
            uint k = k0;
            for (; k < min(end, fours); k += 4u) {
                // A stride may be negative. One addition is left for each load.
                uint ak = uint(int(k * aStep) >> 2);
                uint bk = uint(int(k * bStep) >> 2);
                float f[4][COLS];
                [[unroll]] for (uint p = 0u; p < COLS; p += 4u) {
                    vec4 v[4];
                    [[unroll]] for (uint e = 0u; e < 4u; e++) {
                        v[e] = b[bt[p + e] + bk];
                    }
                    [[unroll]] for (uint e = 0u; e < 4u; e++) {
                        [[unroll]] for (uint j = 0u; j < 4u; j++) {
                            f[e][p + j] = turnB ? v[j][e] : v[e][j];
                        }
                    }
                }
                [[unroll]] for (uint p = 0u; p < ROWS; p += 4u) {
                    vec4 v[4];
                    [[unroll]] for (uint e = 0u; e < 4u; e++) {
                        v[e] = a[at[p + e] + ak];
                    }
                    [[unroll]] for (uint i = 0u; i < 4u; i++) {
                        [[unroll]] for (uint e = 0u; e < 4u; e++) {
                            float c = turnA ? v[e][i] : v[i][e];
                            [[unroll]] for (uint j = 0u; j < COLS; j++) {
                                acc[p + i][j] = fma(c, f[e][j], acc[p + i][j]);
                            }
                        }
                    }
                }
            }
            for (; k < end; k++) {
                float f[COLS];
                [[unroll]] for (uint j = 0u; j < COLS; j++) {
                    uint n = min(col0 + j, N - 1u);
                    f[j] = ELEMENT(b, ib + n * bN + k * bK);
                }
                [[unroll]] for (uint i = 0u; i < ROWS; i++) {
                    uint m = min(row0 + i, M - 1u);
                    float c = ELEMENT(a, ia + m * aM + k * aK);
                    [[unroll]] for (uint j = 0u; j < COLS; j++) {
                        acc[i][j] = fma(c, f[j], acc[i][j]);
                    }
                }
            }
            [[unroll]] for (uint i = 0u; i < ROWS; i++) {
                [[unroll]] for (uint j = 0u; j < COLS; j++) {
                    twoSum(sum[i][j], rest[i][j], acc[i][j]);
                }
            }
        }
        [[unroll]] for (uint i = 0u; i < ROWS; i++) {
            [[unroll]] for (uint j = 0u; j < COLS; j++) {
                if (row0 + i < M && col0 + j < N) {
                    result[io + (row0 + i) * oM + (col0 + j) * oN] = both(sum[i][j], rest[i][j]);
                }
            }
        }
        return;
    }

    uint rows = ROWS * sy;
    uint cols = COLS * sx;
    uint row0 = (tile / tilesN) * rows;
    uint col0 = (tile % tilesN) * cols;

    float acc[ROWS][COLS];
    [[unroll]] for (uint i = 0u; i < ROWS; i++) {
        [[unroll]] for (uint j = 0u; j < COLS; j++) {
            acc[i][j] = 0.0;
        }
    }

    for (uint k0 = 0u; k0 < K; k0 += DEPTH) {
        for (uint e = lid; e < DEPTH * rows; e += size) {
            // Neighbouring invocations read along the axis of unit stride.
            uint k = aK == 1u ? e % DEPTH : e / rows;
            uint m = aK == 1u ? e / DEPTH : e % rows;
            float v = 0.0;
            if (row0 + m < M && k0 + k < K) {
                v = ELEMENT(a, ia + (row0 + m) * aM + (k0 + k) * aK);
            }
            sa[k * rows + m] = v;
        }
        for (uint e = lid; e < DEPTH * cols; e += size) {
            uint k = bK == 1u ? e % DEPTH : e / cols;
            uint n = bK == 1u ? e / DEPTH : e % cols;
            float v = 0.0;
            if (col0 + n < N && k0 + k < K) {
                v = ELEMENT(b, ib + (k0 + k) * bK + (col0 + n) * bN);
            }
            sb[k * cols + n] = v;
        }
        barrier();
        [[unroll]] for (uint k = 0u; k < DEPTH; k++) {
            float fa[ROWS];
            float fb[COLS];
            [[unroll]] for (uint i = 0u; i < ROWS; i++) {
                fa[i] = sa[k * rows + ty + i * sy];
            }
            [[unroll]] for (uint j = 0u; j < COLS; j++) {
                fb[j] = sb[k * cols + tx + j * sx];
            }
            [[unroll]] for (uint i = 0u; i < ROWS; i++) {
                [[unroll]] for (uint j = 0u; j < COLS; j++) {
                    acc[i][j] = fma(fa[i], fb[j], acc[i][j]);
                }
            }
        }
        if ((k0 + DEPTH) % BLOCK == 0u || k0 + DEPTH >= K) {
            [[unroll]] for (uint i = 0u; i < ROWS; i++) {
                [[unroll]] for (uint j = 0u; j < COLS; j++) {
                    twoSum(sum[i][j], rest[i][j], acc[i][j]);
                    acc[i][j] = 0.0;
                }
            }
        }
        barrier();
    }

    [[unroll]] for (uint i = 0u; i < ROWS; i++) {
        uint m = row0 + ty + i * sy;
        [[unroll]] for (uint j = 0u; j < COLS; j++) {
            uint n = col0 + tx + j * sx;
            if (m < M && n < N) {
                result[io + m * oM + n * oN] = both(sum[i][j], rest[i][j]);
            }
        }
    }
}
