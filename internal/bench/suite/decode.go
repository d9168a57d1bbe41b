package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"vkcompute/cmdbuf"
	"vkcompute/internal/bench"
	"vkcompute/internal/llm"
	"vkcompute/metacache"
	"vkcompute/vk"
)

const decodeName = "decode"

// A sequence of decoded tokens begins anew after so many, because a token costs more the
// more there are before it: figures are comparable only over the same positions.
const sequence = 128

// DecodeModel is a model to decode with; the weights of one without are made up when its
// turn comes.
type DecodeModel struct {
	Name  string
	Shape llm.Shape
	Model *llm.Model
}

// DecodeModels are the shapes of real models, with weights that are made up.
func DecodeModels() []DecodeModel {
	var list []DecodeModel
	for _, s := range llm.Shapes() {
		list = append(list, DecodeModel{Name: s.Name, Shape: s.Shape})
	}
	return list
}

// wayToStep is how the launches of a step, of a decoder or in training, get to the
// device.
type wayToStep struct {
	name     string
	options  cmdbuf.Options
	replayed bool
}

func waysToStep() []wayToStep {
	none := metacache.DefaultPolicy()
	none.MaxEntries = 0
	return []wayToStep{
		{name: "rebuild", options: cmdbuf.Options{Cache: &none, Sets: cmdbuf.RebuildSets}},
		{name: "cached"},
		{name: "replay", replayed: true},
	}
}

// Decode measures the tokens a second of each model, with everything rebuilt for each
// launch, with what launches need cached, and with a step recorded once and replayed for
// each token. Every token is waited for and read by the host. Before that, the first
// tokens are compared with the float64 reference. A model that the device is too small for
// is unsupported.
func Decode(ctx context.Context, d *vk.Device, o Options, models []DecodeModel) (list []bench.Result, err error) {
	o.Measure.Time /= time.Duration(max(len(models), 1))
	o.Measure.Limit /= time.Duration(max(len(models), 1))
	for _, m := range models {
		results, err := decodeModel(ctx, d, o, m)
		if o.unsupported(decodeName, m.Name, err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("decode: %s: %w", m.Name, err)
		}
		list = append(list, results...)
	}
	return list, nil
}

// decoding is one way to decode with a model.
type decoding struct {
	way      wayToStep
	stream   *cmdbuf.Stream
	decoder  *llm.Decoder
	launches int
	barriers int
	// Of what was measured: until the steps were handed over, and altogether.
	host, total time.Duration
}

func decodeModel(ctx context.Context, d *vk.Device, o Options, m DecodeModel) (list []bench.Result, err error) {
	model := m.Model
	if model == nil {
		o.say(m.Name+": making weights up", 0)
		if model, err = llm.Seeded(m.Shape, 1); err != nil {
			return nil, err
		}
	}
	err = stream(d, cmdbuf.Options{}, func(s *cmdbuf.Stream) (err error) {
		o.say(m.Name+": uploading", 0)
		w, err := llm.Upload(ctx, s, model)
		if err != nil {
			return err
		}
		defer closing(&err, w)
		var all []*decoding
		defer func() {
			for _, x := range all {
				err = errors.Join(err, x.close())
			}
		}()
		for _, way := range waysToStep() {
			x, err := newDecoding(ctx, d, w, way)
			if err != nil {
				return fmt.Errorf("%s: %w", way.name, err)
			}
			all = append(all, x)
		}
		o.say(m.Name+": comparing with the reference", 0)
		note, err := checkDecoders(ctx, all, model)
		if err != nil {
			return err
		}
		list, err = measureDecoders(ctx, o, m.Name, all, note)
		return err
	})
	return list, err
}

func newDecoding(ctx context.Context, d *vk.Device, w *llm.Weights, way wayToStep) (*decoding, error) {
	s, err := cmdbuf.NewStream(d, way.options)
	if err != nil {
		return nil, err
	}
	x := &decoding{way: way, stream: s}
	mode := llm.Eager
	if way.replayed {
		mode = llm.Replayed
	}
	if x.decoder, err = llm.NewDecoder(ctx, s, w, mode); err != nil {
		return nil, errors.Join(err, s.Close(context.Background()))
	}
	if g := x.decoder.Graph(); g != nil {
		stats := g.Stats()
		x.launches, x.barriers = stats.Launches, stats.Barriers
		return x, nil
	}
	before := s.Stats()
	if _, err = x.decoder.Step(ctx); err != nil {
		return nil, errors.Join(err, x.close())
	}
	now := s.Stats()
	x.launches, x.barriers = int(now.Launches-before.Launches), int(now.Barriers-before.Barriers)
	return x, nil
}

// checkDecoders compares the last decoder with the reference, and the others with it: the
// same launches on the same device give the same bits.
func checkDecoders(ctx context.Context, all []*decoding, m *llm.Model) (note string, err error) {
	const products = 2e8 // of the reference, a second or so
	steps := min(max(int(products/float64(m.Parameters())), 2), 32, m.Context)
	last := all[len(all)-1].decoder
	a, err := llm.Check(ctx, last, m, steps)
	if err != nil {
		return "", err
	}
	want, err := last.Logits(ctx)
	if err != nil {
		return "", err
	}
	for _, x := range all[:len(all)-1] {
		if err := x.decoder.Start(llm.Begin); err != nil {
			return "", err
		}
		for i := range steps {
			token, err := x.decoder.Step(ctx)
			if err != nil {
				return "", err
			}
			if token != a.Tokens[i] {
				return "", fmt.Errorf("%w: %s: token %d at position %d, want %d", ErrWrong, x.way.name, token, i, a.Tokens[i])
			}
		}
		found, err := x.decoder.Logits(ctx)
		if err != nil {
			return "", err
		}
		if !slices.Equal(found, want) {
			return "", fmt.Errorf("%w: %s: other logits than those of %s after the same %d tokens", ErrWrong, x.way.name, all[len(all)-1].way.name, steps)
		}
	}
	note = fmt.Sprintf("%d tokens as in float64", a.Steps)
	if a.Ties > 0 {
		note += fmt.Sprintf(" (%d near ties)", a.Ties)
	}
	return note, nil
}

func measureDecoders(ctx context.Context, o Options, name string, all []*decoding, note string) ([]bench.Result, error) {
	var g bench.Group
	for _, x := range all {
		if err := x.decoder.Start(llm.Begin); err != nil {
			return nil, err
		}
		g.Cases = append(g.Cases, bench.Case{Name: name + "/" + x.way.name, Run: func(shots int) error { return x.run(ctx, shots) }})
	}
	samples, err := o.measure(ctx, []bench.Group{g})
	if err != nil {
		return nil, err
	}
	var list []bench.Result
	for i, x := range all {
		r := bench.NewFigure(decodeName, g.Cases[i].Name, "tokens/s", "tokens/s", rates(1e9, samples[i]))
		r.Launches, r.Barriers = x.launches, x.barriers
		r.Note = fmt.Sprintf("%d launches, %d barriers; %s", x.launches, x.barriers, note)
		host := bench.NewFigure(decodeName, g.Cases[i].Name, "host", "%", []float64{100 * float64(x.host) / float64(max(x.total, 1))})
		list = append(list, r, host)
	}
	return list, nil
}

// run makes so many steps, each waited for and its token read.
func (x *decoding) run(ctx context.Context, shots int) error {
	for range shots {
		begin := time.Now()
		if x.decoder.Next() == x.length() {
			if err := x.decoder.Start(llm.Begin); err != nil {
				return err
			}
		}
		if err := x.decoder.Submit(); err != nil {
			return err
		}
		x.host += time.Since(begin)
		if _, err := x.decoder.Token(ctx); err != nil {
			return err
		}
		x.total += time.Since(begin)
	}
	return nil
}

func (x *decoding) length() int { return min(sequence, x.decoder.Context()) }

func (x *decoding) close() error {
	return errors.Join(x.decoder.Close(), x.stream.Close(context.Background()))
}

// RecordDecode is the graph of one step of the smallest of DecodeModels.
func RecordDecode(ctx context.Context, s *cmdbuf.Stream) (g *cmdbuf.Graph, err error) {
	m, err := llm.Seeded(DecodeModels()[0].Shape, 1)
	if err != nil {
		return nil, err
	}
	w, err := llm.Upload(ctx, s, m)
	if err != nil {
		return nil, err
	}
	defer closing(&err, w)
	d, err := llm.NewDecoder(ctx, s, w, llm.Replayed)
	if err != nil {
		return nil, err
	}
	return d.Release()
}

// Generate decodes greedily from the beginning of a text, by replays, until the model
// ends it or its context is full.
func Generate(ctx context.Context, d *vk.Device, m *llm.Model) (tokens []int, err error) {
	err = stream(d, cmdbuf.Options{}, func(s *cmdbuf.Stream) (err error) {
		w, err := llm.Upload(ctx, s, m)
		if err != nil {
			return err
		}
		defer closing(&err, w)
		x, err := llm.NewDecoder(ctx, s, w, llm.Replayed)
		if err != nil {
			return err
		}
		defer closing(&err, x)
		for x.Next() < m.Context {
			token, err := x.Step(ctx)
			if err != nil {
				return err
			}
			if token == llm.Begin {
				return nil
			}
			tokens = append(tokens, token)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return tokens, nil
}
