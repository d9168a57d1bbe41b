package cmdbuf_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/shim"
	"vkcompute/internal/vktest"
	"vkcompute/pool"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// On a lost device every call fails at once and says so, everything can be closed, and
// another device in the same process works.
func TestLostDevice(t *testing.T) {
	d, driver := vktest.OpenProfile(t, shim.Plain)
	s, err := cmdbuf.NewStream(d, cmdbuf.Options{})
	require.NoError(t, err)
	x := upload(t, s, []float32{1, 2}, 2)
	y, err := cmdbuf.Upload(s, []float32{0}, 1)
	require.NoError(t, err)
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		return errors.Join(c.Launch(shaders.Add, x, x, x), c.Launch(shaders.Fill, cmdbuf.Param("v", cmdbuf.Float32(1)), y))
	})
	require.NoError(t, err)
	require.NoError(t, g.Replay())
	require.Equal(t, []float32{2, 4}, read(t, x))
	event, err := s.Record()
	require.NoError(t, err)

	require.NoError(t, s.Launch(shaders.Add, x, x, x))
	require.NoError(t, driver.Fail("vkQueueSubmit", 1, shim.ErrorDeviceLost))
	require.ErrorIs(t, g.Replay(), vk.ErrDeviceLost)
	for name, call := range map[string]func() error{
		"replay":  g.Replay,
		"sync":    func() error { return s.Sync(ctx) },
		"read":    func() error { _, err := x.Read(ctx); return err },
		"async":   func() error { return <-x.ReadAsync(ctx, make([]float32, 2)) },
		"map":     func() error { return x.Map(ctx, func([]float32) {}) },
		"record":  func() error { _, err := s.Record(); return err },
		"launch":  func() error { return s.Launch(shaders.Add, x, x, x) },
		"flush":   s.Flush,
		"write":   func() error { return x.Write([]float32{1, 2}) },
		"copy":    func() error { return s.Copy(x, x) },
		"fill":    func() error { return s.Fill(x, cmdbuf.Float32(1)) },
		"set":     func() error { return g.Set("v", cmdbuf.Float32(1)) },
		"new":     func() error { _, err := cmdbuf.New[float32](s, 1); return err },
		"install": func() error { return s.InstallPools(ctx, pool.SubSlices()) },
		"event":   func() error { return s.WaitFor(event) },
		"capture": func() error {
			_, err := s.Capture(ctx, func(c *cmdbuf.Capture) error { return c.Launch(shaders.Mul, x, x, x) })
			return err
		},
		"stream": func() error { _, err := cmdbuf.NewStream(d, cmdbuf.Options{}); return err },
	} {
		start := time.Now()
		err := call()
		require.ErrorIs(t, err, vk.ErrDeviceLost, name)
		require.Less(t, time.Since(start), time.Minute, name)
	}
	require.NoError(t, g.Close())
	require.NoError(t, errors.Join(x.Close(), y.Close()))
	s.Close(ctx) // its work is lost, and it may say so

	fresh := newStream(t, cmdbuf.Options{})
	z := upload(t, fresh, []float32{3}, 1)
	require.NoError(t, fresh.Launch(shaders.Add, z, z, z))
	require.Equal(t, []float32{6}, read(t, z))
}

// A queue that never signals holds nobody longer than the context says, and nothing that
// may still run is used again.
func TestHangingQueue(t *testing.T) {
	d, driver := vktest.OpenProfile(t, shim.Plain)
	s, err := cmdbuf.NewStream(d, cmdbuf.Options{BatchLimit: 1})
	require.NoError(t, err)
	x := upload(t, s, []float32{1}, 1)
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error { return c.Launch(shaders.Add, x, x, x) })
	require.NoError(t, err)
	driver.Hang()
	for range 5 {
		require.NoError(t, s.Launch(shaders.Add, x, x, x))
		require.NoError(t, g.Replay())
	}
	soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Sync(soon), context.DeadlineExceeded)
	_, err = x.Read(soon)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, <-x.ReadAsync(soon, make([]float32, 1)), context.DeadlineExceeded)
	require.NoError(t, g.Close(), "closing a graph waits for nothing")
	require.ErrorIs(t, s.Close(soon), context.DeadlineExceeded)
	require.NoError(t, s.Launch(shaders.Add, x, x, x), "the stream is still open")
	driver.Release()
	require.Equal(t, []float32{1 << 11}, read(t, x))
	require.NoError(t, x.Close())
	require.NoError(t, s.Close(ctx))
}

// What fails once works afterwards, and nothing is left behind.
func TestSubmissionsThatFail(t *testing.T) {
	d, driver := vktest.OpenProfile(t, shim.Plain)
	s, err := cmdbuf.NewStream(d, cmdbuf.Options{})
	require.NoError(t, err)
	x := upload(t, s, []float32{1}, 1)
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		return c.Launch(shaders.Fill, cmdbuf.Param("v", cmdbuf.Float32(5)), x)
	})
	require.NoError(t, err)
	for _, function := range []string{"vkQueueSubmit", "vkBeginCommandBuffer", "vkEndCommandBuffer"} {
		require.NoError(t, x.Write([]float32{1}))
		require.NoError(t, s.Sync(ctx))
		require.NoError(t, s.Launch(shaders.Add, x, x, x))
		require.NoError(t, driver.Fail(function, 1, shim.ErrorOutOfDeviceMemory))
		require.ErrorIs(t, s.Flush(), vk.ErrOutOfDeviceMemory, function)
		require.Equal(t, []float32{1}, read(t, x), "the batch was dropped")
		require.NoError(t, s.Launch(shaders.Add, x, x, x))
		require.Equal(t, []float32{2}, read(t, x))

		require.NoError(t, g.Set("v", cmdbuf.Float32(7)))
		require.NoError(t, driver.Fail(function, 1, shim.ErrorOutOfHostMemory))
		require.ErrorIs(t, g.Replay(), vk.ErrOutOfHostMemory, function)
		require.NoError(t, g.Replay())
		require.Equal(t, []float32{7}, read(t, x), "the update is not lost with the replay")
		require.NoError(t, g.Set("v", cmdbuf.Float32(5)))
		require.NoError(t, s.Validate())
	}
	require.NoError(t, g.Close())
	require.NoError(t, x.Close())
	require.NoError(t, s.Close(ctx))
}

// The barriers of a batch that was dropped, or at the end of a graph whose last part was,
// have not happened: what comes next is ordered with what came before all the same, which
// the validation layer sees.
func TestOrderSurvivesFailures(t *testing.T) {
	const n = 1 << 12
	run := func(o cmdbuf.Options, f func(s *cmdbuf.Stream, driver *shim.Driver, x, y *cmdbuf.Tensor[float32], g *cmdbuf.Graph)) {
		d, driver := vktest.OpenProfile(t, shim.Plain)
		s, err := cmdbuf.NewStream(d, o)
		require.NoError(t, err)
		x, y := zeros(t, s, n), zeros(t, s, n)
		g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
			for range 65 {
				if err := c.Launch(shaders.Neg, y, x); err != nil {
					return err
				}
			}
			return nil
		})
		require.NoError(t, err)
		require.NoError(t, g.Replay()) // where it is to be split, this measures
		require.NoError(t, s.Sync(ctx))
		driver.Hang() // else the stream sees its work complete, and the layer with it
		f(s, driver, x, y, g)
		driver.Release()
		require.NoError(t, s.Sync(ctx))
		vktest.Silent(t, d)
		require.NoError(t, g.Close())
		require.NoError(t, errors.Join(x.Close(), y.Close(), s.Close(ctx)))
	}
	run(cmdbuf.Options{}, func(s *cmdbuf.Stream, driver *shim.Driver, x, y *cmdbuf.Tensor[float32], _ *cmdbuf.Graph) {
		require.NoError(t, s.Launch(shaders.Fill, cmdbuf.Float32(1), x))
		require.NoError(t, s.Flush())
		require.NoError(t, s.Launch(shaders.Neg, x, y))
		require.NoError(t, driver.Fail("vkQueueSubmit", 1, shim.ErrorOutOfDeviceMemory))
		require.ErrorIs(t, s.Flush(), vk.ErrOutOfDeviceMemory)
		require.NoError(t, s.Launch(shaders.Neg, x, y))
		require.NoError(t, s.Flush())
	})
	run(cmdbuf.Options{MaxSubmitTime: 1}, func(s *cmdbuf.Stream, driver *shim.Driver, x, y *cmdbuf.Tensor[float32], g *cmdbuf.Graph) {
		require.Equal(t, 2, g.Stats().Segments)
		require.NoError(t, driver.Fail("vkQueueSubmit", 2, shim.ErrorOutOfDeviceMemory))
		require.ErrorIs(t, g.Replay(), vk.ErrOutOfDeviceMemory, "its second part")
		require.NoError(t, s.Launch(shaders.Neg, x, y))
		require.NoError(t, s.Flush())
	})
}

func TestAsynchronousReads(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	x, one := upload(t, s, []float32{0, 0}, 2), upload(t, s, []float32{1}, 1)
	var hosts [20][2]float32
	var done [20]<-chan error
	for i := range hosts {
		require.NoError(t, s.Launch(shaders.Add, x, one, x))
		done[i] = x.ReadAsync(ctx, hosts[i][:])
	}
	for i := range hosts {
		require.NoError(t, <-done[i])
		require.Equal(t, [2]float32{float32(i + 1), float32(i + 1)}, hosts[i], "the elements of the moment of the call")
	}
	require.ErrorIs(t, <-x.ReadAsync(ctx, nil), cmdbuf.ErrShape)
	column, err := x.Range(0, 1, 2, 1)
	require.NoError(t, err)
	require.NoError(t, column.Map(ctx, func(host []float32) {
		require.Equal(t, []float32{20}, host)
		host[0] = 50
	}))
	require.NoError(t, s.Launch(shaders.Add, x, one, x))
	require.Equal(t, []float32{21, 51}, read(t, x))
}

// A tensor that was dropped without being closed is reported, and its memory comes back.
func TestForgottenTensors(t *testing.T) {
	var log lockedBuffer
	d := vktest.Open(t)
	s, err := cmdbuf.NewStream(d, cmdbuf.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	func() {
		x, err := cmdbuf.New[float32](s, 7, 11)
		require.NoError(t, err)
		require.NoError(t, s.Launch(shaders.Fill, cmdbuf.Float32(1), x))
	}()
	view := func() *cmdbuf.Tensor[float32] {
		x, err := cmdbuf.Upload(s, []float32{1, 2}, 2)
		require.NoError(t, err)
		v, err := x.Range(0, 1, 2, 1)
		require.NoError(t, err)
		return v // keeps x alive
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		return strings.Contains(log.String(), "never closed") && strings.Contains(log.String(), "[7 11]")
	}, time.Minute, time.Millisecond)
	require.Equal(t, []float32{2}, read(t, view))
	runtime.KeepAlive(view)
	require.Eventually(t, func() bool {
		runtime.GC()
		return s.Stats().Pools.Total.Slices == s.Stats().Cache.UnpinnedEntries
	}, time.Minute, time.Millisecond, "the other one is found too")
	require.NoError(t, s.Close(ctx))
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
