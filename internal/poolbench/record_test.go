package poolbench_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/llm"
	"vkcompute/internal/mlp"
	"vkcompute/internal/poolbench/alloctrace"
	"vkcompute/internal/testenv"
	"vkcompute/internal/vktest"
	"vkcompute/vk"
)

var record = flag.Bool("record", false, "run the programs of which there are recorded traces, and write the traces anew")

func TestMain(m *testing.M) { testenv.Main(m) }

var ctx = context.Background()

// program is something that uses a stream as applications do.
type program struct {
	comment string
	run     func(t *testing.T, s *cmdbuf.Stream)
}

func programs() map[string]program {
	return map[string]program{
		"train":  {comment: trainComment, run: train},
		"decode": {comment: decodeComment, run: decode},
	}
}

const trainComment = `Training of the classifier of package mlp, 784-128-10 with Adam: 1000 images for training and 500
for tests are uploaded. Three epochs of 10 eager steps on batches of 100; the loss is read every fifth step, and after each epoch
the accuracy on both sets and the weights. Then a trainer that begins with these weights is recorded and replayed for
three epochs more, read in the same way.
`

const decodeComment = `Generation of text with the transformer of package llm in the shape of 15 million parameters: the
weights are uploaded, then three sequences of 32 tokens, of which each token is read. The first is launched eagerly; two decoders
whose step was recorded then replay the others in turn, and their logits are read every eighth token.
`

func train(t *testing.T, s *cmdbuf.Stream) {
	sizes := mlp.Sizes{Inputs: 784, Hidden: 128, Classes: 10, Batch: 100}
	data := func(n int) *mlp.Data {
		images, labels := make([]float32, n*sizes.Inputs), make([]int32, n)
		for i := range labels {
			labels[i] = int32(i % sizes.Classes)
			images[i*sizes.Inputs+i%sizes.Classes] = 1
		}
		d, err := mlp.UploadData(s, images, labels)
		require.NoError(t, err)
		return d
	}
	images, tests := data(1000), data(500)
	weights := sizes.InitialWeights(1)
	for _, mode := range []mlp.Mode{mlp.Eager, mlp.Replayed} {
		x, err := mlp.NewTrainer(ctx, s, sizes, weights, images, mode)
		require.NoError(t, err)
		for range 3 {
			for i := range x.Batches() {
				require.NoError(t, x.Step(i, 1e-3))
				if i%5 == 4 {
					_, err := x.Loss(ctx)
					require.NoError(t, err)
				}
			}
			for _, d := range []*mlp.Data{images, tests} {
				_, err := x.Accuracy(ctx, d)
				require.NoError(t, err)
			}
			weights, err = x.Weights(ctx)
			require.NoError(t, err)
		}
		require.NoError(t, x.Close())
	}
	require.NoError(t, images.Close())
	require.NoError(t, tests.Close())
}

func decode(t *testing.T, s *cmdbuf.Stream) {
	var shape llm.Shape
	for _, n := range llm.Shapes() {
		if n.Name == "15M" {
			shape = n.Shape
		}
	}
	model, err := llm.Seeded(shape, 1)
	require.NoError(t, err)
	w, err := llm.Upload(ctx, s, model)
	require.NoError(t, err)
	generate := func(list ...*llm.Decoder) {
		for i := range 32 {
			for _, d := range list {
				_, err := d.Step(ctx)
				require.NoError(t, err)
				if len(list) > 1 && i%8 == 7 {
					_, err := d.Logits(ctx)
					require.NoError(t, err)
				}
			}
		}
		for _, d := range list {
			require.NoError(t, d.Close())
		}
	}
	decoder := func(mode llm.Mode) *llm.Decoder {
		d, err := llm.NewDecoder(ctx, s, w, mode)
		require.NoError(t, err)
		return d
	}
	generate(decoder(llm.Eager))
	generate(decoder(llm.Replayed), decoder(llm.Replayed))
	require.NoError(t, w.Close())
}

// trace runs a program and returns what its stream asked of its pools.
func (p program) trace(t *testing.T) *alloctrace.Trace {
	t.Helper()
	// A device whose memory the host cannot see makes a stream use all kinds.
	// The validation layer would not change what it asks for and takes most of the time.
	d, err := vktest.NewDriver(t, "discrete").Open(vk.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	s, err := cmdbuf.NewStream(d, cmdbuf.Options{})
	require.NoError(t, err)
	// The stream's manager is known by its slices. This one is not in the trace.
	anchor, err := cmdbuf.New[float32](s, 1)
	require.NoError(t, err)
	stop := anchor.Slice().Manager().Record()
	p.run(t, s)
	require.NoError(t, s.Sync(ctx))
	tr, err := alloctrace.Recorded(stop())
	require.NoError(t, err)
	require.NoError(t, anchor.Close())
	require.NoError(t, s.Close(ctx))
	tr.Comment = p.comment + "The device is of the profile discrete. Recorded by: go test ./internal/poolbench -run TestRecorded -record\n"
	return tr
}

// deviceMemory is what a program allocates for its tensors, the same on every device. Infos and when work is done are not.
func deviceMemory(tr *alloctrace.Trace) (list []string) {
	sizes := map[uint32]uint64{}
	for _, e := range tr.Events {
		switch {
		case e.Kind == alloctrace.Alloc && e.Role == vk.DeviceMemory:
			sizes[e.ID] = e.Size
			list = append(list, fmt.Sprint("+", e.Size))
		case e.Kind == alloctrace.Free && sizes[e.ID] > 0:
			list = append(list, fmt.Sprint("-", sizes[e.ID]))
			delete(sizes, e.ID)
		}
	}
	return list
}

// The files are what the programs do.
func TestRecordedTracesAreThoseOfThePrograms(t *testing.T) {
	if !testenv.Long() && !*record {
		t.Skip("hundreds of waits for the device, and 61 MB of weights")
	}
	for name, p := range programs() {
		t.Run(name, func(t *testing.T) {
			tr := p.trace(t)
			if *record {
				var b bytes.Buffer
				_, err := tr.WriteTo(&b)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(file(name), b.Bytes(), 0o644))
			}
			want := recorded(t, name)
			assert.Equal(t, strings.Join(deviceMemory(want), " "), strings.Join(deviceMemory(tr), " "), "use -record if this is meant")
			assert.Equal(t, want.Comment, tr.Comment)
			require.NotEmpty(t, deviceMemory(tr))
		})
	}
}
