// Numbers by their bits. Drivers may assume that there is no NaN and may flush
// denormals in float arithmetic; integers are exempt from both.

const uint INF = 0x7f800000u;
const uint QNAN = 0x7fc00000u;

bool isNaN(uint x) { return (x & 0x7fffffffu) > INF; }

// orderKey maps float bits to unsigned numbers in the order of the values. -0
// counts as 0, and every NaN as more than infinity.
uint orderKey(uint x) {
    if (isNaN(x)) {
        return 0xffffffffu;
    }
    if (x == 0x80000000u) {
        x = 0u;
    }
    return (x & 0x80000000u) != 0u ? ~x : x | 0x80000000u;
}

uint fromKey(uint k) {
    if (k == 0xffffffffu) {
        return QNAN;
    }
    return (k & 0x80000000u) != 0u ? k & 0x7fffffffu : ~k;
}

// expf is exp with its limits spelled out: 0 at -infinity.
float expf(float x) {
    uint b = floatBitsToUint(x);
    if (b == 0xff800000u) {
        return 0.0;
    }
    return exp(x);
}

// logf is log with a relative bound near 1 too, where GLSL's own promises 2⁻²¹
// and no more: log x = 2 artanh((x-1)/(x+1)), of which x-1 is exact.
float logf(float x) {
    float s = (x - 1.0) / (x + 1.0);
    float z = s * s;
    float p = 0.111111111 + z * (0.0909090909 + z * (0.0769230769 + z * (0.0666666667 + z * 0.0588235294)));
    float near = 2.0 * s + 2.0 * s * z * (0.333333333 + z * (0.2 + z * (0.142857143 + z * p)));
    return x < 0.5 || x > 2.0 ? log(x) : near;
}

// sincosf reduces the angle by multiples of π/2 in three parts (Cody and Waite,
// Software Manual for the Elementary Functions, 1980) and evaluates polynomials
// with the coefficients of Moshier's Cephes library. GLSL's own sin and cos
// promise 2⁻¹¹ within ±π and nothing beyond.
void sincosf(float x, out float s, out float c) {
    float k = floor(x * 0.636619772 + 0.5);
    precise float r = x - k * 1.5703125;
    r = r - k * 4.837512969970703125e-4;
    r = r - k * 7.54978995489188216e-8;
    float z = r * r;
    float ps = r + r * z * (-1.6666654611e-1 + z * (8.3321608736e-3 - z * 1.9515295891e-4));
    float pc = 1.0 - 0.5 * z + z * z * (4.166664568298827e-2 + z * (-1.388731625493765e-3 + z * 2.443315711809948e-5));
    uint q = uint(int(k)) & 3u;
    s = (q & 1u) == 0u ? ps : pc;
    c = (q & 1u) == 0u ? pc : ps;
    s = (q & 2u) == 0u ? s : -s;
    c = ((q + 1u) & 2u) == 0u ? c : -c;
}

// twoSum adds v to a sum whose rounding errors are kept beside it (Knuth, The Art
// of Computer Programming 2, 4.2.2).
void twoSum(inout float sum, inout float rest, float v) {
    precise float s = sum + v;
    precise float b = s - sum;
    precise float e = (sum - (s - b)) + (v - b);
    sum = s;
    rest += e;
}

// An infinity makes the rest a NaN; the sum alone is right then.
float both(float sum, float rest) {
    return isNaN(floatBitsToUint(rest)) ? sum : sum + rest;
}
