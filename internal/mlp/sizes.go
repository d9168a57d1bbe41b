package mlp

import (
	"errors"
	"fmt"
	"math"
)

// ErrSize: sizes that cannot be, or do not go together.
var ErrSize = errors.New("sizes do not fit")

// Sizes are those of a net and of the batches it learns from.
type Sizes struct{ Inputs, Hidden, Classes, Batch int }

const maxSize = 1 << 16

// Validate reports a size that is missing or too large.
func (s *Sizes) Validate() error {
	for _, v := range []int{s.Inputs, s.Hidden, s.Classes, s.Batch} {
		if v < 1 || v > maxSize {
			return fmt.Errorf("mlp: %w: %+v, want 1 to %d each", ErrSize, *s, maxSize)
		}
	}
	return nil
}

// Parameters counts the weights.
func (s *Sizes) Parameters() int {
	return s.Inputs*s.Hidden + s.Hidden + s.Hidden*s.Classes + s.Classes
}

// bounds says where W1 [Inputs Hidden], b1, W2 [Hidden Classes] and b2 end.
func (s *Sizes) bounds() (w1, b1, w2, b2 int) {
	w1 = s.Inputs * s.Hidden
	b1 = w1 + s.Hidden
	w2 = b1 + s.Hidden*s.Classes
	return w1, b1, w2, w2 + s.Classes
}

// InitialWeights are uniform in ±√(6/inputs) (He et al., 2015) and 0 for the biases, the
// same for a seed everywhere.
func (s *Sizes) InitialWeights(seed uint64) []float32 {
	w := make([]float32, s.Parameters())
	w1, b1, w2, _ := s.bounds()
	fill := func(part []float32, inputs int) {
		scale := 2 * float32(math.Sqrt(6/float64(inputs)))
		for i := range part {
			// splitmix64 (Steele, Lea and Flood, 2014)
			seed += 0x9e3779b97f4a7c15
			z := seed
			z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
			z = (z ^ z>>27) * 0x94d049bb133111eb
			part[i] = scale * (float32((z^z>>31)>>40)/(1<<24) - 0.5)
		}
	}
	fill(w[:w1], s.Inputs)
	fill(w[b1:w2], s.Hidden)
	return w
}
