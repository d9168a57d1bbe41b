#version 450
#extension GL_GOOGLE_include_directive : require
#include "info.glsl"

// Words: groups, M, N, K, tiles along M, tiles along N, then views a, b, out.
// The last two axes of each view are the matrix, the ones before it the batch,
// of the same shape in all three.
//
// A group makes a tile of 4·size.y by 4·size.x results, 4×4 of them in each
// invocation, from slices of DEPTH along K that it stages in shared memory.
// What lies beyond a matrix is staged as 0, in both factors, so it adds nothing
// even beside a NaN or an infinity.

layout(local_size_x = 16, local_size_x_id = 0, local_size_y = 8, local_size_y_id = 1) in;

layout(set = 0, binding = 1, std430) readonly buffer A { float a[]; };
layout(set = 0, binding = 2, std430) readonly buffer B { float b[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Out { float result[]; };

const uint MICRO = 4u;
const uint DEPTH = 16u;

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
    for (uint i = 0u; i < MICRO; i++) {
        for (uint j = 0u; j < MICRO; j++) {
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
        uint depth = min(DEPTH, K - k0);
        for (uint k = 0u; k < depth; k++) {
            float fa[MICRO];
            float fb[MICRO];
            for (uint i = 0u; i < MICRO; i++) {
                fa[i] = sa[k * rows + ty + i * sy];
                fb[i] = sb[k * cols + tx + i * sx];
            }
            for (uint i = 0u; i < MICRO; i++) {
                for (uint j = 0u; j < MICRO; j++) {
                    acc[i][j] += fa[i] * fb[j];
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
                result[io + m * oM + n * oN] = acc[i][j];
            }
        }
    }
}
