package suite

import (
	"context"
	"math"

	"vkcompute/cmdbuf"
	"vkcompute/shaders"
	"vkcompute/shaders/ref"
)

const (
	near   = 1e-4 // for functions that devices approximate
	rowLen = 256
)

// cases makes a case of each built-in kernel but nop, which workload launch measures.
func (b *operands) cases(size kernelSizes) []kernelCase {
	b.arithmetic(size.elements)
	b.comparisons(size.elements)
	b.functions(size.elements)
	b.conversions(size.elements)
	b.generators(size.elements)
	b.reductions(size.elements)
	b.rows(size.elements)
	b.products(size)
	b.positions(size.elements)
	b.halves(size.elements)
	b.optimisers(size.elements)
	return b.list
}

func (b *operands) arithmetic(n int) {
	map2(b, shaders.Add, n, wave, positive, 0, func(out, x, y []float32) {
		for i, v := range x {
			out[i] = v + y[i]
		}
	})
	map2(b, shaders.Sub, n, wave, positive, 0, func(out, x, y []float32) {
		for i, v := range x {
			out[i] = v - y[i]
		}
	})
	map2(b, shaders.Mul, n, wave, positive, 0, func(out, x, y []float32) {
		for i, v := range x {
			out[i] = v * y[i]
		}
	})
	map2(b, shaders.Div, n, wave, positive, near, func(out, x, y []float32) {
		for i, v := range x {
			out[i] = v / y[i]
		}
	})
	map2(b, shaders.Minimum, n, wave, positive, 0, func(out, x, y []float32) {
		for i, v := range x {
			out[i] = min(v, y[i])
		}
	})
	map2(b, shaders.Maximum, n, wave, positive, 0, func(out, x, y []float32) {
		for i, v := range x {
			out[i] = max(v, y[i])
		}
	})
	map2(b, shaders.Pow, n, positive, wave, near, each2(func(x, y float32) float32 { return float32(math.Pow(float64(x), float64(y))) }))
	map2(b, shaders.SiluMul, n, wave, positive, near, each2(func(x, y float32) float32 { return float32(silu(float64(x))) * y }))
	map2(b, shaders.ReluGrad, n, wave, positive, 0, func(out, x, y []float32) {
		for i, v := range x {
			out[i] = 0
			if v > 0 {
				out[i] = y[i]
			}
		}
	})
	map2(b, shaders.AddInt, n, whole, whole, 0, func(out, x, y []int32) {
		for i, v := range x {
			out[i] = v + y[i]
		}
	})
	map2(b, shaders.SubInt, n, whole, small, 0, func(out, x, y []int32) {
		for i, v := range x {
			out[i] = v - y[i]
		}
	})
	map2(b, shaders.MulInt, n, whole, whole, 0, func(out, x, y []int32) {
		for i, v := range x {
			out[i] = v * y[i]
		}
	})
	map2(b, shaders.MinInt, n, whole, small, 0, func(out, x, y []int32) {
		for i, v := range x {
			out[i] = min(v, y[i])
		}
	})
	map2(b, shaders.MaxInt, n, whole, small, 0, func(out, x, y []int32) {
		for i, v := range x {
			out[i] = max(v, y[i])
		}
	})
}

func (b *operands) comparisons(n int) {
	third := func(i int) float32 { return wave(i / 3) }
	// A slice: rows come in the same order in every run.
	for _, c := range []struct {
		kernel *shaders.Kernel
		holds  func(x, y float32) bool
	}{
		{shaders.Equal, func(x, y float32) bool { return x == y }},
		{shaders.NotEqual, func(x, y float32) bool { return x != y }},
		{shaders.Less, func(x, y float32) bool { return x < y }},
		{shaders.LessEqual, func(x, y float32) bool { return x <= y }},
	} {
		map2(b, c.kernel, n, wave, third, 0, each2(func(x, y float32) uint32 { return truth(c.holds(x, y)) }))
	}
	map2(b, shaders.EqualInt, n, whole, whole, 0, func(out []uint32, x, y []int32) {
		for i, v := range x {
			out[i] = truth(v == y[i])
		}
	})
	map2(b, shaders.LessInt, n, whole, small, 0, func(out []uint32, x, y []int32) {
		for i, v := range x {
			out[i] = truth(v < y[i])
		}
	})
	cond, hc := tensor(b, func(i int) uint32 { return uint32(i*7) & 4 }, n)
	x, hx := tensor(b, wave, n)
	y, hy := tensor(b, positive, n)
	out, ho := tensor(b, zero[float32], n)
	gives(b.add(shaders.Where, 16*n, n, func() {
		for i, c := range hc {
			if ho[i] = hy[i]; c != 0 {
				ho[i] = hx[i]
			}
		}
	}, cond, x, y, out), out, ho, 0)
}

func silu(x float64) float64 { return x / (1 + math.Exp(-x)) }

func (b *operands) functions(n int) {
	map1(b, shaders.Copy, n, wave, 0, func(out, x []float32) { copy(out, x) })
	map1(b, shaders.Neg, n, wave, 0, func(out, x []float32) {
		for i, v := range x {
			out[i] = -v
		}
	})
	map1(b, shaders.Abs, n, wave, 0, func(out, x []float32) {
		for i, v := range x {
			out[i] = math.Float32frombits(math.Float32bits(v) &^ (1 << 31))
		}
	})
	map1(b, shaders.Relu, n, wave, 0, func(out, x []float32) {
		for i, v := range x {
			out[i] = max(v, 0)
		}
	})
	map1(b, shaders.Square, n, wave, 0, func(out, x []float32) {
		for i, v := range x {
			out[i] = v * v
		}
	})
	map1(b, shaders.Reciprocal, n, positive, near, func(out, x []float32) {
		for i, v := range x {
			out[i] = 1 / v
		}
	})
	map1(b, shaders.Sqrt, n, positive, near, in64(math.Sqrt))
	map1(b, shaders.Rsqrt, n, positive, near, in64(func(x float64) float64 { return 1 / math.Sqrt(x) }))
	map1(b, shaders.Exp, n, wave, near, in64(math.Exp))
	map1(b, shaders.Log, n, positive, near, in64(math.Log))
	map1(b, shaders.Tanh, n, wave, near, in64(math.Tanh))
	map1(b, shaders.Sigmoid, n, wave, near, in64(func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }))
	map1(b, shaders.Silu, n, wave, near, in64(silu))
	map1(b, shaders.Gelu, n, wave, near, in64(func(x float64) float64 {
		return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	}))
}

func (b *operands) conversions(n int) {
	map1(b, shaders.FloatToInt, n, wave, 0, func(out []int32, x []float32) {
		for i, v := range x {
			out[i] = int32(v)
		}
	})
	map1(b, shaders.FloatToUint, n, positive, 0, func(out []uint32, x []float32) {
		for i, v := range x {
			out[i] = uint32(v)
		}
	})
	map1(b, shaders.IntToFloat, n, whole, 0, func(out []float32, x []int32) {
		for i, v := range x {
			out[i] = float32(v)
		}
	})
	map1(b, shaders.UintToFloat, n, func(i int) uint32 { return uint32(i) }, 0, func(out []float32, x []uint32) {
		for i, v := range x {
			out[i] = float32(v)
		}
	})
}

func (b *operands) generators(n int) {
	out, ho := tensor(b, zero[float32], n)
	gives(b.add(shaders.Fill, 4*n, 0, func() {
		for i := range ho {
			ho[i] = 1.5
		}
	}, cmdbuf.Float32(1.5), out), out, ho, 0)
	line, hl := tensor(b, zero[float32], n)
	gives(b.add(shaders.Iota, 4*n, 2*n, func() {
		for i := range hl {
			hl[i] = 1 + float32(i)*0.5
		}
	}, cmdbuf.Float32(1), cmdbuf.Float32(0.5), line), line, hl, 1e-6)
	count, hc := tensor(b, zero[int32], n)
	gives(b.add(shaders.IotaInt, 4*n, 2*n, func() {
		for i := range hc {
			hc[i] = 3 + int32(i)*7
		}
	}, cmdbuf.Int32(3), cmdbuf.Int32(7), count), count, hc, 0)
	// Ten rounds of two products for four numbers.
	uniform, hu := tensor(b, zero[float32], n)
	gives(b.add(shaders.RandomUniform, 4*n, 10*n, func() { plainUniform(hu) }, cmdbuf.Uint32(5), cmdbuf.Uint32(0), cmdbuf.Float32(-1), cmdbuf.Float32(1), uniform), uniform, hu, near)
	normal, hn := tensor(b, zero[float32], n)
	gives(b.add(shaders.RandomNormal, 4*n, 12*n, func() {
		r := ref.RandomNormal(5, 0, 0, 1, []int{n})
		for i, v := range r.Value {
			hn[i] = float32(v)
		}
	}, cmdbuf.Uint32(5), cmdbuf.Uint32(0), cmdbuf.Float32(0), cmdbuf.Float32(1), normal), normal, hn, 1e-3)
}

func plainUniform(out []float32) {
	for i := 0; i < len(out); i += 4 {
		bits := ref.Philox([4]uint32{uint32(i / 4)}, [2]uint32{5, 0})
		for k := range min(4, len(out)-i) {
			out[i+k] = -1 + 2*float32(bits[k]>>8)/(1<<24)
		}
	}
}

func (b *operands) reductions(n int) {
	rows := n / rowLen
	fold := func(k *shaders.Kernel, tolerance float64, f func(row []float32) float32) {
		x, hx := tensor(b, wave, rows, rowLen)
		out, ho := tensor(b, zero[float32], rows, 1)
		gives(b.reader(k, 4*n+4*rows, n, func() {
			for r := range ho {
				ho[r] = f(hx[r*rowLen : (r+1)*rowLen])
			}
		}, x, out), out, ho, tolerance)
	}
	fold(shaders.Sum, 1e-3, plainSum)
	fold(shaders.Mean, 1e-3, func(row []float32) float32 { return plainSum(row) / float32(len(row)) })
	fold(shaders.Max, 0, plainMax)
	fold(shaders.Min, 0, plainMin)
	x, hx := tensor(b, wave, rows, rowLen)
	at, ha := tensor(b, zero[int32], rows, 1)
	gives(b.reader(shaders.ArgMax, 4*n+4*rows, n, func() {
		for r := range ha {
			best := 0
			row := hx[r*rowLen : (r+1)*rowLen]
			for i, v := range row {
				if v > row[best] {
					best = i
				}
			}
			ha[r] = int32(best)
		}
	}, x, at), at, ha, 0)
	// Everything in 64 parts, whose numbers may come in any order: what the parts give
	// together is compared.
	parts := func(k, whole *shaders.Kernel, tolerance float64, f func([]float32) float32) {
		x, hx := tensor(b, wave, n)
		out, ho := tensor(b, zero[float32], 64)
		c := b.reader(k, 4*n, n, func() { ho[0] = f(hx) }, x, out)
		total, _ := tensor(b, zero[float32], 1)
		c.outputs = append(c.outputs, func(context.Context) error { return b.s.Launch(whole, out, total) })
		gives(c, total, ho[:1], tolerance)
	}
	parts(shaders.SumParts, shaders.Sum, 1e-2, plainSum)
	parts(shaders.MaxParts, shaders.Max, 0, plainMax)
	parts(shaders.MinParts, shaders.Min, 0, plainMin)
}

// plainSum adds up in float64: the sum of millions in float32 is off by more than a
// kernel's.
func plainSum(x []float32) float32 {
	s := 0.0
	for _, v := range x {
		s += float64(v)
	}
	return float32(s)
}

func plainMax(x []float32) float32 {
	m := x[0]
	for _, v := range x {
		m = max(m, v)
	}
	return m
}

func plainMin(x []float32) float32 {
	m := x[0]
	for _, v := range x {
		m = min(m, v)
	}
	return m
}

func plainSoftmax(out, x []float32) {
	m := plainMax(x)
	var sum float32
	for i, v := range x {
		out[i] = float32(math.Exp(float64(v - m)))
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
}

func (b *operands) rows(n int) {
	rows := n / rowLen
	row := func(x []float32, r int) []float32 { return x[r*rowLen : (r+1)*rowLen] }
	x, hx := tensor(b, wave, rows, rowLen)
	soft, hs := tensor(b, zero[float32], rows, rowLen)
	gives(b.add(shaders.Softmax, 8*n, 4*n, func() {
		for r := range rows {
			plainSoftmax(row(hs, r), row(hx, r))
		}
	}, x, soft), soft, hs, near)

	labels, hl := tensor(b, func(i int) int32 { return int32(i * 7 % rowLen) }, rows)
	loss, ho := tensor(b, zero[float32], rows)
	gives(b.reader(shaders.CrossEntropy, 4*n+8*rows, 3*n, func() {
		for r := range rows {
			line := row(hx, r)
			m := plainMax(line)
			sum := 0.0
			for _, v := range line {
				sum += math.Exp(float64(v - m))
			}
			ho[r] = m + float32(math.Log(sum)) - line[hl[r]]
		}
	}, x, labels, loss), loss, ho, near)
	grad, hg := tensor(b, zero[float32], rows, rowLen)
	gives(b.add(shaders.CrossEntropyGrad, 8*n+4*rows, 5*n, func() {
		for r := range rows {
			plainSoftmax(row(hg, r), row(hx, r))
			row(hg, r)[hl[r]]--
		}
	}, x, labels, cmdbuf.Float32(1), grad), grad, hg, near)

	weight, hw := tensor(b, positive, rowLen)
	bias, hb := tensor(b, wave, rowLen)
	layer, hy := tensor(b, zero[float32], rows, rowLen)
	gives(b.add(shaders.LayerNorm, 8*n+8*rowLen, 7*n, func() {
		for r := range rows {
			in, out := row(hx, r), row(hy, r)
			mean := plainSum(in) / rowLen
			var square float32
			for _, v := range in {
				square += (v - mean) * (v - mean)
			}
			scale := float32(1 / math.Sqrt(float64(square/rowLen+1e-5)))
			for i, v := range in {
				out[i] = (v-mean)*scale*hw[i] + hb[i]
			}
		}
	}, x, weight, bias, cmdbuf.Float32(1e-5), layer), layer, hy, 1e-3)
	rms, hr := tensor(b, zero[float32], rows, rowLen)
	gives(b.add(shaders.RMSNorm, 8*n+4*rowLen, 4*n, func() {
		for r := range rows {
			in, out := row(hx, r), row(hr, r)
			var square float32
			for _, v := range in {
				square += v * v
			}
			scale := float32(1 / math.Sqrt(float64(square/rowLen+1e-5)))
			for i, v := range in {
				out[i] = v * scale * hw[i]
			}
		}
	}, x, weight, cmdbuf.Float32(1e-5), rms), rms, hr, 1e-3)
	sums, hc := tensor(b, zero[float32], rows, rowLen)
	gives(b.add(shaders.CumSum, 8*n, n, func() {
		for r := range rows {
			in, out := row(hx, r), row(hc, r)
			var s float32
			for i, v := range in {
				s += v
				out[i] = s
			}
		}
	}, x, sums), sums, hc, 1e-3)
}

func (b *operands) products(size kernelSizes) {
	m := size.matrix
	x, hx := tensor(b, wave, m, m)
	y, hy := tensor(b, wave, m, m)
	out, ho := tensor(b, zero[float32], m, m)
	gives(b.add(shaders.MatMul, 12*m*m, 2*m*m*m, func() {
		clear(ho)
		for i := range m {
			line := ho[i*m : (i+1)*m]
			for k := range m {
				f, from := hx[i*m+k], hy[k*m:(k+1)*m]
				for j, v := range from {
					line[j] += f * v
				}
			}
		}
	}, x, y, out), out, ho, 1e-2)

	// As many elements as the element-wise kernels have.
	columns := 512
	rows := size.elements / columns
	a, ha := tensor(b, wave, rows, columns)
	v, hv := tensor(b, positive, columns)
	p, hp := tensor(b, zero[float32], rows)
	c, hc := tensor(b, wave, rows)
	q, hq := tensor(b, zero[float32], rows)
	product := func(r int) float32 {
		var s float32
		for i, w := range ha[r*columns : (r+1)*columns] {
			s += w * hv[i]
		}
		return s
	}
	gives(b.reader(shaders.MatVec, 4*(rows*columns+rows+columns), 2*rows*columns, func() {
		for r := range rows {
			hp[r] = product(r)
		}
	}, a, v, p), p, hp, 1e-2)
	gives(b.reader(shaders.MatVecAdd, 4*(rows*columns+2*rows+columns), 2*rows*columns+rows, func() {
		for r := range rows {
			hq[r] = product(r) + hc[r]
		}
	}, a, v, c, q), q, hq, 1e-2)
}

func (b *operands) positions(n int) {
	rows := n / rowLen
	table, ht := tensor(b, wave, rows, rowLen)
	ids, hi := tensor(b, func(i int) int32 { return int32(i * 13 % rows) }, rows)
	out, ho := tensor(b, zero[float32], rows, rowLen)
	gives(b.add(shaders.Gather, 8*n+4*rows, 0, func() {
		for r, id := range hi {
			copy(ho[r*rowLen:(r+1)*rowLen], ht[int(id)*rowLen:])
		}
	}, table, ids, out), out, ho, 0)

	half := rows / 2
	x, hx := tensor(b, positive, half, rowLen)
	at, hat := tensor(b, func(int) int32 { return int32(half / 2) }, 1)
	cache, hcache := tensor(b, zero[float32], rows, rowLen)
	gives(b.add(shaders.Put, 8*half*rowLen, 0, func() { copy(hcache[int(hat[0])*rowLen:], hx) }, x, at, cache), cache, hcache, 0)

	// An owner of an element reads all the ids, so a batch.
	const batch = 64
	some, hsome := tensor(b, wave, batch, rowLen)
	few, hfew := tensor(b, func(i int) int32 { return int32(i * 5 % 16) }, batch)
	sums, hs := tensor(b, zero[float32], rows, rowLen)
	gives(b.add(shaders.ScatterAdd, 4*(3*batch*rowLen+batch), batch*rowLen, func() {
		for r, id := range hfew {
			to := hs[int(id)*rowLen:]
			for i, v := range hsome[r*rowLen : (r+1)*rowLen] {
				to[i] += v
			}
		}
	}, some, few, sums), sums, hs, near)

	const headSize, start = 64, 5
	heads := n / headSize / 8
	position, _ := tensor(b, func(int) int32 { return start }, 1)
	frequencies, hf := tensor(b, func(i int) float32 { return float32(math.Pow(10000, -2*float64(i)/headSize)) }, headSize/2)
	in, hin := tensor(b, wave, 8, heads, headSize)
	for _, way := range []struct {
		kernel *shaders.Kernel
		pair   func(i int) (int, int)
	}{
		{shaders.Rotary, func(i int) (int, int) { return 2 * i, 2*i + 1 }},
		{shaders.RotaryHalf, func(i int) (int, int) { return i, i + headSize/2 }},
	} {
		turned, hturned := tensor(b, zero[float32], 8, heads, headSize)
		gives(b.add(way.kernel, 8*n, 6*n, func() {
			for h := range 8 * heads {
				from, to := hin[h*headSize:(h+1)*headSize], hturned[h*headSize:(h+1)*headSize]
				for i, f := range hf {
					s, c := math.Sincos(float64(start+h/heads) * float64(f))
					p, q := way.pair(i)
					to[p] = from[p]*float32(c) - from[q]*float32(s)
					to[q] = from[p]*float32(s) + from[q]*float32(c)
				}
			}
		}, in, frequencies, position, turned), turned, hturned, near)
	}
	b.attention(n)
}

// attention is a decoder's: one query of 8 heads that share 4 groups, over a cache.
func (b *operands) attention(n int) {
	const size, heads, groups = 64, 8, 4
	length := n / size / groups / 2
	scale := float32(1 / math.Sqrt(size))
	q, hq := tensor(b, wave, 1, heads, size)
	keys, hk := tensor(b, wave, length, groups, size)
	values, hv := tensor(b, positive, length, groups, size)
	position, _ := tensor(b, func(int) int32 { return int32(length - 1) }, 1)
	out, ho := tensor(b, zero[float32], 1, heads, size)
	scores := make([]float32, length)
	gives(b.reader(shaders.Attention, 4*(2*length*groups*size+2*heads*size), 4*length*heads*size, func() {
		for h := range heads {
			g := h * groups / heads
			query, to := hq[h*size:(h+1)*size], ho[h*size:(h+1)*size]
			for j := range length {
				var s float32
				for i, v := range hk[(j*groups+g)*size : (j*groups+g+1)*size] {
					s += v * query[i]
				}
				scores[j] = s * scale
			}
			plainSoftmax(scores, scores)
			clear(to)
			for j, p := range scores {
				for i, v := range hv[(j*groups+g)*size : (j*groups+g+1)*size] {
					to[i] += p * v
				}
			}
		}
	}, q, keys, values, position, cmdbuf.Float32(scale), out), out, ho, 1e-3)
}

func (b *operands) optimisers(n int) {
	const rate = 1e-4
	gradient, hg := tensor(b, wave, n)
	w, hw := tensor(b, positive, n)
	gives(b.add(shaders.SGD, 12*n, 2*n, func() {
		for i, g := range hg {
			hw[i] -= rate * g
		}
	}, gradient, cmdbuf.Float32(rate), w), w, hw, near)
	mw, hmw := tensor(b, positive, n)
	velocity, hv := tensor(b, zero[float32], n)
	c := b.add(shaders.Momentum, 20*n, 4*n, func() {
		for i, g := range hg {
			hv[i] = 0.9*hv[i] + g
			hmw[i] -= rate * hv[i]
		}
	}, gradient, cmdbuf.Float32(rate), cmdbuf.Float32(0.9), mw, velocity)
	gives(c, mw, hmw, near)
	gives(c, velocity, hv, near)
	aw, haw := tensor(b, positive, n)
	first, h1 := tensor(b, zero[float32], n)
	second, h2 := tensor(b, zero[float32], n)
	step, _ := tensor(b, func(int) int32 { return 1 }, 1)
	c = b.add(shaders.Adam, 28*n, 12*n, func() {
		for i, g := range hg {
			h1[i] = 0.9*h1[i] + 0.1*g
			h2[i] = 0.999*h2[i] + 0.001*g*g
			haw[i] -= rate * (h1[i] / 0.1) / (float32(math.Sqrt(float64(h2[i]/0.001))) + 1e-8)
		}
	}, gradient, step, cmdbuf.Float32(rate), cmdbuf.Float32(0.9), cmdbuf.Float32(0.999), cmdbuf.Float32(1e-8), aw, first, second)
	gives(c, aw, haw, near)
	gives(c, first, h1, near)
	gives(c, second, h2, near)
}
