package llm

import (
	"context"
	"errors"
	"fmt"
	"math"

	"vkcompute/cmdbuf"
	"vkcompute/shaders"
)

// Mode says how a decoder's steps get to the device.
type Mode uint8

const (
	// Replayed: one step is recorded when the decoder is made, and replayed.
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

// Position is the name of the graph's parameter.
const Position = "position"

// Decoder is a sequence that grows on a stream.
type Decoder struct {
	stream  *cmdbuf.Stream
	weights *Weights
	graph   *cmdbuf.Graph
	tensors
	next     int // position of the next step
	token    [1]int32
	position *cmdbuf.Tensor[int32]
	last     *cmdbuf.Tensor[int32] // the token the next step begins with, and its result
	logits   *cmdbuf.Tensor[float32]

	// Working memory and views of it.
	x, h            *cmdbuf.Tensor[float32] // [Dim]: the residual stream, and its norm
	row             *cmdbuf.Tensor[float32] // x as [1 Dim]
	projected       *cmdbuf.Tensor[float32] // query, key and value one after the other
	turned          *cmdbuf.Tensor[float32] // query and key, by head
	kept            *cmdbuf.Tensor[float32] // key and value, as a row of the cache
	query           *cmdbuf.Tensor[float32] // by head
	mixed, gathered *cmdbuf.Tensor[float32] // what attention gives, by head and flat
	gateUp          *cmdbuf.Tensor[float32]
	gate, up, gated *cmdbuf.Tensor[float32]
	caches          []cache
}

// cache is the keys and values of a layer: a row a position, keys before values.
type cache struct{ rows, keys, values *cmdbuf.Tensor[float32] }

// launcher is a stream or a capture.
type launcher interface {
	Launch(*shaders.Kernel, ...cmdbuf.Arg) error
}

// NewDecoder makes a decoder at position 0 with token Begin. The weights may be of
// another stream on the same device.
func NewDecoder(ctx context.Context, s *cmdbuf.Stream, w *Weights, mode Mode) (*Decoder, error) {
	d := &Decoder{stream: s, weights: w}
	d.allocate()
	err := d.err
	if err == nil {
		err = d.Start(Begin)
	}
	if err == nil && mode == Replayed {
		d.graph, err = s.Capture(ctx, func(c *cmdbuf.Capture) error { return d.launch(c, cmdbuf.Param(Position, cmdbuf.Int32(0))) })
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("llm: decoder: %w", err), d.Close())
	}
	return d, nil
}

func (d *Decoder) allocate() {
	s, w := d.stream, d.weights
	size, shared := w.HeadSize(), w.Shared()
	d.position = fresh[int32](&d.tensors, s, 1)
	d.last = fresh[int32](&d.tensors, s, 1)
	d.logits = fresh[float32](&d.tensors, s, w.Vocab)
	d.x = fresh[float32](&d.tensors, s, w.Dim)
	d.h = fresh[float32](&d.tensors, s, w.Dim)
	d.row = shaped(&d.tensors, d.x, 1, w.Dim)
	d.projected = fresh[float32](&d.tensors, s, w.Dim+2*shared)
	d.turned = shaped(&d.tensors, part(&d.tensors, d.projected, 0, w.Dim+shared), w.Heads+w.Groups, size)
	d.query = shaped(&d.tensors, part(&d.tensors, d.projected, 0, w.Dim), 1, w.Heads, size)
	d.kept = shaped(&d.tensors, part(&d.tensors, d.projected, w.Dim, w.Dim+2*shared), 1, 2*shared)
	d.gathered = fresh[float32](&d.tensors, s, w.Dim)
	d.mixed = shaped(&d.tensors, d.gathered, 1, w.Heads, size)
	d.gateUp = fresh[float32](&d.tensors, s, 2*w.Hidden)
	d.gate = part(&d.tensors, d.gateUp, 0, w.Hidden)
	d.up = part(&d.tensors, d.gateUp, w.Hidden, 2*w.Hidden)
	d.gated = fresh[float32](&d.tensors, s, w.Hidden)
	for range w.Shape.Layers {
		var c cache
		c.rows = fresh[float32](&d.tensors, s, w.Context, 2*shared)
		both := shaped(&d.tensors, c.rows, w.Context, 2*w.Groups, size)
		c.keys = slice(&d.tensors, both, 1, 0, w.Groups)
		c.values = slice(&d.tensors, both, 1, w.Groups, 2*w.Groups)
		d.caches = append(d.caches, c)
	}
}

// launch makes the launches of one step. The embedding's row is found by the token and
// the caches' rows by the position, both on the device.
func (d *Decoder) launch(l launcher, position cmdbuf.Arg) error {
	w := d.weights
	scale := cmdbuf.Float32(float32(1 / math.Sqrt(float64(w.HeadSize()))))
	eps := cmdbuf.Float32(epsilon)
	err := l.Launch(shaders.Fill, position, d.position)
	launch := func(k *shaders.Kernel, args ...cmdbuf.Arg) {
		if err == nil {
			err = l.Launch(k, args...)
		}
	}
	launch(shaders.Gather, w.embedding, d.last, d.row)
	for i := range w.layers {
		layer, c := &w.layers[i], &d.caches[i]
		launch(shaders.RMSNorm, d.x, layer.norm, eps, d.h)
		launch(shaders.MatVec, layer.projections, d.h, d.projected)
		launch(shaders.Rotary, d.turned, w.frequencies, d.position, d.turned)
		launch(shaders.Put, d.kept, d.position, c.rows)
		launch(shaders.Attention, d.query, c.keys, c.values, d.position, scale, d.mixed)
		launch(shaders.MatVecAdd, layer.output, d.gathered, d.x, d.x)
		launch(shaders.RMSNorm, d.x, layer.mlpNorm, eps, d.h)
		launch(shaders.MatVec, layer.gateUp, d.h, d.gateUp)
		launch(shaders.SiluMul, d.gate, d.up, d.gated)
		launch(shaders.MatVecAdd, layer.down, d.gated, d.x, d.x)
	}
	launch(shaders.RMSNorm, d.x, w.norm, eps, d.h)
	launch(shaders.MatVec, w.classifier, d.h, d.logits)
	launch(shaders.ArgMax, d.logits, d.last)
	return err
}

// Start begins a sequence with a token, at position 0. What an earlier one left in the
// caches is never seen.
func (d *Decoder) Start(token int) error {
	if token < 0 || token >= d.weights.Vocab {
		return fmt.Errorf("llm: token %d, want 0 to %d", token, d.weights.Vocab-1)
	}
	d.next = 0
	return d.last.Write([]int32{int32(token)})
}

// Submit hands the next step to the device and does not wait.
func (d *Decoder) Submit() error {
	if d.next >= d.weights.Context {
		return fmt.Errorf("llm: the context of %d positions is full", d.weights.Context)
	}
	position := cmdbuf.Int32(int32(d.next))
	if d.graph == nil {
		if err := d.launch(d.stream, position); err != nil {
			return err
		}
		if err := d.stream.Flush(); err != nil {
			return err
		}
	} else {
		if err := d.graph.Set(Position, position); err != nil {
			return err
		}
		if err := d.graph.Replay(); err != nil {
			return err
		}
	}
	d.next++
	return nil
}

// Token waits for what was submitted and returns the last token.
func (d *Decoder) Token(ctx context.Context) (int, error) {
	err := d.last.ReadInto(ctx, d.token[:])
	return int(d.token[0]), err
}

// Step adds a token to the sequence and returns it.
func (d *Decoder) Step(ctx context.Context) (int, error) {
	if err := d.Submit(); err != nil {
		return 0, err
	}
	return d.Token(ctx)
}

// Next is the position of the next step.
func (d *Decoder) Next() int { return d.next }

// Context is the number of positions.
func (d *Decoder) Context() int { return d.weights.Context }

// Logits are those of the last step.
func (d *Decoder) Logits(ctx context.Context) ([]float32, error) { return d.logits.Read(ctx) }

// Graph is the recorded step; nil of an eager decoder. It belongs to the decoder.
func (d *Decoder) Graph() *cmdbuf.Graph { return d.graph }

// Release closes everything but the graph, which keeps the memory it works on, and
// returns it.
func (d *Decoder) Release() (*cmdbuf.Graph, error) {
	g := d.graph
	d.graph = nil
	return g, d.tensors.close()
}

// Close gives everything back. It does not wait.
func (d *Decoder) Close() error {
	var err error
	if d.graph != nil {
		err = d.graph.Close()
	}
	return errors.Join(err, d.tensors.close())
}
