// Optimiser steps. STATES is the number of tensors beside the weights that a step
// keeps: 0 gradient descent, 1 momentum, 2 Adam.
//
// Words: n, elements per invocation, eight parameters, then views of the weights,
// the gradient and the states.

layout(local_size_x = 64, local_size_x_id = 0) in;

layout(push_constant) uniform Push { float rate; };

layout(set = 0, binding = 1, std430) readonly buffer G { float gradient[]; };
#if STATES == 2
layout(set = 0, binding = 2, std430) readonly buffer S { int steps[]; };
layout(set = 0, binding = 3, std430) buffer W { float weights[]; };
layout(set = 0, binding = 4, std430) buffer M { float first[]; };
layout(set = 0, binding = 5, std430) buffer V { float second[]; };
#else
layout(set = 0, binding = 2, std430) buffer W { float weights[]; };
#if STATES == 1
layout(set = 0, binding = 3, std430) buffer M { float first[]; };
#endif
#endif

// 1 - exp(z) for z <= 0, without cancellation near 0.
float rest(float z) {
    if (z < -0.4) {
        return 1.0 - exp(z);
    }
    return -z * (1.0 + z * (0.5 + z * (0.166666667 + z * (0.0416666667 + z * (8.33333333e-3 + z * (1.38888889e-3 + z * 1.98412698e-4))))));
}

float parameter(uint i) { return uintBitsToFloat(info[2u + i]); }

void main() {
    uint n = info[0];
    uint chunk = gl_WorkGroupSize.x * info[1];
    uint g = linearGroup();
    if (g > (n - 1u) / chunk) {
        return;
    }
#if STATES == 2
    float t = float(steps[info[9]]);
    float rest1 = rest(t * parameter(2u));
    float rest2 = rest(t * parameter(5u));
#endif
    uint vw = 10u;
    uint r = info[vw];
    uint vg = vw + VIEW_WORDS(r);
    uint vm = vg + VIEW_WORDS(r);
    uint vv = vm + VIEW_WORDS(r);
    uint last = min(n - g * chunk, chunk);
    for (uint e = gl_LocalInvocationID.x; e < last; e += gl_WorkGroupSize.x) {
        uint i = g * chunk + e;
        uint iw = VIEW_OFFSET(vw);
        uint ig = VIEW_OFFSET(vg);
#if STATES > 0
        uint im = VIEW_OFFSET(vm);
#endif
#if STATES > 1
        uint iv = VIEW_OFFSET(vv);
#endif
        for (uint d = r; d-- > 0u;) {
            uint c = i;
            if (d > 0u) {
                uint s = VIEW_SHAPE(vw, d);
                i = c / s;
                c -= i * s;
            }
            iw += c * VIEW_STRIDE(vw, r, d);
            ig += c * VIEW_STRIDE(vg, r, d);
#if STATES > 0
            im += c * VIEW_STRIDE(vm, r, d);
#endif
#if STATES > 1
            iv += c * VIEW_STRIDE(vv, r, d);
#endif
        }
        float slope = gradient[ig];
#if STATES == 0
        weights[iw] -= rate * slope;
#elif STATES == 1
        float m = parameter(0u) * first[im] + slope;
        first[im] = m;
        weights[iw] -= rate * m;
#else
        float m = parameter(0u) * first[im] + parameter(1u) * slope;
        float v = parameter(3u) * second[iv] + parameter(4u) * (slope * slope);
        first[im] = m;
        second[iv] = v;
        weights[iw] -= rate * (m / rest1) / (sqrt(v / rest2) + parameter(6u));
#endif
    }
}
