package ref

import (
	"fmt"
	"math"

	"vkcompute/shaders"
)

// untouched fills output bindings before a launch. It is a signalling NaN that
// no kernel makes, so that an element written by mistake shows.
const untouched = 0x7fa5_5aa5

// Case is one launch with its data and the result it must give.
type Case struct {
	Name     string
	Kernel   *shaders.Kernel
	Operands []shaders.Operand
	// Data is the whole contents of each binding as bit patterns, one slice per
	// operand; nil for scalars. The output's is what the binding holds before.
	Data [][]uint32
	// Out is the index of the output operand, -1 for a kernel without one.
	Out int
	// Want and Tol are the values and their bounds in row-major order. Where
	// Exact is set instead, bits must be equal.
	Want, Tol []float64
	Exact     []uint32
}

// Bytes is the size of the largest binding.
func (c *Case) Bytes() int {
	most := 0
	for _, d := range c.Data {
		most = max(most, 4*len(d))
	}
	return most
}

// Check compares the output binding after the launch: each element of the layout
// with what is wanted, and every other one with what it was.
func (c *Case) Check(got []uint32) error {
	if c.Out < 0 {
		return nil
	}
	l, before := c.Operands[c.Out].Layout, c.Data[c.Out]
	if len(got) != len(before) {
		return fmt.Errorf("%s: want an output binding of %d words, found %d", c.Name, len(before), len(got))
	}
	written := make([]bool, len(got))
	var err error
	bad := 0
	Each(l.Shape[:l.Rank], func(i int, pos []int) {
		at := Index(l, pos)
		written[at] = true
		if e := c.compare(i, got[at]); e != nil {
			if bad++; bad == 1 {
				err = fmt.Errorf("%s: element %d at %v (word %d of the binding): %w", c.Name, i, pos, at, e)
			}
		}
	})
	if err != nil {
		return fmt.Errorf("%w; %d of %d elements are wrong\n%s", err, bad, l.Len(), c.describe())
	}
	for i, w := range written {
		if !w && got[i] != before[i] {
			return fmt.Errorf("%s: word %d of the output binding belongs to no element and was overwritten with %#08x\n%s", c.Name, i, got[i], c.describe())
		}
	}
	return nil
}

func (c *Case) compare(i int, got uint32) error {
	if c.Exact != nil {
		if got != c.Exact[i] {
			return fmt.Errorf("want bits %#08x, found %#08x", c.Exact[i], got)
		}
		return nil
	}
	if i >= len(c.Want) {
		return fmt.Errorf("the case has no result to compare with")
	}
	return Compare(c.Want[i], c.Tol[i], math.Float32frombits(got))
}

// Compare checks one float32 against its value in float64. A NaN wants a NaN and
// an infinity the same infinity; a value within its tolerance of the float32
// range may have overflowed.
func Compare(want, tol float64, got float32) error {
	g := float64(got)
	switch {
	case math.IsNaN(want):
		if math.IsNaN(g) {
			return nil
		}
	case math.IsInf(want, 0):
		if g == want {
			return nil
		}
	case math.IsInf(g, 0):
		if math.Abs(want)+tol >= math.MaxFloat32 && math.Signbit(g) == math.Signbit(want) {
			return nil
		}
	case math.Abs(g-want) <= tol:
		return nil
	}
	return fmt.Errorf("want %v ± %.3g, found %v (bits %#08x)", want, tol, got, math.Float32bits(got))
}

func (c *Case) describe() string {
	s := c.Kernel.Name
	for i, op := range c.Operands {
		p := c.Kernel.Params[i]
		if p.Kind == shaders.ScalarParam {
			s += fmt.Sprintf("\n  %s: %v bits %#x", p.Name, op.DType, op.Bits)
			continue
		}
		s += fmt.Sprintf("\n  %s: %v %v", p.Name, op.DType, op.Layout)
	}
	return s
}
