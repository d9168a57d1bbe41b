package cmdbuf_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/testenv"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// work runs launches, a graph and transfers on a stream of its own, and checks them.
func work(d *vk.Device, seed, rounds int) (err error) {
	s, err := cmdbuf.NewStream(d, cmdbuf.Options{BatchLimit: 3})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	const n = 1000
	host, want := make([]float32, n), make([]float32, n)
	for i := range host {
		host[i] = float32(i%17 + seed)
		want[i] = host[i]
	}
	x, err := cmdbuf.Upload(s, host, n)
	if err != nil {
		return err
	}
	defer x.Close()
	y, err := cmdbuf.Upload(s, []float32{float32(seed)}, 1)
	if err != nil {
		return err
	}
	defer y.Close()
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error { return c.Launch(shaders.Add, x, y, x) })
	if err != nil {
		return err
	}
	defer g.Close()
	for range rounds {
		for range 4 {
			err = errors.Join(err, s.Launch(shaders.Add, x, y, x), g.Replay())
		}
		t, e := cmdbuf.New[float32](s, n)
		if e != nil {
			return errors.Join(err, e)
		}
		err = errors.Join(err, s.Launch(shaders.Copy, x, t))
		got, e := t.Read(ctx)
		err = errors.Join(err, e, t.Close())
		if err != nil {
			return err
		}
		for i := range want {
			want[i] += 8 * float32(seed) // small whole numbers: exact
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("%s, seed %d: wrong elements", d.Info().Name, seed)
		}
	}
	return s.Validate()
}

// Streams of one device do not disturb each other, from goroutines of their own.
func TestStreamsOnSeveralGoroutines(t *testing.T) {
	d := vktest.Open(t)
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() { errs[i] = work(d, i+1, 5) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Empty(t, d.Alive())
}

// manifest is that of a driver; without it the test is skipped, as on a machine that has
// but one.
func manifest(t *testing.T, d testenv.Driver) string {
	t.Helper()
	t.Setenv("VKCOMPUTE_TEST_DRIVER", string(d))
	t.Setenv("VKCOMPUTE_TEST_NO_ORACLE", "1") // for what follows, finding the driver
	env, err := testenv.Prepare(t.TempDir())
	if errors.Is(err, testenv.ErrNoDriver) {
		t.Skipf("needs two drivers: %v", err)
	}
	require.NoError(t, err)
	return env.DriverFiles
}

// Devices of two drivers, side by side in one process: each has its own functions, limits
// and memory.
func TestTwoDriversAtOnce(t *testing.T) {
	o := vktest.Options(t)
	files := manifest(t, testenv.Lavapipe) + string(os.PathListSeparator) + manifest(t, testenv.SwiftShader)
	t.Setenv("VK_DRIVER_FILES", files)
	t.Setenv("VK_ICD_FILENAMES", files)
	list, err := vk.Devices()
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.NotEqual(t, list[0].UUID, list[1].UUID)
	require.NotEqual(t, list[0].Driver, list[1].Driver)
	var devices []*vk.Device
	for _, i := range list {
		o.Device = i.UUID.String()
		d, err := vk.Open(o)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, d.Close()) })
		require.Equal(t, i.Name, d.Info().Name)
		devices = append(devices, d)
	}
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() { errs[i] = work(devices[i%2], i+1, 4) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	for _, d := range devices {
		vktest.Silent(t, d)
		require.Empty(t, d.Alive())
	}

	// A tensor of one cannot be used on the other.
	var streams []*cmdbuf.Stream
	for _, d := range devices {
		s, err := cmdbuf.NewStream(d, cmdbuf.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close(ctx)) })
		streams = append(streams, s)
	}
	x := upload(t, streams[0], []float32{1, 2}, 2)
	require.ErrorIs(t, streams[1].Launch(shaders.Copy, x, x), cmdbuf.ErrForeign)
}
