package llm

import (
	"fmt"
	"math"
)

const (
	epsilon    = 1e-5 // of the RMS norms
	rotaryBase = 10000
)

// Reference is the model in float64 on the host, with the weights as they are.
type Reference struct {
	m            *Model
	position     int
	keys, values [][]float64 // by layer, a row a position
	logits       []float64
}

// NewReference makes a reference at position 0.
func NewReference(m *Model) *Reference {
	return &Reference{m: m, keys: make([][]float64, m.Shape.Layers), values: make([][]float64, m.Shape.Layers), logits: make([]float64, m.Vocab)}
}

// Logits adds a token to the sequence and returns the logits of the one after it. They
// are overwritten by the next call.
func (r *Reference) Logits(token int) ([]float64, error) {
	m := r.m
	if token < 0 || token >= m.Vocab {
		return nil, fmt.Errorf("llm: token %d, want 0 to %d", token, m.Vocab-1)
	}
	if r.position == m.Context {
		return nil, fmt.Errorf("llm: the context of %d positions is full", m.Context)
	}
	x := make([]float64, m.Dim)
	for i, v := range m.Embedding[token*m.Dim : (token+1)*m.Dim] {
		x[i] = float64(v)
	}
	size := m.HeadSize()
	for l := range m.Layers {
		w := &m.Layers[l]
		h := rmsNorm(x, w.Norm)
		query := product(w.Query, h, m.Dim)
		key := product(w.Key, h, m.Shared())
		r.rotate(query)
		r.rotate(key)
		r.keys[l] = append(r.keys[l], key...)
		r.values[l] = append(r.values[l], product(w.Value, h, m.Shared())...)
		mixed := make([]float64, m.Dim)
		for head := range m.Heads {
			r.attend(query[head*size:(head+1)*size], r.keys[l], r.values[l], head*m.Groups/m.Heads*size, mixed[head*size:(head+1)*size])
		}
		add(x, product(w.Output, mixed, m.Dim))
		h = rmsNorm(x, w.MLPNorm)
		gate, up := product(w.Gate, h, m.Hidden), product(w.Up, h, m.Hidden)
		for i, g := range gate {
			up[i] *= g / (1 + math.Exp(-g))
		}
		add(x, product(w.Down, up, m.Dim))
	}
	copy(r.logits, product(m.Classifier, rmsNorm(x, m.Norm), m.Vocab))
	r.position++
	return r.logits, nil
}

// rotate turns the pairs of neighbours of each head by the position.
func (r *Reference) rotate(x []float64) {
	size := r.m.HeadSize()
	for i := 0; i < len(x); i += 2 {
		sin, cos := math.Sincos(float64(r.position) * math.Pow(rotaryBase, -float64(i%size)/float64(size)))
		x[i], x[i+1] = x[i]*cos-x[i+1]*sin, x[i]*sin+x[i+1]*cos
	}
}

// attend mixes the values at an offset within the rows, for one head.
func (r *Reference) attend(query, keys, values []float64, at int, out []float64) {
	row := r.m.Shared()
	scores := make([]float64, r.position+1)
	most := math.Inf(-1)
	for j := range scores {
		for i, q := range query {
			scores[j] += q * keys[j*row+at+i]
		}
		scores[j] /= math.Sqrt(float64(len(query)))
		most = max(most, scores[j])
	}
	sum := 0.0
	for j, s := range scores {
		scores[j] = math.Exp(s - most)
		sum += scores[j]
	}
	for j, p := range scores {
		for i := range out {
			out[i] += p / sum * values[j*row+at+i]
		}
	}
}

func rmsNorm(x []float64, weight []float32) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	scale := 1 / math.Sqrt(sum/float64(len(x))+epsilon)
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v * scale * float64(weight[i])
	}
	return out
}

func product(matrix []float32, x []float64, rows int) []float64 {
	out := make([]float64, rows)
	for i := range out {
		row := matrix[i*len(x) : (i+1)*len(x)]
		var a, b float64 // two sums go on side by side
		k := 0
		for ; k+2 <= len(x); k += 2 {
			a += float64(row[k]) * x[k]
			b += float64(row[k+1]) * x[k+1]
		}
		for ; k < len(x); k++ {
			a += float64(row[k]) * x[k]
		}
		out[i] = a + b
	}
	return out
}

func add(x, y []float64) {
	for i, v := range y {
		x[i] += v
	}
}
