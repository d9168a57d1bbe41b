package vk_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/testenv"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
	"vkcompute/vk"
)

func fillSpec() vk.PipelineSpec {
	k := shaders.Fill
	constants, workgroup := k.Spec(shaders.MaxWorkgroup{Invocations: 64, Size: [3]uint32{64, 1, 1}})
	s := vk.PipelineSpec{Code: k.Module.Words, Entry: k.Entry, Workgroup: workgroup, Name: "fill",
		Bindings: []vk.Binding{{Number: 0, Kind: vk.StorageBufferDynamic}, {Number: 1, Kind: vk.StorageBuffer}}}
	for _, c := range constants {
		s.Constants = append(s.Constants, vk.SpecConstant{ID: c.ID, Value: c.Value})
	}
	return s
}

// Goroutines that ask for one pipeline share one compilation; it lives until the last
// has closed it.
func TestPipelinesAreCompiledOnce(t *testing.T) {
	d := vktest.Open(t)
	var list [16]*vk.Pipeline
	var wg sync.WaitGroup
	for i := range list {
		wg.Go(func() {
			p, err := d.NewPipeline(fillSpec())
			if err != nil {
				t.Error(err)
			}
			list[i] = p
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, d.Created()["pipelines"])
	for i, p := range list {
		require.Equal(t, list[0].Handle(), p.Handle())
		p.Close()
		p.Close() // closing twice counts once
		require.Equal(t, i == len(list)-1, d.Alive() == "", "the last one ends it")
	}
	other := fillSpec()
	other.Constants[0].Value, other.Workgroup[0] = 32, 32
	a, err := d.NewPipeline(fillSpec())
	require.NoError(t, err)
	defer a.Close()
	b, err := d.NewPipeline(other)
	require.NoError(t, err)
	defer b.Close()
	require.NotEqual(t, a.Handle(), b.Handle())
	require.EqualValues(t, 3, d.Created()["pipelines"])
	broken := fillSpec()
	broken.Entry = "nowhere"
	for range 2 {
		_, err := d.NewPipeline(broken)
		require.Error(t, err)
	}
}

// What was compiled is found by the next process; a file that is damaged, cut short or of
// another device is ignored and said so.
func TestPipelineCacheOnDisk(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new")
	var log bytes.Buffer
	open := func() *vk.Device {
		log.Reset()
		o := vktest.Options(t)
		o.PipelineCache, o.Logger = folder, slog.New(slog.NewTextHandler(&log, nil))
		d, err := vk.Open(o)
		require.NoError(t, err)
		return d
	}
	var stats vk.CacheStats // of the last device
	compile := func(d *vk.Device) {
		require.Zero(t, d.CacheStats())
		p, err := d.NewPipeline(fillSpec())
		require.NoError(t, err)
		p.Close()
		vktest.Silent(t, d)
		stats = d.CacheStats()
		require.EqualValues(t, 1, stats.Hits+stats.Misses+stats.Unknown)
		if !d.Info().Features.CreationFeedback {
			require.EqualValues(t, 1, stats.Unknown)
		}
		require.NoError(t, d.Close())
	}
	file := func() string {
		list, err := filepath.Glob(filepath.Join(folder, "*"))
		require.NoError(t, err)
		require.Len(t, list, 1, "one file, no leftovers")
		return list[0]
	}
	compile(open())
	require.Zero(t, stats.Hits, "there was nothing to find")
	good, err := os.ReadFile(file())
	require.NoError(t, err)
	compile(open())
	require.NotContains(t, log.String(), "ignored")
	t.Logf("the second time: %+v", stats)

	for name, bad := range map[string][]byte{
		"empty":     {},
		"cut short": good[:len(good)-1],
		"header":    good[:60],
		"damaged":   append(append([]byte(nil), good[:len(good)-1]...), good[len(good)-1]^1),
		"foreign":   append([]byte{good[0], good[1], good[2], good[3], good[4], good[5], good[6], good[7], good[8] ^ 1}, good[9:]...),
		"text":      []byte("hello"),
	} {
		if len(good) < 61 {
			t.Skip("the driver keeps nothing in its caches")
		}
		require.NoError(t, os.WriteFile(file(), bad, 0o600))
		d := open()
		require.Contains(t, log.String(), "pipeline cache ignored", name)
		compile(d)
		again, err := os.ReadFile(file())
		require.NoError(t, err)
		require.Equal(t, len(good), len(again), "%s: a good one takes its place", name)
	}

	// A folder that cannot be written is an error of Close, not a crash, and an unreadable
	// one is a log line.
	folder = filepath.Join(file(), "below a file")
	d := open()
	p, err := d.NewPipeline(fillSpec())
	require.NoError(t, err)
	require.ErrorContains(t, d.SavePipelines(), "saving the pipeline cache")
	p.Close()
	require.ErrorContains(t, d.Close(), "saving the pipeline cache")
}

// What a driver says of the cache is counted; one of the two keeps what it compiled for as
// long as the device is open.
func TestCacheHitsAreCounted(t *testing.T) {
	var log bytes.Buffer
	o := vktest.Options(t)
	o.PipelineCache, o.Logger = t.TempDir(), slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	d, err := vk.Open(o)
	require.NoError(t, err)
	for range 2 {
		p, err := d.NewPipeline(fillSpec())
		require.NoError(t, err)
		p.Close()
	}
	stats := d.CacheStats()
	t.Logf("%+v", stats)
	require.EqualValues(t, 2, stats.Hits+stats.Misses+stats.Unknown)
	if testenv.Require(t).Driver == testenv.SwiftShader && d.Info().Features.CreationFeedback {
		require.EqualValues(t, 1, stats.Hits)
	}
	require.Equal(t, 2, strings.Count(log.String(), "vk: pipeline made"))
	require.Equal(t, stats.Hits, uint64(strings.Count(log.String(), "cache=hit")))
	require.NoError(t, d.Close())
}
