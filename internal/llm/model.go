package llm

import (
	"fmt"
	"math"
)

// Model is the weights on the host. Matrices are [outputs inputs], row after row.
type Model struct {
	Shape
	Embedding  []float32 // [Vocab Dim]
	Layers     []Layer
	Norm       []float32 // [Dim], before the classifier
	Classifier []float32 // [Vocab Dim], often the embedding table itself
}

// Layer is the weights of one layer.
type Layer struct {
	Norm       []float32 // [Dim], before the attention
	Query      []float32 // [Dim Dim]
	Key, Value []float32 // [Shared Dim]
	Output     []float32 // [Dim Dim]

	MLPNorm  []float32 // [Dim], before the perceptron
	Gate, Up []float32 // [Hidden Dim]
	Down     []float32 // [Dim Hidden]
}

// field is a block of weights of the model, or of each layer.
type field struct {
	name string
	size int
	part func(m *Model, layer int) *[]float32
	each bool // in every layer
}

func (s *Shape) fields() map[string]field {
	list := []field{
		{"embedding", s.Vocab * s.Dim, func(m *Model, _ int) *[]float32 { return &m.Embedding }, false},
		{"norm", s.Dim, func(m *Model, _ int) *[]float32 { return &m.Norm }, false},
		{"classifier", s.Vocab * s.Dim, func(m *Model, _ int) *[]float32 { return &m.Classifier }, false},
		{"attention norm", s.Dim, func(m *Model, l int) *[]float32 { return &m.Layers[l].Norm }, true},
		{"query", s.Dim * s.Dim, func(m *Model, l int) *[]float32 { return &m.Layers[l].Query }, true},
		{"key", s.Shared() * s.Dim, func(m *Model, l int) *[]float32 { return &m.Layers[l].Key }, true},
		{"value", s.Shared() * s.Dim, func(m *Model, l int) *[]float32 { return &m.Layers[l].Value }, true},
		{"output", s.Dim * s.Dim, func(m *Model, l int) *[]float32 { return &m.Layers[l].Output }, true},
		{"perceptron norm", s.Dim, func(m *Model, l int) *[]float32 { return &m.Layers[l].MLPNorm }, true},
		{"gate", s.Hidden * s.Dim, func(m *Model, l int) *[]float32 { return &m.Layers[l].Gate }, true},
		{"down", s.Dim * s.Hidden, func(m *Model, l int) *[]float32 { return &m.Layers[l].Down }, true},
		{"up", s.Hidden * s.Dim, func(m *Model, l int) *[]float32 { return &m.Layers[l].Up }, true},
	}
	fields := make(map[string]field, len(list))
	for _, f := range list {
		fields[f.name] = f
	}
	return fields
}

// blocks calls f for each block of weights in the order of names.
func (m *Model) blocks(names []string, f func(name string, size int, part *[]float32) error) error {
	fields := m.Shape.fields()
	for _, name := range names {
		d := fields[name]
		count := 1
		if d.each {
			count = m.Shape.Layers
		}
		for l := range count {
			if err := f(name, d.size, d.part(m, l)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Validate reports a block that has not the length its shape asks for, or a weight that
// is not finite.
func (m *Model) Validate() error {
	if err := m.Shape.Validate(); err != nil {
		return err
	}
	if len(m.Layers) != m.Shape.Layers {
		return fmt.Errorf("%w: %d layers of weights, want %d", ErrShape, len(m.Layers), m.Shape.Layers)
	}
	return m.blocks(append(orderNew(), "classifier"), func(name string, size int, part *[]float32) error {
		if len(*part) != size {
			return fmt.Errorf("%w: %s has %d weights, want %d", ErrShape, name, len(*part), size)
		}
		for i, v := range *part {
			if math.Float32bits(v)&0x7f800000 == 0x7f800000 {
				return fmt.Errorf("%w: weight %d of %s is %v, want a number", ErrShape, i, name, v)
			}
		}
		return nil
	})
}

// Seeded makes a model up: the same weights for the same shape and seed everywhere. They
// are spread as those of a model before its training, so that what each layer computes
// is of the order of 1 and the tokens do not settle on one.
func Seeded(s Shape, seed uint64) (*Model, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	m := &Model{Shape: s, Layers: make([]Layer, s.Layers)}
	state := seed
	return m, m.blocks(orderNew(), func(name string, size int, part *[]float32) error {
		w := make([]float32, size)
		*part = w
		inputs := s.Dim
		switch name {
		case "norm", "attention norm", "perceptron norm":
			for i := range w {
				w[i] = 1 + 0.25*(uniform(&state)-0.5)
			}
			return nil
		case "embedding":
			m.Classifier = w
		case "down":
			inputs = s.Hidden
		}
		// Uniform in ±√(3/inputs): variance 1/inputs.
		scale := 2 * float32(math.Sqrt(3/float64(inputs)))
		for i := range w {
			w[i] = scale * (uniform(&state) - 0.5)
		}
		return nil
	})
}

// uniform is splitmix64 (Steele, Lea and Flood, 2014) in [0, 1).
func uniform(state *uint64) float32 {
	*state += 0x9e3779b97f4a7c15
	z := *state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float32((z^z>>31)>>40) / (1 << 24)
}
