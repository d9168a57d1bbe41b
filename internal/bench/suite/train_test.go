package suite

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/bench"
	"vkcompute/internal/mnist"
	"vkcompute/internal/vktest"
	files "vkcompute/testdata/mnist"
)

func TestTrain(t *testing.T) {
	d := vktest.Open(t)
	set := &mnist.Set{Count: 60, Pixels: 8}
	for i := range set.Count {
		row := make([]byte, set.Pixels)
		row[i%4], row[7-i%4] = 250, byte(i)
		set.Images, set.Labels = append(set.Images, row...), append(set.Labels, byte(i%4))
	}
	var list []bench.Result
	err := stream(d, cmdbuf.Options{}, func(s *cmdbuf.Stream) (err error) {
		list, err = trainOn(ctx, d, s, short(), newDigits(set), newDigits(set), 60)
		return err
	})
	r := check(t, list, err)
	for _, way := range []string{"rebuild", "cached", "replay"} {
		x := r.Find("train", way, "steps/s")
		require.NotNil(t, x, way)
		require.Equal(t, bench.Higher, x.Better())
		require.Equal(t, 16, x.Launches)
		require.NotNil(t, r.Find("train", way, "host"), way)
	}
	require.Equal(t, 1.0, r.Find("train", "replay", "accuracy").Median)
}

func TestRecordTrain(t *testing.T) {
	err := stream(vktest.Open(t), cmdbuf.Options{}, func(s *cmdbuf.Stream) error {
		g, err := RecordTrain(context.Background(), s, files.Files)
		require.NoError(t, err)
		require.Equal(t, 16, g.Stats().Launches)
		require.NoError(t, g.Replay())
		return g.Close()
	})
	require.NoError(t, err)
}
