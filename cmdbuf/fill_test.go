package cmdbuf_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/shaders"
)

func TestFills(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	x, n := zeros(t, s, 3, 4), upload(t, s, make([]int32, 8), 8)
	row, err := x.Range(0, 1, 2, 1)
	require.NoError(t, err)
	require.NoError(t, errors.Join(
		s.Fill(x, cmdbuf.Float32(2.5)),
		s.Fill(row, cmdbuf.Float32(-1)),
		s.Fill(n, cmdbuf.Int32(-7)),
		s.Fill(zeros(t, s, 0), cmdbuf.Float32(1))))
	require.Equal(t, []float32{2.5, 2.5, 2.5, 2.5, -1, -1, -1, -1, 2.5, 2.5, 2.5, 2.5}, read(t, x))
	require.Equal(t, []int32{-7, -7, -7, -7, -7, -7, -7, -7}, read(t, n))

	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		return errors.Join(c.Fill(n, cmdbuf.Int32(1)), c.Launch(shaders.AddInt, n, n, n))
	})
	require.NoError(t, err)
	require.Equal(t, 1, g.Stats().Barriers)
	require.NoError(t, g.ReplayN(5000))
	require.Equal(t, []int32{2, 2, 2, 2, 2, 2, 2, 2}, read(t, n))
	require.NoError(t, g.Close())

	column, err := x.Range(1, 0, 1, 1)
	require.NoError(t, err)
	closed, err := cmdbuf.New[float32](s, 1)
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	require.ErrorIs(t, s.Fill(column, cmdbuf.Float32(1)), cmdbuf.ErrShape)
	require.ErrorIs(t, s.Fill(n, cmdbuf.Float32(1)), cmdbuf.ErrShape)
	require.ErrorIs(t, s.Fill(closed, cmdbuf.Float32(1)), cmdbuf.ErrClosed)
	require.Error(t, s.Fill(nil, cmdbuf.Float32(1)))
	require.Error(t, s.Fill(cmdbuf.Float32(1), cmdbuf.Float32(1)))
}
