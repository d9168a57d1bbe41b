package llm

import (
	"errors"
	"fmt"
)

// Shape is the size of a model.
type Shape struct {
	Dim     int // elements of an embedding
	Layers  int
	Heads   int // of queries
	Groups  int // heads of keys and values, which the others share evenly
	Hidden  int // elements inside the perceptron
	Vocab   int
	Context int // positions
}

// ErrShape: a model that cannot be.
var ErrShape = errors.New("bad model shape")

// Far above every model of this kind, and low enough that no product of two of them and
// a layer count overflows.
const (
	maxExtent = 1 << 20
	maxLayers = 1 << 12
	maxSize   = 1024 // elements of a head, which the attention kernel bounds
)

// HeadSize is the number of elements of a head.
func (s *Shape) HeadSize() int { return s.Dim / s.Heads }

// Shared is the number of elements of all keys of a position, and of all values.
func (s *Shape) Shared() int { return s.Groups * s.HeadSize() }

// Parameters counts the weights, with the classifier being the embedding table.
func (s *Shape) Parameters() int {
	layer := 2*s.Dim + 2*s.Dim*s.Dim + 2*s.Shared()*s.Dim + 3*s.Dim*s.Hidden
	return s.Vocab*s.Dim + s.Layers*layer + s.Dim
}

// Validate reports an extent that is missing, too large, or does not divide another.
func (s *Shape) Validate() error {
	for _, e := range []struct {
		name  string
		value int
		most  int
	}{
		{"dimension", s.Dim, maxExtent}, {"layers", s.Layers, maxLayers}, {"heads", s.Heads, maxExtent}, {"key and value heads", s.Groups, maxExtent},
		{"hidden dimension", s.Hidden, maxExtent}, {"vocabulary", s.Vocab, maxExtent}, {"context", s.Context, maxExtent},
	} {
		if e.value < 1 || e.value > e.most {
			return fmt.Errorf("%w: %s is %d, want 1 to %d", ErrShape, e.name, e.value, e.most)
		}
	}
	switch {
	case s.Vocab <= Begin:
		return fmt.Errorf("%w: a vocabulary of %d, want token %d in it", ErrShape, s.Vocab, Begin)
	case s.Dim%s.Heads != 0:
		return fmt.Errorf("%w: dimension %d is no multiple of the %d heads", ErrShape, s.Dim, s.Heads)
	case s.HeadSize()%2 != 0 || s.HeadSize() > maxSize:
		return fmt.Errorf("%w: heads of %d elements, want an even number up to %d", ErrShape, s.HeadSize(), maxSize)
	case s.Heads%s.Groups != 0:
		return fmt.Errorf("%w: %d heads do not share %d key and value heads evenly", ErrShape, s.Heads, s.Groups)
	}
	return nil
}

// Named is a shape with the name people know it by.
type Named struct {
	Name string
	Shape
}

// Shapes are those of the models that llama2.c was published with, by number of
// parameters.
func Shapes() []Named {
	return []Named{
		{"260K", Shape{Dim: 64, Layers: 5, Heads: 8, Groups: 4, Hidden: 172, Vocab: 512, Context: 512}},
		{"15M", Shape{Dim: 288, Layers: 6, Heads: 6, Groups: 6, Hidden: 768, Vocab: 32000, Context: 256}},
		{"42M", Shape{Dim: 512, Layers: 8, Heads: 8, Groups: 8, Hidden: 1376, Vocab: 32000, Context: 1024}},
		{"110M", Shape{Dim: 768, Layers: 12, Heads: 12, Groups: 12, Hidden: 2048, Vocab: 32000, Context: 1024}},
	}
}
