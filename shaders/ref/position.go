package ref

import (
	"math"

	"vkcompute/shaders"
)

// before reads what an output holds, in row-major order.
func before(out Bits) []uint32 {
	v := make([]uint32, out.Len())
	Each(out.Shape[:out.Rank], func(i int, pos []int) { v[i] = out.at(pos) })
	return v
}

// Gather takes rows of the table; one that is not there is zeros.
func Gather(table, ids Bits, shape []int) []uint32 {
	out := make([]uint32, shaders.Contiguous(shape...).Len())
	Each(shape, func(i int, pos []int) {
		id := int(int32(ids.at(pos[:ids.Rank])))
		if id >= 0 && id < table.Shape[0] {
			out[i] = table.at(append([]int{id}, pos[ids.Rank:]...))
		}
	})
	return out
}

// Put gives out with x written from row position on.
func Put(x Bits, position int, out Bits) []uint32 {
	v := before(out)
	Each(out.Shape[:out.Rank], func(i int, pos []int) {
		row := pos[0] - position
		if row >= 0 && row < x.Shape[0] {
			v[i] = x.at(append([]int{row}, pos[1:]...))
		}
	})
	return v
}

// ScatterAdd gives out with rows of x added.
func ScatterAdd(x, ids, out Bits) Result {
	shape := out.Shape[:out.Rank]
	r := newResult(append([]int(nil), shape...))
	weight, count := make([]float64, len(r.Value)), make([]float64, len(r.Value))
	flat := shaders.Contiguous(shape...)
	Each(shape, func(i int, pos []int) {
		r.Value[i] = out.number(pos)
		weight[i] = math.Abs(r.Value[i])
	})
	Each(x.Shape[:x.Rank], func(_ int, pos []int) {
		id := int(int32(ids.at(pos[:ids.Rank])))
		if id < 0 || id >= out.Shape[0] {
			return
		}
		at := Index(flat, append([]int{id}, pos[ids.Rank:]...))
		v := x.number(pos)
		r.Value[at] += v
		weight[at] += math.Abs(v)
		count[at]++
	})
	for i := range r.Bound {
		r.Bound[i] = count[i]*Ulp*weight[i] + (count[i]+1)*Tiny
	}
	return r
}

// Rotary turns pairs; with half they are x[i] and x[i+size/2], else neighbours.
func Rotary(x, frequencies Tensor, position int, half bool, shape []int) Result {
	r := newResult(shape)
	n := shape[len(shape)-1]
	flat := shaders.Contiguous(shape...)
	Each(shape, func(_ int, pos []int) {
		e := pos[len(pos)-1]
		pair, second, other := e/2, e%2 == 1, e^1
		if half {
			pair, second, other = e%(n/2), e >= n/2, (e+n/2)%n
		}
		t := 0
		if len(pos) > 2 {
			t = pos[len(pos)-3]
		}
		angle := float64(position+t) * float64(frequencies.Data[Index(frequencies.Layout, []int{pair})])
		s, c := math.Sincos(angle)
		mine := float64(x.Data[Index(x.Layout, pos)])
		at := append([]int(nil), pos...)
		at[len(at)-1] = other
		partner := float64(x.Data[Index(x.Layout, at)])
		v := mine*c - partner*s
		if second {
			v = partner*s + mine*c
		}
		r.Value[Index(flat, pos)] = v
		r.Bound[Index(flat, pos)] = (0x1p-21+2*Ulp*math.Abs(angle))*(math.Abs(mine)+math.Abs(partner)) + 4*Tiny
	})
	return r
}

// Attention is softmax(scale·q·keys) @ values over the keys up to position and row, the
// position being that of a batch.
func Attention(q, keys, values Tensor, position func(batch []int) int, scale float64, shape []int) Result {
	r := newResult(shape)
	rank := len(shape)
	heads, size := shape[rank-2], shape[rank-1]
	cache, groups := keys.Shape[keys.Rank-3], keys.Shape[keys.Rank-2]
	eachRow(shape, func(pos []int, first int) {
		t, h := pos[rank-3], pos[rank-2]
		n := min(max(position(pos[:rank-3])+t+1, 0), cache)
		if n == 0 {
			return
		}
		query := row(q, pos, size)
		at := append([]int(nil), pos...)
		at[rank-2] = h * groups / heads
		scores, e := make([]float64, n), 0.0
		lo, hi := math.Inf(1), math.Inf(-1)
		for j := range n {
			at[rank-3] = j
			weight := 0.0
			for d, k := range row(keys, at, size) {
				scores[j] += scale * query[d] * k
				weight += math.Abs(scale * query[d] * k)
			}
			e = math.Max(e, float64(size+4)*Ulp*weight)
			lo, hi = math.Min(lo, scores[j]), math.Max(hi, scores[j])
		}
		e += 8 * Ulp * (1 + hi - lo)
		total := 0.0
		for j := range scores {
			scores[j] = math.Exp(scores[j] - hi)
			total += scores[j]
		}
		weight := make([]float64, size)
		for j, p := range scores {
			at[rank-3] = j
			for d, v := range row(values, at, size) {
				r.Value[first+d] += p / total * v
				weight[d] += p / total * math.Abs(v)
			}
		}
		for d := range weight {
			r.Bound[first+d] = weight[d]*(2*e+float64(2*n+20)*Ulp) + 4*Tiny*float64(n)
		}
	})
	return r
}

// MatVec is a @ x, plus b if there is one.
func MatVec(a, x Tensor, b *Tensor, shape []int) Result {
	r := newResult(shape)
	k := a.Shape[a.Rank-1]
	Each(shape, func(i int, pos []int) {
		v, weight := 0.0, 0.0
		vector := row(x, pos[:len(pos)-1], k)
		for j, e := range row(a, pos, k) {
			v += e * vector[j]
			weight += math.Abs(e * vector[j])
		}
		bound := 32*Ulp*weight + 2*float64(k)*Tiny
		if b != nil {
			v += float64(b.Data[Index(b.Layout, pos)])
			bound += Ulp * math.Abs(v)
		}
		r.Value[i], r.Bound[i] = v, bound+Tiny
	})
	return r
}

// Step is one element of an optimiser's state with the bounds of its update.
type Step struct{ Weights, First, Second, WeightsBound, FirstBound, SecondBound float64 }

// SGD is one step of gradient descent.
func SGD(w, g, rate float64) Step {
	return Step{Weights: w - rate*g, WeightsBound: 3*Ulp*(math.Abs(w)+math.Abs(rate*g)) + 4*Tiny}
}

// Momentum is one step with momentum.
func Momentum(w, v, g, rate, momentum float64) Step {
	next := momentum*v + g
	b := 3*Ulp*(math.Abs(momentum*v)+math.Abs(g)) + 4*Tiny
	return Step{
		First: next, FirstBound: b,
		Weights: w - rate*next, WeightsBound: 3*Ulp*(math.Abs(w)+math.Abs(rate*next)) + math.Abs(rate)*b + 4*Tiny,
	}
}

// Adam is one step of Adam.
func Adam(w, m, v, g, rate, beta1, beta2, epsilon float64, step int) Step {
	first := beta1*m + (1-beta1)*g
	second := beta2*v + (1-beta2)*g*g
	terms := math.Abs(beta1*m) + math.Abs((1-beta1)*g)
	c1, c2 := 1-math.Pow(beta1, float64(step)), 1-math.Pow(beta2, float64(step))
	by := rate / c1 / (math.Sqrt(second/c2) + epsilon)
	return Step{
		First: first, FirstBound: 6*Ulp*terms + 4*Tiny,
		Second: second, SecondBound: 6*Ulp*second + 8*Tiny,
		Weights:      w - by*first,
		WeightsBound: 2*Ulp*math.Abs(w) + 80*Ulp*math.Abs(by*first) + math.Abs(by)*6*Ulp*terms + 8*Tiny,
	}
}
