package llm

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// ErrDiffers: a decoder that did not compute what the reference does.
var ErrDiffers = errors.New("differs from the float64 reference")

// Agreement is what Check found.
type Agreement struct {
	Steps int
	// Error is the greatest difference of a logit, in parts of its bound.
	Error float64
	// Ties are steps in which the two greatest logits lie so close together that
	// float32 may choose either.
	Ties int
	// Tokens are what the decoder chose.
	Tokens []int
}

// Tolerance is how far a logit may be off, in parts of the greatest logit of its step.
// Each of some ten roundings a layer of a sum of hundreds of terms adds its share of
// 2⁻²⁴ times the root of their number; a wrong position or a row too few is off by 10⁻²
// and more.
const Tolerance = 1e-4

// Check runs so many steps from token Begin and compares each with the reference, which
// is given the decoder's tokens, so that one step's near tie does not make all that
// follows incomparable. Logits must lie within Tolerance; the token must be the
// reference's, unless the two are so close there that the tolerance covers the
// difference, which counts as a tie: then it must be one of those.
func Check(ctx context.Context, d *Decoder, m *Model, steps int) (Agreement, error) {
	var a Agreement
	reference := NewReference(m)
	token := Begin
	if err := d.Start(token); err != nil {
		return a, err
	}
	for range steps {
		if err := ctx.Err(); err != nil {
			return a, err
		}
		want, err := reference.Logits(token)
		if err != nil {
			return a, err
		}
		position := d.Next()
		if token, err = d.Step(ctx); err != nil {
			return a, err
		}
		found, err := d.Logits(ctx)
		if err != nil {
			return a, err
		}
		if token < 0 || token >= len(want) {
			return a, fmt.Errorf("llm: %w: position %d: token %d, want 0 to %d", ErrDiffers, position, token, len(want)-1)
		}
		best, second, size := 0, -1, 0.0
		for i, v := range want {
			size = max(size, math.Abs(v))
			switch {
			case v > want[best]:
				best, second = i, best
			case i != best && (second < 0 || v > want[second]):
				second = i
			}
		}
		bound := Tolerance * size
		for i, v := range want {
			e := math.Abs(float64(found[i]) - v)
			if !(e <= bound) {
				return a, fmt.Errorf("llm: %w: position %d: logit %d is %v, want %v ± %.2g", ErrDiffers, position, i, found[i], v, bound)
			}
			a.Error = max(a.Error, e/bound)
		}
		if second >= 0 && want[best]-want[second] <= 2*bound {
			a.Ties++
		}
		if want[best]-want[token] > 2*bound {
			return a, fmt.Errorf("llm: %w: position %d: token %d with logit %v, want %d with %v", ErrDiffers, position, token, want[token], best, want[best])
		}
		// The device's own choice among its own logits is exact.
		for i, v := range found {
			if v > found[token] || v == found[token] && i < token {
				return a, fmt.Errorf("llm: %w: position %d: token %d, but logit %d of the device is as great", ErrDiffers, position, token, i)
			}
		}
		a.Tokens = append(a.Tokens, token)
		a.Steps++
	}
	return a, nil
}
