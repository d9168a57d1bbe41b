package mlp

import (
	"context"
	"errors"
	"fmt"

	"vkcompute/cmdbuf"
	"vkcompute/shaders"
)

// Mode says how a trainer's steps get to the device.
type Mode uint8

const (
	// Replayed: one step is recorded when the trainer is made, and replayed.
	Replayed Mode = iota
	// Eager: each step makes its launches anew.
	Eager
)

func (m Mode) String() string {
	if m == Eager {
		return "eager"
	}
	return "replayed"
}

// The parameters of a trainer's graph. A batch is seen in two ways, as rows and
// transposed, for the gradient of W1.
const (
	Images     = "images"
	Transposed = "images transposed"
	Labels     = "labels"
	Rate       = "rate"
)

// What Adam's authors recommend.
const (
	beta1   = 0.9
	beta2   = 0.999
	epsilon = 1e-8
)

// Trainer trains a net on a stream.
type Trainer struct {
	sizes   Sizes
	stream  *cmdbuf.Stream
	data    *Data
	batches []batch
	graph   *cmdbuf.Graph
	owned   []interface{ Close() error }

	weights, gradients, first, second *cmdbuf.Tensor[float32] // flat
	step, one                         *cmdbuf.Tensor[int32]   // Adam's count

	w1, b1, w2, b2     *cmdbuf.Tensor[float32] // of the weights
	w2Transposed       *cmdbuf.Tensor[float32]
	gw1, gb1, gw2, gb2 *cmdbuf.Tensor[float32] // of the gradients

	h, a, dh     *cmdbuf.Tensor[float32] // [Batch Hidden]
	aTransposed  *cmdbuf.Tensor[float32]
	z, dz        *cmdbuf.Tensor[float32] // [Batch Classes]
	losses, loss *cmdbuf.Tensor[float32]
	choice       *cmdbuf.Tensor[int32] // [Batch 1], for Accuracy
	err          error
}

// launcher is a stream or a capture.
type launcher interface {
	Launch(*shaders.Kernel, ...cmdbuf.Arg) error
}

// NewTrainer makes a trainer that begins with these weights.
func NewTrainer(ctx context.Context, s *cmdbuf.Stream, sizes Sizes, weights []float32, data *Data, mode Mode) (*Trainer, error) {
	if err := sizes.Validate(); err != nil {
		return nil, err
	}
	if data.Inputs != sizes.Inputs || data.Count < sizes.Batch || len(weights) != sizes.Parameters() {
		return nil, fmt.Errorf("mlp: %w: %d images of %d elements and %d weights, for %+v", ErrSize, data.Count, data.Inputs, len(weights), sizes)
	}
	t := &Trainer{sizes: sizes, stream: s, data: data}
	t.allocate(weights)
	for i := range data.Batches(sizes.Batch) {
		b, err := data.rows(i*sizes.Batch, (i+1)*sizes.Batch)
		t.err = errors.Join(t.err, err)
		t.batches = append(t.batches, b)
	}
	if t.err == nil && mode == Replayed {
		t.graph, t.err = s.Capture(ctx, func(c *cmdbuf.Capture) error {
			b := t.batches[0]
			return t.launch(c, cmdbuf.Param(Images, b.images), cmdbuf.Param(Transposed, b.transposed), cmdbuf.Param(Labels, b.labels), cmdbuf.Param(Rate, cmdbuf.Float32(0)))
		})
	}
	if t.err != nil {
		return nil, errors.Join(fmt.Errorf("mlp: trainer: %w", t.err), t.Close())
	}
	return t, nil
}

func (t *Trainer) allocate(weights []float32) {
	s := t.sizes
	t.weights = upload(t, weights, len(weights))
	t.gradients, t.first, t.second = zeros(t, len(weights)), zeros(t, len(weights)), zeros(t, len(weights))
	t.step, t.one = upload(t, []int32{0}, 1), upload(t, []int32{1}, 1)
	w1, b1, w2, b2 := s.bounds()
	t.w1, t.gw1 = view(t, t.weights, 0, w1, s.Inputs, s.Hidden), view(t, t.gradients, 0, w1, s.Inputs, s.Hidden)
	t.b1, t.gb1 = view(t, t.weights, w1, b1, 1, s.Hidden), view(t, t.gradients, w1, b1, 1, s.Hidden)
	t.w2, t.gw2 = view(t, t.weights, b1, w2, s.Hidden, s.Classes), view(t, t.gradients, b1, w2, s.Hidden, s.Classes)
	t.b2, t.gb2 = view(t, t.weights, w2, b2, 1, s.Classes), view(t, t.gradients, w2, b2, 1, s.Classes)
	t.w2Transposed = transposed(t, t.w2)
	t.h, t.a, t.dh = zeros(t, s.Batch, s.Hidden), zeros(t, s.Batch, s.Hidden), zeros(t, s.Batch, s.Hidden)
	t.aTransposed = transposed(t, t.a)
	t.z, t.dz = zeros(t, s.Batch, s.Classes), zeros(t, s.Batch, s.Classes)
	t.losses, t.loss = zeros(t, s.Batch), zeros(t, 1)
	t.choice = upload(t, make([]int32, s.Batch), s.Batch, 1)
}

// forward computes the logits of a batch.
func (t *Trainer) forward(l launcher, images cmdbuf.Arg) error {
	return each(l,
		call{shaders.MatMul, []cmdbuf.Arg{images, t.w1, t.h}},
		call{shaders.Add, []cmdbuf.Arg{t.h, t.b1, t.h}},
		call{shaders.Relu, []cmdbuf.Arg{t.h, t.a}},
		call{shaders.MatMul, []cmdbuf.Arg{t.a, t.w2, t.z}},
		call{shaders.Add, []cmdbuf.Arg{t.z, t.b2, t.z}},
	)
}

// launch makes the launches of one step.
func (t *Trainer) launch(l launcher, images, imagesTransposed, labels, rate cmdbuf.Arg) error {
	if err := t.forward(l, images); err != nil {
		return err
	}
	return each(l,
		call{shaders.CrossEntropy, []cmdbuf.Arg{t.z, labels, t.losses}},
		call{shaders.Mean, []cmdbuf.Arg{t.losses, t.loss}},
		call{shaders.CrossEntropyGrad, []cmdbuf.Arg{t.z, labels, cmdbuf.Float32(1 / float32(t.sizes.Batch)), t.dz}},
		call{shaders.MatMul, []cmdbuf.Arg{t.aTransposed, t.dz, t.gw2}},
		call{shaders.Sum, []cmdbuf.Arg{t.dz, t.gb2}},
		call{shaders.MatMul, []cmdbuf.Arg{t.dz, t.w2Transposed, t.dh}},
		call{shaders.ReluGrad, []cmdbuf.Arg{t.h, t.dh, t.dh}},
		call{shaders.MatMul, []cmdbuf.Arg{imagesTransposed, t.dh, t.gw1}},
		call{shaders.Sum, []cmdbuf.Arg{t.dh, t.gb1}},
		call{shaders.AddInt, []cmdbuf.Arg{t.step, t.one, t.step}},
		call{shaders.Adam, []cmdbuf.Arg{t.gradients, t.step, rate, cmdbuf.Float32(beta1), cmdbuf.Float32(beta2), cmdbuf.Float32(epsilon), t.weights, t.first, t.second}},
	)
}

type call struct {
	kernel *shaders.Kernel
	args   []cmdbuf.Arg
}

func each(l launcher, calls ...call) error {
	for _, c := range calls {
		if err := l.Launch(c.kernel, c.args...); err != nil {
			return err
		}
	}
	return nil
}

// Batches is the number of batches.
func (t *Trainer) Batches() int { return len(t.batches) }

// Step learns from a batch, by its number, and does not wait.
func (t *Trainer) Step(batch int, rate float32) error {
	if batch < 0 || batch >= len(t.batches) {
		return fmt.Errorf("mlp: %w: batch %d, want 0 to %d", ErrSize, batch, len(t.batches)-1)
	}
	b := &t.batches[batch]
	if t.graph == nil {
		if err := t.launch(t.stream, b.images, b.transposed, b.labels, cmdbuf.Float32(rate)); err != nil {
			return err
		}
		return t.stream.Flush()
	}
	err := t.graph.Set(Images, b.images)
	if err == nil {
		err = t.graph.Set(Transposed, b.transposed)
	}
	if err == nil {
		err = t.graph.Set(Labels, b.labels)
	}
	if err == nil {
		err = t.graph.Set(Rate, cmdbuf.Float32(rate))
	}
	if err == nil {
		err = t.graph.Replay()
	}
	return err
}

// Loss is the mean loss of the last step's batch, before the step.
func (t *Trainer) Loss(ctx context.Context) (float32, error) {
	var loss [1]float32
	err := t.loss.ReadInto(ctx, loss[:])
	return loss[0], err
}

// Weights are W1, b1, W2 and b2, one after the other.
func (t *Trainer) Weights(ctx context.Context) ([]float32, error) { return t.weights.Read(ctx) }

// Gradients are those of the last step, in the order of the weights.
func (t *Trainer) Gradients(ctx context.Context) ([]float32, error) { return t.gradients.Read(ctx) }

// Accuracy is the share of the data that the net classifies right. A last batch that is not
// whole is made of rows that count once all the same.
func (t *Trainer) Accuracy(ctx context.Context, d *Data) (float64, error) {
	size := t.sizes.Batch
	if d.Inputs != t.sizes.Inputs || d.Count < size {
		return 0, fmt.Errorf("mlp: %w: %d images of %d elements, for %+v", ErrSize, d.Count, d.Inputs, t.sizes)
	}
	right := 0
	choice := make([]int32, size)
	for from := 0; from < d.Count; from += size {
		at := min(from, d.Count-size)
		b, err := d.rows(at, at+size)
		if err != nil {
			return 0, err
		}
		if err := t.forward(t.stream, b.images); err != nil {
			return 0, err
		}
		if err := t.stream.Launch(shaders.ArgMax, t.z, t.choice); err != nil {
			return 0, err
		}
		if err := t.choice.ReadInto(ctx, choice); err != nil {
			return 0, err
		}
		for i := from - at; i < size; i++ {
			if choice[i] == d.host[at+i] {
				right++
			}
		}
	}
	return float64(right) / float64(d.Count), nil
}

// Graph is the recorded step; nil of an eager trainer. It belongs to the trainer.
func (t *Trainer) Graph() *cmdbuf.Graph { return t.graph }

// Release closes everything but the graph, which keeps the memory it works on, and
// returns it.
func (t *Trainer) Release() (*cmdbuf.Graph, error) {
	g := t.graph
	t.graph = nil
	return g, t.Close()
}

// Close gives everything back. It does not wait.
func (t *Trainer) Close() error {
	var err error
	if t.graph != nil {
		err = t.graph.Close()
		t.graph = nil
	}
	for _, x := range t.owned {
		err = errors.Join(err, x.Close())
	}
	t.owned = nil
	return err
}

// The first error stays, and after it nothing is made.
func keep[T cmdbuf.Element](t *Trainer, x *cmdbuf.Tensor[T], err error) *cmdbuf.Tensor[T] {
	if err != nil {
		t.err = err
		return nil
	}
	t.owned = append(t.owned, x)
	return x
}

func upload[T cmdbuf.Element](t *Trainer, host []T, shape ...int) *cmdbuf.Tensor[T] {
	if t.err != nil {
		return nil
	}
	x, err := cmdbuf.Upload(t.stream, host, shape...)
	return keep(t, x, err)
}

func zeros(t *Trainer, shape ...int) *cmdbuf.Tensor[float32] {
	n := 1
	for _, e := range shape {
		n *= e
	}
	return upload(t, make([]float32, n), shape...)
}

func view(t *Trainer, x *cmdbuf.Tensor[float32], from, to int, shape ...int) *cmdbuf.Tensor[float32] {
	if t.err != nil {
		return nil
	}
	v, err := x.Range(0, from, to, 1)
	if err == nil {
		v, err = v.Reshape(shape...)
	}
	return keep(t, v, err)
}

func transposed(t *Trainer, x *cmdbuf.Tensor[float32]) *cmdbuf.Tensor[float32] {
	if t.err != nil {
		return nil
	}
	v, err := x.Transpose(0, 1)
	return keep(t, v, err)
}
