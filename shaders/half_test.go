package shaders_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"vkcompute/shaders"
)

// nearestHalf searches all halves for the one nearest to v: what rounding to nearest
// even means, without any arithmetic on bits. Beyond the greatest, infinity stands for 2¹⁶.
func nearestHalf(v float64) shaders.Half {
	value := func(h shaders.Half) float64 {
		if h == 0x7c00 {
			return 1 << 16
		}
		e, f := int(h>>10), float64(h&0x3ff)
		if e == 0 {
			return math.Ldexp(f, -24)
		}
		return math.Ldexp(1024+f, e-25)
	}
	a := math.Abs(v)
	lo, hi := shaders.Half(0), shaders.Half(0x7c00)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; value(mid) <= a {
			lo = mid
		} else {
			hi = mid
		}
	}
	best := lo
	if d, e := a-value(lo), value(hi)-a; e < d || e == d && hi&1 == 0 {
		best = hi
	}
	if math.Signbit(v) {
		best |= 0x8000
	}
	return best
}

func TestEveryHalfComesBack(t *testing.T) {
	for i := range 1 << 16 {
		h := shaders.Half(i)
		v := h.Float32()
		if v != v {
			require.NotZero(t, i&0x3ff, "%#x", i)
			require.Equal(t, uint16(i)|0x200, uint16(shaders.HalfOf(v)), "%#x", i)
			continue
		}
		require.Equal(t, h, shaders.HalfOf(v), "%#x", i)
		if math.IsInf(float64(v), 0) {
			require.Equal(t, 0x7c00, i&0x7fff)
			continue
		}
		require.Equal(t, h, nearestHalf(float64(v)))
	}
}

func TestHalfRoundsToNearestEven(t *testing.T) {
	// Between neighbours, at the middle and on both sides of it.
	for i := range 0x7c00 {
		a := float64(shaders.Half(i).Float32())
		b := float64(1 << 16)
		if i+1 < 0x7c00 {
			b = float64(shaders.Half(i + 1).Float32())
		}
		middle := float32((a + b) / 2)
		for _, v := range []float32{middle, math.Nextafter32(middle, 0), math.Nextafter32(middle, math.MaxFloat32), -middle} {
			require.Equal(t, nearestHalf(float64(v)), shaders.HalfOf(v), "%g", v)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		v := math.Float32frombits(rapid.Uint32().Draw(t, "bits"))
		if v != v {
			require.Greater(t, uint16(shaders.HalfOf(v))&0x7fff, uint16(0x7c00))
			return
		}
		require.Equal(t, nearestHalf(float64(v)), shaders.HalfOf(v))
	})
	require.Equal(t, shaders.Half(0x7c00), shaders.HalfOf(float32(math.Inf(1))))
	require.Equal(t, shaders.Half(0x7bff), shaders.HalfOf(65519.996))
	require.Equal(t, "0.099975586", shaders.HalfOf(0.1).String())
}
