package suite

import "vkcompute/shaders"

func half(f func(int) float32) func(int) shaders.Half {
	return func(i int) shaders.Half { return shaders.HalfOf(f(i)) }
}

// halves are the kernels of float16, which move half the bytes of the others.
func (b *operands) halves(n int) {
	x, hx := common(b, wave, n)
	h, hh := tensor(b, zero[shaders.Half], n)
	gives(b.add(shaders.FloatToHalf, 6*n, 0, func() {
		for i, v := range hx {
			hh[i] = shaders.HalfOf(v)
		}
	}, x, h), h, hh, 0)

	columns := rowLen
	rows := n / columns
	a, ha := tensor(b, half(wave), rows, columns)
	y, hy := tensor(b, zero[float32], rows, columns)
	gives(b.add(shaders.HalfToFloat, 6*n, 0, func() {
		for i, v := range ha {
			hy[i] = v.Float32()
		}
	}, a, y), y, hy, 0)

	ids, hi := tensor(b, func(i int) int32 { return int32(i * 13 % rows) }, rows)
	g, hg := tensor(b, zero[float32], rows, columns)
	gives(b.add(shaders.GatherHalf, 6*n+4*rows, 0, func() {
		for r, id := range hi {
			for c, v := range ha[int(id)*columns:][:columns] {
				hg[r*columns+c] = v.Float32()
			}
		}
	}, a, ids, g), g, hg, 0)

	v, hv := tensor(b, positive, columns)
	p, hp := tensor(b, zero[float32], rows)
	gives(b.reader(shaders.MatVecHalf, 2*rows*columns+4*(rows+columns), 2*rows*columns, func() {
		for r := range rows {
			var s float32
			for c, w := range ha[r*columns:][:columns] {
				s += w.Float32() * hv[c]
			}
			hp[r] = s
		}
	}, a, v, p), p, hp, 1e-2)
}
