// Element-wise kernels. The including file says how many INPUTS there are (1, 2
// or 3) and defines APPLY(x, y, z) from bit patterns to a bit pattern.
//
// Words: n, elements per invocation, then the views of the inputs and of out, all
// of the same shape. A group takes a run of size·per elements, and neighbouring
// invocations take neighbouring elements.

layout(local_size_x = 64, local_size_x_id = 0) in;

layout(set = 0, binding = 1, std430) readonly buffer X { uint x[]; };
#if INPUTS > 1
layout(set = 0, binding = 2, std430) readonly buffer Y { uint y[]; };
#endif
#if INPUTS > 2
layout(set = 0, binding = 3, std430) readonly buffer Z { uint z[]; };
#endif
layout(set = 0, binding = INPUTS + 1, std430) writeonly buffer Out { uint result[]; };

void main() {
    uint n = info[0];
    uint chunk = gl_WorkGroupSize.x * info[1];
    uint g = linearGroup();
    if (g > (n - 1u) / chunk) {
        return;
    }
    uint vx = 2u;
    uint r = info[vx];
    uint vy = vx + VIEW_WORDS(r);
    uint vz = INPUTS > 1 ? vy + VIEW_WORDS(r) : vy;
    uint vo = INPUTS > 2 ? vz + VIEW_WORDS(r) : vz;
    uint last = min(n - g * chunk, chunk);
    uint e = gl_LocalInvocationID.x;
    // One axis needs no walk, and four elements a round hide what a round costs.
    if (r <= 1u) {
        uint size = gl_WorkGroupSize.x;
        uint sx = r == 1u ? VIEW_STRIDE(vx, 1u, 0u) : 0u;
        uint so = r == 1u ? VIEW_STRIDE(vo, 1u, 0u) : 0u;
        uint bx = VIEW_OFFSET(vx) + g * chunk * sx;
        uint bo = VIEW_OFFSET(vo) + g * chunk * so;
#if INPUTS > 1
        uint sy = r == 1u ? VIEW_STRIDE(vy, 1u, 0u) : 0u;
        uint by = VIEW_OFFSET(vy) + g * chunk * sy;
#endif
#if INPUTS > 2
        uint sz = r == 1u ? VIEW_STRIDE(vz, 1u, 0u) : 0u;
        uint bz = VIEW_OFFSET(vz) + g * chunk * sz;
#endif
        for (; e + 3u * size < last; e += 4u * size) {
            uint v[4];
            [[unroll]] for (uint k = 0u; k < 4u; k++) {
                uint i = e + k * size;
#if INPUTS == 1
                v[k] = APPLY(x[bx + i * sx], 0u, 0u);
#elif INPUTS == 2
                v[k] = APPLY(x[bx + i * sx], y[by + i * sy], 0u);
#else
                v[k] = APPLY(x[bx + i * sx], y[by + i * sy], z[bz + i * sz]);
#endif
            }
            [[unroll]] for (uint k = 0u; k < 4u; k++) {
                result[bo + (e + k * size) * so] = v[k];
            }
        }
    }
    for (; e < last; e += gl_WorkGroupSize.x) {
        uint i = g * chunk + e;
        uint ix = VIEW_OFFSET(vx);
        uint iy = VIEW_OFFSET(vy);
        uint iz = VIEW_OFFSET(vz);
        uint io = VIEW_OFFSET(vo);
        for (uint d = r; d-- > 0u;) {
            uint c = i;
            if (d > 0u) { // the outermost axis needs no division, so neither does rank 1
                uint s = VIEW_SHAPE(vo, d);
                i = c / s;
                c -= i * s;
            }
            ix += c * VIEW_STRIDE(vx, r, d);
#if INPUTS > 1
            iy += c * VIEW_STRIDE(vy, r, d);
#endif
#if INPUTS > 2
            iz += c * VIEW_STRIDE(vz, r, d);
#endif
            io += c * VIEW_STRIDE(vo, r, d);
        }
#if INPUTS == 1
        result[io] = APPLY(x[ix], 0u, 0u);
#elif INPUTS == 2
        result[io] = APPLY(x[ix], y[iy], 0u);
#else
        result[io] = APPLY(x[ix], y[iy], z[iz]);
#endif
    }
}
