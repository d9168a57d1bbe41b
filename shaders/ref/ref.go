package ref

import (
	"math"

	"vkcompute/shaders"
)

// Ulp bounds one correctly rounded float32 operation relative to its result.
// Vulkan leaves the direction of rounding open, so it is a whole unit in the last
// place. Tiny is what flushing denormals may add.
const (
	Ulp  = 0x1p-23
	Tiny = 0x1p-126
)

// Tensor is a view of the float32 data of a binding.
type Tensor struct {
	shaders.Layout
	Data []float32
}

// Result holds logical elements in row-major order, with the greatest error
// allowed for each.
type Result struct {
	Shape []int
	Value []float64
	Bound []float64
}

func newResult(shape []int) Result {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return Result{Shape: shape, Value: make([]float64, n), Bound: make([]float64, n)}
}

// Index is the element that a logical position names. Axes of extent 1 and
// missing leading axes are broadcast.
func Index(l shaders.Layout, pos []int) int {
	at := l.Offset
	lack := len(pos) - l.Rank
	for d := range l.Rank {
		if l.Shape[d] != 1 {
			at += pos[lack+d] * l.Stride[d]
		}
	}
	return at
}

// Each calls f for every position of a shape in row-major order, with its number.
// The slice is reused.
func Each(shape []int, f func(i int, pos []int)) {
	for _, s := range shape {
		if s == 0 {
			return
		}
	}
	pos := make([]int, len(shape))
	for i := 0; ; i++ {
		f(i, pos)
		d := len(shape) - 1
		for ; d >= 0; d-- {
			pos[d]++
			if pos[d] < shape[d] {
				break
			}
			pos[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

// Add is a + b broadcast to shape.
func Add(a, b Tensor, shape []int) Result {
	return binary(a, b, shape, func(x, y float64) float64 { return x + y })
}

// Mul is a · b broadcast to shape.
func Mul(a, b Tensor, shape []int) Result {
	return binary(a, b, shape, func(x, y float64) float64 { return x * y })
}

func binary(a, b Tensor, shape []int, op func(x, y float64) float64) Result {
	r := newResult(shape)
	Each(shape, func(i int, pos []int) {
		v := op(float64(a.Data[Index(a.Layout, pos)]), float64(b.Data[Index(b.Layout, pos)]))
		r.Value[i], r.Bound[i] = v, math.Abs(v)*Ulp+2*Tiny
	})
	return r
}

// Sum is the sum of x over the axes where shape has extent 1 and x has not; a
// shape of one element takes the whole sum.
func Sum(x Tensor, shape []int) Result {
	r := newResult(shape)
	weight := make([]float64, len(r.Value))
	out := shaders.Contiguous(shape...)
	whole := len(r.Value) == 1
	Each(x.Shape[:x.Rank], func(_ int, pos []int) {
		v := float64(x.Data[Index(x.Layout, pos)])
		at := 0
		if !whole {
			at = Index(out, pos)
		}
		r.Value[at] += v
		weight[at] += math.Abs(v)
	})
	n := 0
	if len(r.Value) > 0 {
		n = x.Len() / len(r.Value)
	}
	for i, w := range weight {
		r.Bound[i] = SumBound(n, w)
	}
	return r
}

// SumBound is the error that kernel Sum promises for n summands whose sizes add
// up to weight.
func SumBound(n int, weight float64) float64 {
	return 32*Ulp*weight + float64(n)*Tiny
}

// MatMul is a @ b over the last two axes, the others broadcast to shape's.
func MatMul(a, b Tensor, shape []int) Result {
	r := newResult(shape)
	k := a.Shape[a.Rank-1]
	pa, pb := make([]int, len(shape)), make([]int, len(shape))
	Each(shape, func(i int, pos []int) {
		row, col := len(pos)-2, len(pos)-1
		copy(pa, pos)
		copy(pb, pos)
		var v, weight float64
		for j := range k {
			pa[col], pb[row] = j, j
			p := float64(a.Data[Index(a.Layout, pa)]) * float64(b.Data[Index(b.Layout, pb)])
			v += p
			weight += math.Abs(p)
		}
		r.Value[i], r.Bound[i] = v, MatMulBound(k, weight)
	})
	return r
}

// MatMulBound is the error that kernel MatMul promises for k products whose
// sizes add up to weight.
func MatMulBound(k int, weight float64) float64 {
	return float64(min(k, 256)+8)*Ulp*weight + 2*float64(k)*Tiny
}
