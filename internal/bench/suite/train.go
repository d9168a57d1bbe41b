package suite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"time"

	"vkcompute/cmdbuf"
	"vkcompute/internal/bench"
	"vkcompute/internal/mlp"
	"vkcompute/internal/mnist"
	"vkcompute/vk"
)

const trainName = "train"

const (
	trainHidden = 128
	trainBatch  = 100
	// firstRate falls to 0 in a straight line over the training.
	firstRate = 3e-3
)

// TrainOptions of Train.
type TrainOptions struct {
	Files  fs.FS // of the MNIST database
	Epochs int
}

// digits is a set as a net takes it.
type digits struct {
	inputs int
	images []float32
	labels []int32
}

// newDigits puts the images in a random order, the same every time: a batch is rows that
// lie side by side.
func newDigits(s *mnist.Set) *digits {
	d := &digits{inputs: s.Pixels, images: make([]float32, len(s.Images)), labels: make([]int32, s.Count)}
	for to, from := range rand.New(rand.NewPCG(1, 1)).Perm(s.Count) {
		row := d.images[to*s.Pixels : (to+1)*s.Pixels]
		for i, v := range s.Images[from*s.Pixels : (from+1)*s.Pixels] {
			row[i] = float32(v) / 255
		}
		d.labels[to] = int32(s.Labels[from])
	}
	return d
}

// Train measures the steps a second of training a classifier for digits, with everything
// rebuilt for each launch, with what launches need cached, and with a step recorded once
// and replayed with another batch. Then it trains by replays and says how many of the
// test images the net classifies right. Before that, loss and gradients are compared with
// the float64 reference.
func Train(ctx context.Context, d *vk.Device, o Options, t TrainOptions) (list []bench.Result, err error) {
	o.say("reading images", 0)
	train, test, err := mnist.Load(t.Files)
	if err == nil {
		err = stream(d, cmdbuf.Options{}, func(s *cmdbuf.Stream) (err error) {
			list, err = trainOn(ctx, d, s, o, newDigits(train), newDigits(test), t.Epochs)
			return err
		})
	}
	if o.unsupported(trainName, "all", err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return list, nil
}

// training is one way to train.
type training struct {
	way         wayToStep
	stream      *cmdbuf.Stream
	own         bool // the stream
	trainer     *mlp.Trainer
	launches    int
	barriers    int
	next        int // batch
	host, total time.Duration
}

func trainOn(ctx context.Context, d *vk.Device, s *cmdbuf.Stream, o Options, train, test *digits, epochs int) (list []bench.Result, err error) {
	o.say("uploading images", 0)
	data, err := mlp.UploadData(s, train.images, train.labels)
	if err != nil {
		return nil, err
	}
	defer closing(&err, data)
	tests, err := mlp.UploadData(s, test.images, test.labels)
	if err != nil {
		return nil, err
	}
	defer closing(&err, tests)
	if err := s.Sync(ctx); err != nil {
		return nil, err
	}
	sizes := mlp.Sizes{Inputs: train.inputs, Hidden: trainHidden, Classes: mnist.Classes, Batch: min(trainBatch, data.Count, tests.Count)}
	weights := sizes.InitialWeights(1)
	var all []*training
	defer func() {
		for _, x := range all {
			err = errors.Join(err, x.close())
		}
	}()
	for _, way := range waysToStep() {
		x, err := newTraining(ctx, d, s, way, sizes, weights, data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", way.name, err)
		}
		all = append(all, x)
	}
	o.say("comparing with the reference", 0)
	if err := checkTrainings(ctx, all, sizes, train); err != nil {
		return nil, err
	}
	var g bench.Group
	for _, x := range all {
		g.Cases = append(g.Cases, bench.Case{Name: x.way.name, Run: func(shots int) error { return x.run(ctx, shots) }})
	}
	samples, err := o.measure(ctx, []bench.Group{g})
	if err != nil {
		return nil, err
	}
	o.say("training", 0)
	accuracy, err := fit(ctx, s, o, sizes, weights, data, tests, epochs)
	if err != nil {
		return nil, err
	}
	for i, x := range all {
		r := bench.NewFigure(trainName, x.way.name, "steps/s", "steps/s", rates(1e9, samples[i]))
		r.Launches, r.Barriers = x.launches, x.barriers
		r.Note = fmt.Sprintf("%d launches, %d barriers", x.launches, x.barriers)
		if x.way.replayed {
			r.Note += fmt.Sprintf("; trained on %d images for %d epochs, tested on %d", data.Count, epochs, tests.Count)
		}
		list = append(list, r, bench.NewFigure(trainName, x.way.name, "host", "%", []float64{100 * float64(x.host) / float64(max(x.total, 1))}))
		if x.way.replayed {
			list = append(list, bench.NewFigure(trainName, x.way.name, "accuracy", "of 1", []float64{accuracy}))
		}
	}
	return list, nil
}

func newTraining(ctx context.Context, d *vk.Device, s *cmdbuf.Stream, way wayToStep, sizes mlp.Sizes, weights []float32, data *mlp.Data) (x *training, err error) {
	x = &training{way: way, stream: s}
	mode := mlp.Replayed
	if !way.replayed {
		mode, x.own = mlp.Eager, true
		if x.stream, err = cmdbuf.NewStream(d, way.options); err != nil {
			return nil, err
		}
	}
	if x.trainer, err = mlp.NewTrainer(ctx, x.stream, sizes, weights, data, mode); err != nil {
		return nil, errors.Join(err, x.close())
	}
	if g := x.trainer.Graph(); g != nil {
		stats := g.Stats()
		x.launches, x.barriers = stats.Launches, stats.Barriers
		return x, nil
	}
	// The uploads have to be in an earlier batch, or their barrier counts.
	err = x.stream.Sync(ctx)
	before := x.stream.Stats()
	if err == nil {
		err = x.trainer.Step(0, 0)
	}
	if err != nil {
		return nil, errors.Join(err, x.close())
	}
	now := x.stream.Stats()
	x.launches, x.barriers = int(now.Launches-before.Launches), int(now.Barriers-before.Barriers)
	return x, nil
}

// checkTrainings compares a step of each way with the reference, and then their weights
// after a few more, which are equal bit by bit: the launches are the same.
func checkTrainings(ctx context.Context, all []*training, sizes mlp.Sizes, train *digits) error {
	last := all[len(all)-1]
	// The others have made a step to be counted.
	if err := last.trainer.Step(0, 0); err != nil {
		return err
	}
	var want []float32
	for i := len(all) - 1; i >= 0; i-- {
		x := all[i]
		batch := x.trainer.Batches() - 1
		from, to := batch*sizes.Batch, (batch+1)*sizes.Batch
		if err := mlp.Check(ctx, x.trainer, batch, train.images[from*sizes.Inputs:to*sizes.Inputs], train.labels[from:to]); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrWrong, x.way.name, err)
		}
		for step := range 3 {
			if err := x.trainer.Step(step%x.trainer.Batches(), firstRate); err != nil {
				return err
			}
		}
		found, err := x.trainer.Weights(ctx)
		if err != nil {
			return err
		}
		if want == nil {
			want = found
		}
		if !slices.Equal(found, want) {
			return fmt.Errorf("%w: %s: other weights than those of %s after the same steps", ErrWrong, x.way.name, last.way.name)
		}
	}
	return nil
}

// fit trains anew and tests.
func fit(ctx context.Context, s *cmdbuf.Stream, o Options, sizes mlp.Sizes, weights []float32, data, tests *mlp.Data, epochs int) (accuracy float64, err error) {
	x, err := mlp.NewTrainer(ctx, s, sizes, weights, data, mlp.Replayed)
	if err != nil {
		return 0, err
	}
	defer closing(&err, x)
	order := rand.New(rand.NewPCG(2, 2))
	steps := epochs * x.Batches()
	step := 0
	for epoch := range epochs {
		for _, batch := range order.Perm(x.Batches()) {
			if err := x.Step(batch, firstRate*float32(steps-step)/float32(steps)); err != nil {
				return 0, err
			}
			step++
			if step%16 == 0 { // the host is not to run away from the device
				o.say(fmt.Sprintf("training, epoch %d of %d", epoch+1, epochs), float64(step)/float64(steps))
				if err := s.Sync(ctx); err != nil {
					return 0, err
				}
			}
		}
	}
	return x.Accuracy(ctx, tests)
}

// run makes so many steps and waits for each.
func (x *training) run(ctx context.Context, shots int) error {
	for range shots {
		begin := time.Now()
		if err := x.trainer.Step(x.next%x.trainer.Batches(), firstRate); err != nil {
			return err
		}
		x.next++
		x.host += time.Since(begin)
		if err := x.stream.Sync(ctx); err != nil {
			return err
		}
		x.total += time.Since(begin)
	}
	return nil
}

func (x *training) close() error {
	var err error
	if x.trainer != nil {
		err = x.trainer.Close()
	}
	if x.own {
		err = errors.Join(err, x.stream.Close(context.Background()))
	}
	return err
}

// RecordTrain is the graph of one step on the first batch of some images.
func RecordTrain(ctx context.Context, s *cmdbuf.Stream, files fs.FS) (g *cmdbuf.Graph, err error) {
	_, test, err := mnist.Load(files)
	if err != nil {
		return nil, err
	}
	images := newDigits(test)
	data, err := mlp.UploadData(s, images.images, images.labels)
	if err != nil {
		return nil, err
	}
	defer closing(&err, data)
	sizes := mlp.Sizes{Inputs: images.inputs, Hidden: trainHidden, Classes: mnist.Classes, Batch: min(trainBatch, data.Count)}
	x, err := mlp.NewTrainer(ctx, s, sizes, sizes.InitialWeights(1), data, mlp.Replayed)
	if err != nil {
		return nil, err
	}
	return x.Release()
}
