package cmdbuf_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/shim"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// A graph of a lost device can still be saved, without the contents, and lives on another.
func TestGraphsSurviveTheirDevice(t *testing.T) {
	d, driver := vktest.OpenProfile(t, shim.Plain)
	s, err := cmdbuf.NewStream(d, cmdbuf.Options{})
	require.NoError(t, err)
	x, err := cmdbuf.Upload(s, []float32{1, 2}, 2)
	require.NoError(t, err)
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		return errors.Join(cmdbuf.WriteIn(c, x, []float32{5, 6}), c.Launch(shaders.Add, x, x, x))
	})
	require.NoError(t, err)
	require.NoError(t, s.Launch(shaders.Add, x, x, x))
	require.NoError(t, driver.Fail("vkQueueSubmit", 1, shim.ErrorDeviceLost))
	require.ErrorIs(t, s.Flush(), vk.ErrDeviceLost)
	require.ErrorIs(t, g.Save(ctx, io.Discard, cmdbuf.SaveOptions{Contents: true}), vk.ErrDeviceLost)
	var b bytes.Buffer
	require.NoError(t, g.Save(ctx, &b, cmdbuf.SaveOptions{Views: map[string]cmdbuf.Arg{"x": x}}))
	_, err = cmdbuf.Load(ctx, s, bytes.NewReader(b.Bytes()), cmdbuf.LoadOptions{})
	require.ErrorIs(t, err, vk.ErrDeviceLost)
	require.NoError(t, errors.Join(g.Close(), x.Close()))
	s.Close(ctx) // its work is lost, and it may say so

	fresh := newStream(t, cmdbuf.Options{})
	l, err := cmdbuf.Load(ctx, fresh, &b, cmdbuf.LoadOptions{})
	require.NoError(t, err)
	require.NoError(t, l.Replay())
	require.Equal(t, []float32{10, 12}, read(t, named[float32](t, l, "x")))
	require.NoError(t, l.Close())
}

// Whatever call of the driver fails while a graph is saved or loaded: an error, nothing
// left behind, and the next try succeeds.
func TestSavingAndLoadingOnAFailingDriver(t *testing.T) {
	d, driver := vktest.OpenProfile(t, shim.Plain)
	s, err := cmdbuf.NewStream(d, cmdbuf.Options{})
	require.NoError(t, err)
	x, err := cmdbuf.Upload(s, []float32{1, 2, 3, 4}, 4)
	require.NoError(t, err)
	half, err := x.Range(0, 0, 2, 1)
	require.NoError(t, err)
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		return errors.Join(cmdbuf.WriteIn(c, half, []float32{5, 6}), c.Launch(shaders.Add, cmdbuf.Param("x", x), x, x), c.Launch(shaders.Add, x, x, x))
	})
	require.NoError(t, err)
	save := func() []byte {
		var b bytes.Buffer
		require.NoError(t, g.Save(ctx, &b, cmdbuf.SaveOptions{Contents: true}))
		return b.Bytes()
	}
	good := save()
	require.NoError(t, driver.Fail("vkQueueSubmit", 1, shim.ErrorOutOfDeviceMemory))
	require.ErrorIs(t, g.Save(ctx, io.Discard, cmdbuf.SaveOptions{Contents: true}), vk.ErrOutOfDeviceMemory)
	require.Equal(t, good, save())
	require.NoError(t, errors.Join(g.Close(), x.Close(), s.Close(ctx)))

	failed, endured := 0, 0
	for k := 1; ; k++ {
		s, err := cmdbuf.NewStream(d, cmdbuf.Options{})
		require.NoError(t, err)
		require.NoError(t, driver.Fail(shim.AnyFunction, k, shim.ErrorOutOfHostMemory))
		l, err := cmdbuf.Load(ctx, s, bytes.NewReader(good), cmdbuf.LoadOptions{})
		untouched := driver.Planned() > 0
		driver.Unplan()
		if err != nil {
			failed++
			require.ErrorIs(t, err, vk.ErrOutOfHostMemory, "call %d", k)
			require.NoError(t, s.Validate())
			l, err = cmdbuf.Load(ctx, s, bytes.NewReader(good), cmdbuf.LoadOptions{})
			require.NoError(t, err, "call %d", k)
		} else if !untouched {
			endured++
		}
		require.NoError(t, errors.Join(l.Replay(), l.Close()))
		require.NoError(t, s.Close(ctx))
		if untouched {
			break
		}
	}
	t.Logf("%d calls failed, %d of them were endured", failed+endured, endured)
	require.Greater(t, failed, 10)
}
