package llm

import (
	"context"
	"errors"
	"fmt"

	"vkcompute/cmdbuf"
	"vkcompute/shaders"
)

// Weights are a model on a device.
type Weights struct {
	Shape
	tensors
	embedding, classifier, norm *cmdbuf.Tensor[float32]
	frequencies                 *cmdbuf.Tensor[float32]
	layers                      []deviceLayer
}

// deviceLayer has the matrices that are multiplied with the same vector in one piece, so
// that one launch does it.
type deviceLayer struct {
	norm, mlpNorm *cmdbuf.Tensor[float32]
	projections   *cmdbuf.Tensor[float32] // query, key, value: [Dim+2·Shared Dim]
	output        *cmdbuf.Tensor[float32]
	gateUp        *cmdbuf.Tensor[float32] // [2·Hidden Dim]
	down          *cmdbuf.Tensor[float32]
}

// Upload puts a model on the stream's device and waits until it is there.
func Upload(ctx context.Context, s *cmdbuf.Stream, m *Model) (*Weights, error) {
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("llm: %w", err)
	}
	w := &Weights{Shape: m.Shape}
	w.embedding = matrix(&w.tensors, s, m.Dim, m.Embedding)
	w.classifier = w.embedding
	if &m.Classifier[0] != &m.Embedding[0] {
		w.classifier = matrix(&w.tensors, s, m.Dim, m.Classifier)
	}
	w.norm = vector(&w.tensors, s, m.Norm)
	w.frequencies = vector(&w.tensors, s, shaders.RotaryFrequencies(m.HeadSize(), rotaryBase))
	for i := range m.Layers {
		l := &m.Layers[i]
		w.layers = append(w.layers, deviceLayer{
			norm: vector(&w.tensors, s, l.Norm), mlpNorm: vector(&w.tensors, s, l.MLPNorm),
			projections: matrix(&w.tensors, s, m.Dim, l.Query, l.Key, l.Value),
			output:      matrix(&w.tensors, s, m.Dim, l.Output),
			gateUp:      matrix(&w.tensors, s, m.Dim, l.Gate, l.Up),
			down:        matrix(&w.tensors, s, m.Hidden, l.Down),
		})
	}
	err := w.err
	if err == nil {
		err = s.Sync(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("llm: upload: %w", err), w.Close())
	}
	return w, nil
}

// Close gives the memory back.
func (w *Weights) Close() error { return w.tensors.close() }

// tensors keeps what has to be closed. The first error stays, and after it nothing is
// made.
type tensors struct {
	err   error
	owned []interface{ Close() error }
}

func (t *tensors) close() error {
	var err error
	for _, x := range t.owned {
		err = errors.Join(err, x.Close())
	}
	t.owned = nil
	return err
}

// fresh makes a tensor of zeros: nothing may depend on what the memory held before, and
// a NaN in a row of the cache that counts for nothing would.
func fresh[T cmdbuf.Element](t *tensors, s *cmdbuf.Stream, shape ...int) *cmdbuf.Tensor[T] {
	n := 1
	for _, e := range shape {
		n *= e
	}
	return upload(t, s, make([]T, n), shape...)
}

func upload[T cmdbuf.Element](t *tensors, s *cmdbuf.Stream, host []T, shape ...int) *cmdbuf.Tensor[T] {
	if t.err != nil {
		return nil
	}
	x, err := cmdbuf.Upload(s, host, shape...)
	return keep(t, x, err)
}

func keep[T cmdbuf.Element](t *tensors, x *cmdbuf.Tensor[T], err error) *cmdbuf.Tensor[T] {
	if err != nil {
		t.err = err
		return nil
	}
	t.owned = append(t.owned, x)
	return x
}

func vector(t *tensors, s *cmdbuf.Stream, host []float32) *cmdbuf.Tensor[float32] {
	return upload(t, s, host, len(host))
}

// matrix joins blocks of rows.
func matrix(t *tensors, s *cmdbuf.Stream, columns int, blocks ...[]float32) *cmdbuf.Tensor[float32] {
	if len(blocks) == 1 {
		return upload(t, s, blocks[0], len(blocks[0])/columns, columns)
	}
	if t.err != nil {
		return nil
	}
	n := 0
	for _, b := range blocks {
		n += len(b)
	}
	x, err := cmdbuf.New[float32](s, n/columns, columns)
	x = keep(t, x, err)
	at := 0
	for _, b := range blocks {
		rows := slice(t, x, 0, at, at+len(b)/columns)
		if t.err != nil {
			return nil
		}
		t.err = rows.Write(b)
		at += len(b) / columns
	}
	return x
}

// slice is part of an axis.
func slice[T cmdbuf.Element](t *tensors, x *cmdbuf.Tensor[T], axis, from, to int) *cmdbuf.Tensor[T] {
	if t.err != nil {
		return nil
	}
	v, err := x.Range(axis, from, to, 1)
	return keep(t, v, err)
}

func part[T cmdbuf.Element](t *tensors, x *cmdbuf.Tensor[T], from, to int) *cmdbuf.Tensor[T] {
	return slice(t, x, 0, from, to)
}

func shaped[T cmdbuf.Element](t *tensors, x *cmdbuf.Tensor[T], shape ...int) *cmdbuf.Tensor[T] {
	if t.err != nil {
		return nil
	}
	v, err := x.Reshape(shape...)
	return keep(t, v, err)
}
