// Element-wise kernels of two inputs. The including file defines OP(x, y).
//
// Words: n, then views a, b, out, all of the same shape.

layout(local_size_x = 64, local_size_x_id = 0) in;

layout(set = 0, binding = 1, std430) readonly buffer A { float a[]; };
layout(set = 0, binding = 2, std430) readonly buffer B { float b[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Out { float result[]; };

void main() {
    uint i = linearGroup() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
    if (i >= info[0]) {
        return;
    }
    uint va = 1u;
    uint r = info[va];
    uint vb = va + VIEW_WORDS(r);
    uint vo = vb + VIEW_WORDS(r);
    uint ia = VIEW_OFFSET(va);
    uint ib = VIEW_OFFSET(vb);
    uint io = VIEW_OFFSET(vo);
    for (uint d = r; d-- > 0u;) {
        uint c = i;
        if (d > 0u) { // the outermost axis needs no division, so neither does rank 1
            uint s = VIEW_SHAPE(vo, d);
            i = c / s;
            c -= i * s;
        }
        ia += c * VIEW_STRIDE(va, r, d);
        ib += c * VIEW_STRIDE(vb, r, d);
        io += c * VIEW_STRIDE(vo, r, d);
    }
    result[io] = OP(a[ia], b[ib]);
}
