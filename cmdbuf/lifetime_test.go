package cmdbuf_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/shaders"
)

// A closed tensor and its views cannot be used, though a graph keeps the memory alive.
func TestClosedTensorsAreClosed(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	y := zeros(t, s, 4)
	x, err := cmdbuf.Upload(s, []float32{1, 2, 3, 4}, 4)
	require.NoError(t, err)
	v, err := x.Range(0, 0, 4, 1)
	require.NoError(t, err)
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error { return c.Launch(shaders.Copy, x, y) })
	require.NoError(t, err)
	for range 3 { // a launch that is remembered, too
		require.NoError(t, s.Launch(shaders.Copy, x, y))
	}
	require.NoError(t, v.Close())
	require.NoError(t, s.Launch(shaders.Copy, v, y), "closing a view does nothing")
	require.NoError(t, x.Close())
	for name, t1 := range map[string]*cmdbuf.Tensor[float32]{"tensor": x, "view": v} {
		require.ErrorIs(t, s.Launch(shaders.Copy, t1, y), cmdbuf.ErrClosed, name)
		require.ErrorIs(t, s.Copy(y, t1), cmdbuf.ErrClosed, name)
		_, err := t1.Read(ctx)
		require.ErrorIs(t, err, cmdbuf.ErrClosed, name)
		require.ErrorIs(t, t1.Write(make([]float32, 4)), cmdbuf.ErrClosed, name)
		_, err = s.Capture(ctx, func(c *cmdbuf.Capture) error { return c.Launch(shaders.Copy, t1, y) })
		require.ErrorIs(t, err, cmdbuf.ErrClosed, name)
	}
	require.NoError(t, g.Replay())
	require.Equal(t, []float32{1, 2, 3, 4}, read(t, y))
	require.NoError(t, g.Close())
}

// The views of a temporary end with it.
func TestViewsOfAClosedTemporary(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	y := zeros(t, s, 4)
	_, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		a, err := cmdbuf.Temp[float32](c, 4)
		require.NoError(t, err)
		v, err := a.Reshape(2, 2)
		require.NoError(t, err)
		require.NoError(t, a.Close())
		_, err = cmdbuf.Temp[float32](c, 4)
		require.NoError(t, err)
		w, err := v.Reshape(4)
		require.NoError(t, err)
		return c.Launch(shaders.Copy, w, y)
	})
	require.ErrorIs(t, err, cmdbuf.ErrClosed)
}

// Several goroutines may close a tensor; its memory is given back once.
func TestClosingFromSeveralGoroutines(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	for range 50 {
		x, err := cmdbuf.Upload(s, make([]float32, 4), 4)
		require.NoError(t, err)
		var errs [3]error
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = x.Close() })
		}
		wg.Wait()
		require.NoError(t, errors.Join(errs[:]...))
	}
	require.NoError(t, s.Validate())
}

// A stream can be closed while other goroutines wait for its work.
func TestClosingWhileOthersWait(t *testing.T) {
	for range 20 {
		a, b := two(t)
		x := upload(t, b, make([]float32, 1<<12), 1<<12)
		after(t, a, b)
		for range 3 {
			require.NoError(t, a.Launch(shaders.Neg, x, x))
		}
		e, err := a.Record()
		require.NoError(t, err)
		var wg sync.WaitGroup
		var waited [2]error
		for i := range waited {
			wg.Go(func() { waited[i] = e.Wait(ctx) })
		}
		require.NoError(t, a.Close(ctx))
		wg.Wait()
		require.NoError(t, errors.Join(waited[:]...))
	}
}

// The owner of a tensor that another stream's graph keeps is closed first; the memory goes
// with the graph.
func TestClosingTheOwnerOfWhatAGraphKeeps(t *testing.T) {
	a, b := two(t)
	x, err := cmdbuf.Upload(a, []float32{1, 2}, 2)
	require.NoError(t, err)
	y := zeros(t, b, 2)
	after(t, b, a)
	g, err := b.Capture(ctx, func(c *cmdbuf.Capture) error { return c.Launch(shaders.Neg, x, y) })
	require.NoError(t, err)
	require.NoError(t, x.Close())
	require.Error(t, a.Close(ctx), "it says what is still alive")
	require.NoError(t, g.Replay())
	require.Equal(t, []float32{-1, -2}, read(t, y))
	require.NoError(t, g.Replay())
	require.NoError(t, g.Close())
}
