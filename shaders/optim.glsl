// Optimiser steps. STATES is the number of tensors beside the weights that a step
// keeps: 0 gradient descent, 1 momentum, 2 Adam.
//
// Words: eight parameters, and those of walk.glsl for the weights, the gradient and
// the states.

#define TENSORS (STATES + 2)
#define WALK 2u
#include "walk.glsl"

layout(push_constant) uniform Push { float rate; };

layout(set = 0, binding = 1, std430) readonly buffer G { float gradient[]; };
layout(set = 0, binding = 1, std430) readonly buffer G4 { vec4 gradient4[]; };
#if STATES == 2
#define WEIGHTS 3
layout(set = 0, binding = 2, std430) readonly buffer S { int count[]; };
layout(set = 0, binding = 5, std430) buffer V { float second[]; };
layout(set = 0, binding = 5, std430) buffer V4 { vec4 second4[]; };
#else
#define WEIGHTS 2
#endif
layout(set = 0, binding = WEIGHTS, std430) buffer W { float weights[]; };
layout(set = 0, binding = WEIGHTS, std430) buffer W4 { vec4 weights4[]; };
#if STATES > 0
layout(set = 0, binding = WEIGHTS + 1, std430) buffer M { float first[]; };
layout(set = 0, binding = WEIGHTS + 1, std430) buffer M4 { vec4 first4[]; };
#endif

// 1 - exp(z) for z <= 0, without cancellation near 0.
float rest(float z) {
    if (z < -0.4) {
        return 1.0 - exp(z);
    }
    return -z * (1.0 + z * (0.5 + z * (0.166666667 + z * (0.0416666667 + z * (8.33333333e-3 + z * (1.38888889e-3 + z * 1.98412698e-4))))));
}

// STEP is a step of T, a float or four: w the weights, slope the gradient, m and v the
// states.
#if STATES == 0
#define STEP(T) w -= rate * slope;
#elif STATES == 1
#define STEP(T) m = p.x * m + slope; w -= rate * m;
#else
#define STEP(T) \
    m = p.x * m + p.y * slope; \
    v = p.w * v + q.x * (slope * slope); \
    w -= rate * (m / rest1) / (sqrt(v / rest2) + T(q.z));
#endif

void main() {
    uint i = item();
    if (i >= head.z) {
        return;
    }
    vec4 p = uintBitsToFloat(info4[0]);
#if STATES == 2
    vec4 q = uintBitsToFloat(info4[1]);
    float t = float(count[info[7]]);
    float rest1 = rest(t * p.z);
    float rest2 = rest(t * q.y);
#endif
    bool whole = !splat(1u);
    uint length = walk(i);
    uint run = blocks ? length : 0u;
    vec4 slope = vec4(0.0);
    if (!whole) {
        slope = vec4(gradient[at[1]]);
    }
    for (uint k = 0u; k < run; k++) {
        if (whole) {
            slope = gradient4[at[1] + k];
        }
        vec4 w = weights4[at[0] + k];
#if STATES > 0
        vec4 m = first4[at[2] + k];
#endif
#if STATES > 1
        vec4 v = second4[at[3] + k];
#endif
        STEP(vec4)
        weights4[at[0] + k] = w;
#if STATES > 0
        first4[at[2] + k] = m;
#endif
#if STATES > 1
        second4[at[3] + k] = v;
#endif
    }
    run = singles(i, length);
    for (uint k = 0u; k < run; k++) {
        float slope = gradient[at[1] + k * steps.y];
        float w = weights[at[0] + k * steps.x];
#if STATES > 0
        float m = first[at[2] + k * steps.z];
#endif
#if STATES > 1
        float v = second[at[3] + k * steps.w];
#endif
        STEP(float)
        weights[at[0] + k * steps.x] = w;
#if STATES > 0
        first[at[2] + k * steps.z] = m;
#endif
#if STATES > 1
        second[at[3] + k * steps.w] = v;
#endif
    }
}
