package tlsf

import "math/bits"

// Each power of two is cut into 1<<subBits classes, so that a class is never
// wider than 1/32 of its sizes. Sizes below 1<<subBits have a class each.
const (
	subBits  = 5
	subCount = 1 << subBits
	rows     = 64 - subBits + 1
)

// class returns the class that holds free ranges of n granules.
func class(n uint64) (row, sub uint32) {
	if n < subCount {
		return 0, uint32(n)
	}
	top := uint32(bits.Len64(n)) - 1
	return top - subBits + 1, uint32(n>>(top-subBits)) & (subCount - 1)
}

// classAbove returns the first class all of whose ranges hold n granules. The
// caller has made sure that n is at most maxGranules, so that rounding up cannot wrap.
func classAbove(n uint64) (row, sub uint32) {
	if n >= subCount {
		n += 1<<(uint32(bits.Len64(n))-1-subBits) - 1
	}
	return class(n)
}
