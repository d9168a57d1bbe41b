package shaders

import (
	"math"
	"strconv"
)

// Half is a float16 of IEEE 754 (binary16): 1 bit of sign, 5 of exponent, 10 of
// fraction. As an element of a tensor it takes 2 bytes. There is no arithmetic on it;
// HalfOf and Float32 convert.
type Half uint16

// HalfOf rounds to the nearest Half, of two equally near ones to the even one. What is
// too great becomes infinity, what is small becomes denormal and then zero with its sign.
// A NaN stays one, quiet, with the upper bits of its payload.
func HalfOf(v float32) Half {
	b := math.Float32bits(v)
	sign, m := Half(b>>16&0x8000), b&0x7fffffff
	switch {
	case m > 0x7f800000:
		return sign | 0x7e00 | Half(m>>13&0x1ff)
	case m >= 0x47800000: // 2¹⁶ and beyond
		return sign | 0x7c00
	case m >= 0x38800000: // normal: 2⁻¹⁴ and beyond. A carry out of the fraction is right.
		m -= 112 << 23
		return sign | Half((m+0xfff+m>>13&1)>>13)
	case m < 0x33000000: // less than half of the least denormal
		return sign
	}
	shift := 126 - m>>23 // 14 to 24: the weight of the last bit is 2⁻²⁴
	m = m&0x7fffff | 0x800000
	return sign | Half((m+1<<(shift-1)-1+m>>shift&1)>>shift)
}

// Float32 is the value, exactly.
func (h Half) Float32() float32 {
	sign, e, f := uint32(h&0x8000)<<16, uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch {
	case e == 0x1f && f != 0:
		return math.Float32frombits(sign | 0x7fc00000 | f<<13)
	case e == 0x1f:
		return math.Float32frombits(sign | 0x7f800000)
	case e == 0:
		v := float32(f) / (1 << 24) // exact: 10 bits, and float32 has smaller exponents
		return math.Float32frombits(math.Float32bits(v) | sign)
	}
	return math.Float32frombits(sign | (e+112)<<23 | f<<13)
}

func (h Half) String() string {
	return strconv.FormatFloat(float64(h.Float32()), 'g', -1, 32)
}
