package cmdbuf_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/testenv"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
)

func TestMain(m *testing.M) { testenv.Main(m) }

var ctx = context.Background()

// newStream opens a device and a stream for a test; both must close cleanly at its end.
func newStream(t testing.TB, o cmdbuf.Options) *cmdbuf.Stream {
	t.Helper()
	d := vktest.Open(t)
	s, err := cmdbuf.NewStream(d, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(ctx)) })
	return s
}

func upload[T cmdbuf.Element](t testing.TB, s *cmdbuf.Stream, host []T, shape ...int) *cmdbuf.Tensor[T] {
	t.Helper()
	x, err := cmdbuf.Upload(s, host, shape...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	return x
}

func zeros(t testing.TB, s *cmdbuf.Stream, shape ...int) *cmdbuf.Tensor[float32] {
	t.Helper()
	return upload(t, s, make([]float32, shaders.Contiguous(shape...).Len()), shape...)
}

func read[T cmdbuf.Element](t testing.TB, x *cmdbuf.Tensor[T]) []T {
	t.Helper()
	host, err := x.Read(ctx)
	require.NoError(t, err)
	return host
}
