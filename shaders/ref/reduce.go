package ref

import (
	"math"

	"vkcompute/shaders"
)

// reduced calls f for every element of x with the number of the result it goes
// into and its own number among those.
func reduced(x shaders.Layout, shape []int, f func(result, number int, pos []int)) {
	out := shaders.Contiguous(shape...)
	whole := out.Len() == 1
	seen := make([]int, out.Len())
	Each(x.Shape[:x.Rank], func(_ int, pos []int) {
		at := 0
		if !whole {
			at = Index(out, pos)
		}
		f(at, seen[at], pos)
		seen[at]++
	})
}

// Extreme is the greatest element over the axes where shape has extent 1, or the
// least one with sign -1.
func Extreme(x Tensor, shape []int, sign float64) Result {
	r := newResult(shape)
	for i := range r.Value {
		r.Value[i] = math.Inf(-int(sign))
	}
	reduced(x.Layout, shape, func(at, _ int, pos []int) {
		v := float64(x.Data[Index(x.Layout, pos)])
		if math.IsNaN(v) || sign*v > sign*r.Value[at] {
			r.Value[at] = v
		}
	})
	return r
}

// Mean is the sum by the number of summands.
func Mean(x Tensor, shape []int) Result {
	r := Sum(x, shape)
	n := float64(x.Len()) / float64(max(len(r.Value), 1))
	for i := range r.Value {
		r.Value[i] /= n
		r.Bound[i] = r.Bound[i]/n + 3*Ulp*math.Abs(r.Value[i]) + Tiny
	}
	return r
}

// ArgMax is the number of the greatest element among the reduced ones.
func ArgMax(x Tensor, shape []int) []uint32 {
	n := shaders.Contiguous(shape...).Len()
	best, out := make([]float64, n), make([]uint32, n)
	for i := range out {
		out[i] = math.MaxUint32
	}
	reduced(x.Layout, shape, func(at, number int, pos []int) {
		v := float64(x.Data[Index(x.Layout, pos)])
		if out[at] == math.MaxUint32 || v > best[at] || math.IsNaN(v) && !math.IsNaN(best[at]) {
			best[at], out[at] = v, uint32(number)
		}
	})
	return out
}

// CumSum is the sum of a row up to each element.
func CumSum(x Tensor, shape []int) Result {
	r := newResult(shape)
	var sum, weight float64
	Each(shape, func(i int, pos []int) {
		if pos[len(pos)-1] == 0 {
			sum, weight = 0, 0
		}
		v := float64(x.Data[Index(x.Layout, pos)])
		sum += v
		weight += math.Abs(v)
		n := float64(pos[len(pos)-1] + 1)
		r.Value[i], r.Bound[i] = sum, (24*Ulp+2*n*Ulp*Ulp)*weight+n*Tiny
	})
	return r
}

// row reads a row of x, broadcast to the position's leading axes.
func row(x Tensor, pos []int, n int) []float64 {
	p := append(append([]int(nil), pos...), 0)
	out := make([]float64, n)
	for i := range out {
		p[len(pos)] = i
		out[i] = float64(x.Data[Index(x.Layout, p)])
	}
	return out
}

// eachRow calls f for the rows of a shape: the position of its leading axes and
// the number of its first element.
func eachRow(shape []int, f func(pos []int, first int)) {
	last := len(shape) - 1
	Each(shape[:last], func(i int, pos []int) { f(pos, i*shape[last]) })
}

// softmaxRow gives the softmax of a row, its relative bounds, and the logarithm of
// the sum of exponentials with its absolute error.
func softmaxRow(x []float64) (p, rel []float64, most, logsum, logErr float64) {
	most = math.Inf(-1)
	for _, v := range x {
		most = math.Max(most, v)
		if math.IsNaN(v) {
			most = v
			break
		}
	}
	if math.IsInf(most, 0) {
		most = math.NaN()
	}
	p, rel = make([]float64, len(x)), make([]float64, len(x))
	total := 0.0
	for i, v := range x {
		p[i] = math.Exp(v - most)
		total += p[i]
	}
	spread := 0.0
	for i, v := range x {
		p[i] /= total
		if p[i] > 0 {
			spread += p[i] * (8 + 8*(most-v))
		}
	}
	for i, v := range x {
		rel[i] = 20 + spread
		if p[i] > 0 {
			rel[i] += 8 * (most - v)
		}
	}
	return p, rel, most, math.Log(total), (40 + spread) * Ulp
}

// Softmax is the softmax of the last axis.
func Softmax(x Tensor, shape []int) Result {
	r := newResult(shape)
	n := shape[len(shape)-1]
	eachRow(shape, func(pos []int, first int) {
		p, rel, _, _, _ := softmaxRow(row(x, pos, n))
		for i, v := range p {
			r.Value[first+i], r.Bound[first+i] = v, rel[i]*Ulp*v+2*Tiny
		}
	})
	return r
}

// CrossEntropy is the logarithm of the sum of exponentials less the label's.
func CrossEntropy(x Tensor, labels Bits, shape []int) Result {
	r := newResult(shape)
	n := x.Shape[x.Rank-1]
	Each(shape, func(i int, pos []int) {
		label := int(int32(labels.at(pos)))
		if label < 0 || label >= n {
			return
		}
		v := row(x, pos, n)
		_, _, most, logsum, err := softmaxRow(v)
		r.Value[i] = logsum + most - v[label]
		r.Bound[i] = err * (1 + math.Abs(most) + math.Abs(v[label]))
	})
	return r
}

// CrossEntropyGrad is scale·(softmax - 1 at the label).
func CrossEntropyGrad(x Tensor, labels Bits, scale float64, shape []int) Result {
	r := newResult(shape)
	n := shape[len(shape)-1]
	eachRow(shape, func(pos []int, first int) {
		label := int(int32(labels.at(pos)))
		if label < 0 || label >= n {
			return
		}
		p, rel, _, _, _ := softmaxRow(row(x, pos, n))
		for i, v := range p {
			hot := 0.0
			if i == label {
				hot = 1
			}
			r.Value[first+i] = scale * (v - hot)
			r.Bound[first+i] = math.Abs(scale)*(rel[i]*Ulp*v+2*Ulp*math.Abs(v-hot)) + 4*Tiny
		}
	})
	return r
}

// LayerNorm normalises rows by mean and variance.
func LayerNorm(x, weight, bias Tensor, epsilon float64, shape []int) Result {
	r := newResult(shape)
	n := shape[len(shape)-1]
	eachRow(shape, func(pos []int, first int) {
		v, w, b := row(x, pos, n), row(weight, pos, n), row(bias, pos, n)
		var mean, size, variance float64
		for _, e := range v {
			mean += e / float64(n)
			size += math.Abs(e) / float64(n)
		}
		for _, e := range v {
			variance += (e - mean) * (e - mean) / float64(n)
		}
		s := 1 / math.Sqrt(variance+epsilon)
		for i, e := range v {
			z := (e - mean) * s
			delta := 16 * Ulp * s * (size + math.Abs(e))
			r.Value[first+i] = z*w[i] + b[i]
			r.Bound[first+i] = math.Abs(w[i])*(delta+math.Abs(z)*(40*Ulp+16*Ulp*s*2*size*math.Abs(z))) + 4*Ulp*math.Abs(b[i]) + 4*Tiny
			// The variance shares the mean's error through every element.
			r.Bound[first+i] += math.Abs(w[i]*z) * 32 * Ulp * s * size
		}
	})
	return r
}

// RMSNorm divides rows by the root of their mean square.
func RMSNorm(x, weight Tensor, epsilon float64, shape []int) Result {
	r := newResult(shape)
	n := shape[len(shape)-1]
	eachRow(shape, func(pos []int, first int) {
		v, w := row(x, pos, n), row(weight, pos, n)
		mean := 0.0
		for _, e := range v {
			mean += e * e / float64(n)
		}
		s := 1 / math.Sqrt(mean+epsilon)
		if math.IsInf(mean, 0) {
			s = math.NaN()
		}
		for i, e := range v {
			r.Value[first+i], r.Bound[first+i] = relative(e*s*w[i], 24)
			r.Bound[first+i] += 4 * Tiny
		}
	})
	return r
}
