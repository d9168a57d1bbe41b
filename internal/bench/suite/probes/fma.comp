#version 450

// Fused multiply-adds and nothing else: ACC chains of type T that do not depend on each
// other, UNROLL steps of each before the loop turns. With a factor of 1 and an addend of
// 1 every chain counts its own steps, and the sum of whole numbers is exact.
//
// Every variant has a binary of its own, made by compile.go, and no loop over an array:
// a compiler that does not unroll would measure its memory.

layout(local_size_x = 64, local_size_x_id = 0) in;

layout(set = 0, binding = 1, std430) readonly buffer X { float x[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Out { float result[]; };
layout(push_constant) uniform Push { uint rounds; };

#if ACC > 8
#define FROM8(M) M(8) M(9) M(10) M(11)
#else
#define FROM8(M)
#endif
#if ACC > 12
#define FROM12(M) M(12) M(13) M(14) M(15)
#else
#define FROM12(M)
#endif
#if ACC > 4
#define FROM4(M) M(4) M(5) M(6) M(7)
#else
#define FROM4(M)
#endif
#if ACC > 2
#define FROM2(M) M(2) M(3)
#else
#define FROM2(M)
#endif
#if ACC > 1
#define FROM1(M) M(1)
#else
#define FROM1(M)
#endif
#define ALL(M) M(0) FROM1(M) FROM2(M) FROM4(M) FROM8(M) FROM12(M)

#define BEGIN(k) a[k] = T(float(i & 7u));
#define STEP(k) a[k] = fma(a[k], m, c);
#define SUM(k) s += a[k];

void main() {
    uint i = gl_GlobalInvocationID.x;
    T m = T(x[0]);
    T c = T(x[1]);
    T a[ACC];
    ALL(BEGIN)
    for (uint r = 0u; r < rounds; r++) {
        ALL(STEP)
#if UNROLL > 1
        ALL(STEP) ALL(STEP) ALL(STEP)
#endif
#if UNROLL > 4
        ALL(STEP) ALL(STEP) ALL(STEP) ALL(STEP)
        ALL(STEP) ALL(STEP) ALL(STEP) ALL(STEP)
        ALL(STEP) ALL(STEP) ALL(STEP) ALL(STEP)
#endif
    }
    T s = T(0.0);
    ALL(SUM)
    result[i] = dot(s, T(1.0));
}
