package ref

import (
	"math"
	"math/bits"
)

// Philox is Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers:
// as easy as 1, 2, 3", SC 2011.
func Philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	for range 10 {
		h0, l0 := bits.Mul32(0xD2511F53, counter[0])
		h1, l1 := bits.Mul32(0xCD9E8D57, counter[2])
		counter = [4]uint32{h1 ^ counter[1] ^ key[0], l1, h0 ^ counter[3] ^ key[1], l0}
		key[0] += 0x9E3779B9
		key[1] += 0xBB67AE85
	}
	return counter
}

// RandomUniform is low + (high-low)·u with u from Philox.
func RandomUniform(seed, stream uint32, low, high float32, shape []int) Result {
	r := newResult(shape)
	for i := range r.Value {
		b := Philox([4]uint32{uint32(i / 4)}, [2]uint32{seed, stream})
		u := float64(b[i%4]>>8) * 0x1p-24
		r.Value[i] = float64(low) + (float64(high)-float64(low))*u
		r.Bound[i] = 4*Ulp*(math.Abs(float64(low))+math.Abs(float64(high))) + Tiny
	}
	return r
}

// RandomNormal is mean + deviation·z with z by Box and Muller's method.
func RandomNormal(seed, stream uint32, mean, deviation float32, shape []int) Result {
	r := newResult(shape)
	m, d := float64(mean), float64(deviation)
	for i := range r.Value {
		b := Philox([4]uint32{uint32(i / 4)}, [2]uint32{seed, stream})
		a, angle := b[i%4&2], b[i%4|1]
		radius := math.Sqrt(-2 * math.Log(float64(a>>8+1)*0x1p-24))
		s, c := math.Sincos(float64(angle>>8) * (2 * math.Pi * 0x1p-24))
		z := radius * c
		if i%2 == 1 {
			z = radius * s
		}
		r.Value[i] = m + d*z
		r.Bound[i] = math.Abs(d)*0x1p-19*(1+math.Abs(z)) + 2*Ulp*(math.Abs(m)+math.Abs(d*z)) + Tiny
	}
	return r
}

// Iota is start + i·step.
func Iota(start, step float32, shape []int) Result {
	r := newResult(shape)
	for i := range r.Value {
		p := float64(i) * float64(step)
		r.Value[i] = float64(start) + p
		r.Bound[i] = 3*Ulp*(math.Abs(float64(start))+math.Abs(p)) + 2*Tiny
	}
	return r
}
