package mlp_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/mlp"
	"vkcompute/internal/testenv"
	"vkcompute/internal/vktest"
	"vkcompute/metacache"
)

func TestMain(m *testing.M) { testenv.Main(m) }

var (
	ctx  = context.Background()
	tiny = mlp.Sizes{Inputs: 11, Hidden: 7, Classes: 3, Batch: 5}
)

// points are rows of which the class is which third of the inputs is largest.
func points(n, inputs, classes int) (images []float32, labels []int32) {
	state := uint32(1)
	for range n {
		sums := make([]float32, classes)
		row := make([]float32, inputs)
		for i := range row {
			state = state*1664525 + 1013904223
			row[i] = float32(state>>24)/256 - 0.25
			sums[i*classes/inputs] += row[i]
		}
		best := 0
		for c, s := range sums {
			if s > sums[best] {
				best = c
			}
		}
		images, labels = append(images, row...), append(labels, int32(best))
	}
	return images, labels
}

func stream(t testing.TB, o cmdbuf.Options) *cmdbuf.Stream {
	t.Helper()
	s, err := cmdbuf.NewStream(vktest.Open(t), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(ctx)) })
	return s
}

func trainer(t testing.TB, s *cmdbuf.Stream, sizes mlp.Sizes, images []float32, labels []int32, mode mlp.Mode) (*mlp.Trainer, *mlp.Data) {
	t.Helper()
	d, err := mlp.UploadData(s, images, labels)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	x, err := mlp.NewTrainer(ctx, s, sizes, sizes.InitialWeights(3), d, mode)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	return x, d
}

// Loss and gradients are those of float64, in every mode, and all modes end with the
// same bits.
func TestStepMatchesReference(t *testing.T) {
	images, labels := points(23, tiny.Inputs, tiny.Classes)
	none := metacache.DefaultPolicy()
	none.MaxEntries = 0
	var ends [][]float32
	for _, c := range []struct {
		o    cmdbuf.Options
		mode mlp.Mode
	}{{cmdbuf.Options{}, mlp.Replayed}, {cmdbuf.Options{}, mlp.Eager}, {cmdbuf.Options{Cache: &none, Sets: cmdbuf.RebuildSets}, mlp.Eager}} {
		x, _ := trainer(t, stream(t, c.o), tiny, images, labels, c.mode)
		require.Equal(t, 4, x.Batches(), "23 rows make 4 batches of 5")
		for _, batch := range []int{0, 3, 1, 0} {
			n, m := batch*tiny.Batch, (batch+1)*tiny.Batch
			require.NoError(t, mlp.Check(ctx, x, batch, images[n*tiny.Inputs:m*tiny.Inputs], labels[n:m]))
			require.NoError(t, x.Step(batch, 0.05))
		}
		w, err := x.Weights(ctx)
		require.NoError(t, err)
		ends = append(ends, w)
	}
	require.Equal(t, ends[0], ends[1])
	require.Equal(t, ends[0], ends[2])
}

// The reference's gradient is the slope of its loss.
func TestReferenceGradients(t *testing.T) {
	images, labels := points(tiny.Batch, tiny.Inputs, tiny.Classes)
	weights := tiny.InitialWeights(3)
	_, gradients := mlp.Reference(tiny, weights, images, labels)
	for i := range weights {
		const step = 1.0 / 1024
		at := weights[i]
		weights[i] = at + step
		above, _ := mlp.Reference(tiny, weights, images, labels)
		weights[i] = at - step
		below, _ := mlp.Reference(tiny, weights, images, labels)
		weights[i] = at
		require.InDelta(t, (above-below)/(2*step), gradients[i], 1e-4, "weight %d", i)
	}
}

// A comparison that cannot fail says nothing.
func TestCheckFindsAnotherBatch(t *testing.T) {
	images, labels := points(10, tiny.Inputs, tiny.Classes)
	x, _ := trainer(t, stream(t, cmdbuf.Options{}), tiny, images, labels, mlp.Replayed)
	err := mlp.Check(ctx, x, 0, images[:tiny.Batch*tiny.Inputs], labels[5:10])
	require.ErrorIs(t, err, mlp.ErrDiffers)
}

func TestLearns(t *testing.T) {
	sizes := mlp.Sizes{Inputs: 12, Hidden: 16, Classes: 3, Batch: 16}
	images, labels := points(200, sizes.Inputs, sizes.Classes)
	x, d := trainer(t, stream(t, cmdbuf.Options{}), sizes, images, labels, mlp.Replayed)
	before, err := x.Accuracy(ctx, d)
	require.NoError(t, err)
	for epoch := range 20 {
		for b := range x.Batches() {
			require.NoError(t, x.Step((b+epoch)%x.Batches(), 0.01))
		}
	}
	after, err := x.Accuracy(ctx, d)
	require.NoError(t, err)
	require.Greater(t, after, 0.9, "began with %v", before)
	require.Equal(t, 16, x.Graph().Stats().Launches)
}

func TestSizesAreChecked(t *testing.T) {
	s := stream(t, cmdbuf.Options{})
	images, labels := points(10, tiny.Inputs, tiny.Classes)
	x, d := trainer(t, s, tiny, images, labels, mlp.Eager)
	require.ErrorIs(t, x.Step(2, 0), mlp.ErrSize)
	require.ErrorIs(t, x.Step(-1, 0), mlp.ErrSize)
	_, err := mlp.UploadData(s, images, labels[:9])
	require.ErrorIs(t, err, mlp.ErrSize)
	for _, bad := range []mlp.Sizes{{}, {Inputs: 10, Hidden: 7, Classes: 3, Batch: 5}, {Inputs: 11, Hidden: 7, Classes: 3, Batch: 11}, {Inputs: 11, Hidden: 1 << 20, Classes: 3, Batch: 5}} {
		_, err := mlp.NewTrainer(ctx, s, bad, tiny.InitialWeights(1), d, mlp.Eager)
		require.ErrorIs(t, err, mlp.ErrSize, "%+v", bad)
	}
}
