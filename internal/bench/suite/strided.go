package suite

import (
	"errors"

	"vkcompute/cmdbuf"
	"vkcompute/shaders"
)

// strided makes cases of n elements whose operands are views: of every second element,
// transposed, one off the alignment of a block, and with a row for all rows. Their bytes
// are those of the elements alone, so they stand beside the contiguous ones.
func (b *operands) strided(n int) {
	// What has a gap behind each element is bound twice as long.
	for uint64(2*4*n) > b.s.Device().Limits().MaxStorageBufferRange {
		n /= 2
	}
	rows := n / rowLen
	wide, hw := tensor(b, wave, 2*n)
	turned, ht := tensor(b, wave, rowLen, rows)
	y, hy := tensor(b, positive, rows, rowLen)
	row, hr := tensor(b, positive, rowLen)
	out, ho := tensor(b, zero[float32], rows, rowLen)
	if b.err != nil {
		return
	}
	half, err1 := wide.Range(0, 0, 2*n, 2)
	shifted, err2 := wide.Range(0, 1, n+1, 1)
	var err3, err4 error
	if err1 == nil && err2 == nil {
		half, err3 = half.Reshape(rows, rowLen)
		shifted, err4 = shifted.Reshape(rows, rowLen)
	}
	across, err5 := turned.Transpose(0, 1)
	if b.err = errors.Join(err1, err2, err3, err4, err5); b.err != nil {
		return
	}
	for _, v := range []struct {
		name string
		x    *cmdbuf.Tensor[float32]
		at   func(r, c int) float32
	}{
		{"every second", half, func(r, c int) float32 { return hw[2*(r*rowLen+c)] }},
		{"unaligned", shifted, func(r, c int) float32 { return hw[1+r*rowLen+c] }},
		{"transposed", across, func(r, c int) float32 { return ht[c*rows+r] }},
	} {
		each := func(f func(x float32, i int) float32) func() {
			return func() {
				for r := range rows {
					for c := range rowLen {
						i := r*rowLen + c
						ho[i] = f(v.at(r, c), i)
					}
				}
			}
		}
		c := b.add(shaders.Copy, 8*n, n, each(func(x float32, _ int) float32 { return x }), v.x, out)
		c.layout = v.name
		gives(c, out, ho, 0)
		c = b.add(shaders.Add, 12*n, n, each(func(x float32, i int) float32 { return x + hy[i] }), v.x, y, out)
		c.layout = v.name
		gives(c, out, ho, 0)
	}
	c := b.add(shaders.Add, 8*n+4*rowLen, n, func() {
		for i, v := range hy {
			ho[i] = v + hr[i%rowLen]
		}
	}, y, row, out)
	c.layout = "a row for all"
	gives(c, out, ho, 0)
}
