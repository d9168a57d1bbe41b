package ref

import (
	"math"

	"vkcompute/shaders"
)

// Bits is a view of a binding of any 32-bit type, as bit patterns.
type Bits struct {
	shaders.Layout
	DType shaders.DType
	Data  []uint32
}

// at is the bit pattern that a logical position names.
func (b Bits) at(pos []int) uint32 { return b.Data[Index(b.Layout, pos)] }

// number is the element's value.
func (b Bits) number(pos []int) float64 {
	switch w := b.at(pos); b.DType {
	case shaders.Int32:
		return float64(int32(w))
	case shaders.Uint32:
		return float64(w)
	default:
		return float64(math.Float32frombits(w))
	}
}

// Exact applies a kernel whose results are promised bit for bit. It reports
// whether the kernel is one.
func Exact(k *shaders.Kernel, in []Bits, shape []int) ([]uint32, bool) {
	f, ok := exactOps[k]
	if !ok {
		return nil, false
	}
	out := make([]uint32, shaders.Contiguous(shape...).Len())
	Each(shape, func(i int, pos []int) {
		var v [3]uint32
		for j, x := range in {
			v[j] = x.at(pos)
		}
		out[i] = f(v[0], v[1], v[2])
	})
	return out, true
}

// Elementwise applies an element-wise kernel whose results have a bound.
func Elementwise(k *shaders.Kernel, in []Bits, shape []int) (Result, bool) {
	f, ok := floatOps[k]
	if !ok {
		return Result{}, false
	}
	r := newResult(shape)
	Each(shape, func(i int, pos []int) {
		var v [2]float64
		for j, x := range in {
			v[j] = x.number(pos)
		}
		r.Value[i], r.Bound[i] = f(v[0], v[1])
		r.Bound[i] += 2 * Tiny
	})
	return r, true
}

func float(b uint32) float64 { return float64(math.Float32frombits(b)) }
func isNaN(b uint32) bool    { return b&0x7fffffff > 0x7f800000 }
func truth(b bool) uint32    { return either(b, 1, 0) }
func either(b bool, x, y uint32) uint32 {
	if b {
		return x
	}
	return y
}

const quiet = 0x7fc00000

var exactOps = map[*shaders.Kernel]func(a, b, c uint32) uint32{
	shaders.Copy: func(a, _, _ uint32) uint32 { return a },
	shaders.Neg:  func(a, _, _ uint32) uint32 { return a ^ 1<<31 },
	shaders.Abs:  func(a, _, _ uint32) uint32 { return a &^ (1 << 31) },
	shaders.Relu: func(a, _, _ uint32) uint32 { return either(isNaN(a), a|1<<22, either(a>>31 == 1, 0, a)) },
	shaders.Minimum: func(a, b, _ uint32) uint32 {
		return either(isNaN(a) || isNaN(b), quiet, either(float(a) <= float(b), a, b))
	},
	shaders.Maximum: func(a, b, _ uint32) uint32 {
		return either(isNaN(a) || isNaN(b), quiet, either(float(a) >= float(b), a, b))
	},
	shaders.ReluGrad:  func(a, b, _ uint32) uint32 { return either(float(a) > 0 || isNaN(a), b, 0) },
	shaders.Where:     func(c, a, b uint32) uint32 { return either(c != 0, a, b) },
	shaders.Equal:     func(a, b, _ uint32) uint32 { return truth(float(a) == float(b)) },
	shaders.NotEqual:  func(a, b, _ uint32) uint32 { return truth(float(a) != float(b)) },
	shaders.Less:      func(a, b, _ uint32) uint32 { return truth(float(a) < float(b)) },
	shaders.LessEqual: func(a, b, _ uint32) uint32 { return truth(float(a) <= float(b)) },
	shaders.EqualInt:  func(a, b, _ uint32) uint32 { return truth(a == b) },
	shaders.LessInt:   func(a, b, _ uint32) uint32 { return truth(int32(a) < int32(b)) },
	shaders.AddInt:    func(a, b, _ uint32) uint32 { return a + b },
	shaders.SubInt:    func(a, b, _ uint32) uint32 { return a - b },
	shaders.MulInt:    func(a, b, _ uint32) uint32 { return a * b },
	shaders.MinInt:    func(a, b, _ uint32) uint32 { return uint32(min(int32(a), int32(b))) },
	shaders.MaxInt:    func(a, b, _ uint32) uint32 { return uint32(max(int32(a), int32(b))) },
	shaders.FloatToInt: func(a, _, _ uint32) uint32 {
		switch v := float(a); {
		case isNaN(a):
			return 0
		case v >= 1<<31:
			return math.MaxInt32
		case v < -1<<31:
			return 1 << 31
		default:
			return uint32(int32(v))
		}
	},
	shaders.FloatToUint: func(a, _, _ uint32) uint32 {
		switch v := float(a); {
		case isNaN(a), v <= 0:
			return 0
		case v >= 1<<32:
			return math.MaxUint32
		default:
			return uint32(v)
		}
	},
}

// relative makes a bound of a number of units in the last place.
func relative(v, units float64) (float64, float64) {
	if v == 0 {
		return 0, 0 // units may be infinite
	}
	return v, math.Abs(v) * units * Ulp
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func silu(x float64) float64 {
	if math.IsInf(x, -1) {
		return 0
	}
	return x * sigmoid(x)
}

var floatOps = map[*shaders.Kernel]func(a, b float64) (v, bound float64){
	shaders.IntToFloat:  func(a, _ float64) (float64, float64) { return relative(a, 1) },
	shaders.UintToFloat: func(a, _ float64) (float64, float64) { return relative(a, 1) },
	shaders.Add:         func(a, b float64) (float64, float64) { return relative(a+b, 1) },
	shaders.Sub:         func(a, b float64) (float64, float64) { return relative(a-b, 1) },
	shaders.Mul:         func(a, b float64) (float64, float64) { return relative(a*b, 1) },
	shaders.Div:         func(a, b float64) (float64, float64) { return relative(a/b, 5) },
	shaders.Square:      func(a, _ float64) (float64, float64) { return relative(a*a, 1) },
	shaders.Reciprocal:  func(a, _ float64) (float64, float64) { return relative(1/a, 5) },
	shaders.Exp:         func(a, _ float64) (float64, float64) { return relative(math.Exp(a), 8+4*math.Abs(a)) },
	shaders.Sqrt:        func(a, _ float64) (float64, float64) { return relative(math.Sqrt(a), 10) },
	shaders.Rsqrt:       func(a, _ float64) (float64, float64) { return relative(1/math.Sqrt(a), 4) },
	shaders.Tanh:        func(a, _ float64) (float64, float64) { return relative(math.Tanh(a), 40) },
	shaders.Sigmoid:     func(a, _ float64) (float64, float64) { return relative(sigmoid(a), 10+8*min(math.Abs(a), 128)) },
	shaders.Silu:        func(a, _ float64) (float64, float64) { return relative(silu(a), 12+8*math.Abs(a)) },
	shaders.SiluMul:     func(a, b float64) (float64, float64) { return relative(silu(a)*b, 10+8*math.Abs(a)) },
	shaders.Log:         func(a, _ float64) (float64, float64) { return relative(math.Log(a), 12) },
	shaders.Gelu: func(a, _ float64) (float64, float64) {
		switch {
		case a < -8:
			return 0, 1e-13
		case a > 8:
			return a, a * 1e-13
		}
		y := math.Sqrt(2/math.Pi) * (a + 0.044715*a*a*a)
		return relative(a*sigmoid(2*y), 14+40*math.Abs(y))
	},
	shaders.Pow: func(a, b float64) (float64, float64) {
		v := math.Pow(a, b)
		if math.IsInf(v, 0) || v == 0 || b == 0 {
			return v, 0
		}
		t := math.Abs(b * math.Log2(math.Abs(a)))
		return relative(v, 8+12*t+8*math.Abs(b))
	},
}
