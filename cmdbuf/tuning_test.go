package cmdbuf_test

import (
	"bytes"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// other is a tuning that is nowhere the default.
func other(d vk.DeviceInfo) shaders.Tuning {
	t := cmdbuf.DefaultTuning(d)
	if t.Groups++; t.Reads == shaders.Coalesced {
		t.Reads = shaders.Scattered
	} else {
		t.Reads = shaders.Coalesced
	}
	return t
}

// rowSums checks a reduction, whose plan goes by the tuning.
func rowSums(t *testing.T, s *cmdbuf.Stream) {
	host := make([]float32, 40*300)
	want := make([]float32, 40)
	for i := range host {
		host[i] = float32(i % 7)
		want[i/300] += host[i]
	}
	x, err := cmdbuf.Upload(s, host, 40, 300)
	require.NoError(t, err)
	out, err := cmdbuf.New[float32](s, 40, 1)
	require.NoError(t, err)
	require.NoError(t, s.Launch(shaders.Sum, x, out))
	require.Equal(t, want, read(t, out))
	require.NoError(t, x.Close())
	require.NoError(t, out.Close())
}

// What was saved beside the pipeline cache is what the streams of the next device use, and
// an option goes before it. What is wrong with the file is a line in the log.
func TestTuningIsFoundBesideThePipelineCache(t *testing.T) {
	folder := t.TempDir()
	o := vktest.Options(t)
	var log bytes.Buffer
	o.PipelineCache, o.Logger = folder, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	d, err := vk.Open(o)
	require.NoError(t, err)
	defer func() {
		vktest.Silent(t, d)
		require.NoError(t, d.Close())
	}()
	info := d.Info()
	tuning := func(o cmdbuf.Options) shaders.Tuning {
		log.Reset()
		s, err := cmdbuf.NewStream(d, o)
		require.NoError(t, err)
		rowSums(t, s)
		require.NoError(t, s.Close(ctx))
		return s.Tuning()
	}
	usual := cmdbuf.DefaultTuning(info)
	require.Equal(t, usual, tuning(cmdbuf.Options{}))
	require.Empty(t, log.String(), "nobody has to have a file")
	_, err = cmdbuf.LoadTuning(folder, info)
	require.ErrorIs(t, err, fs.ErrNotExist)

	saved := cmdbuf.SavedTuning{Tuning: other(info), Comment: "by a test"}
	require.NoError(t, cmdbuf.SaveTuning(folder, info, saved))
	loaded, err := cmdbuf.LoadTuning(folder, info)
	require.NoError(t, err)
	require.Equal(t, saved, loaded)
	require.Equal(t, saved.Tuning, tuning(cmdbuf.Options{}))
	require.Empty(t, log.String())
	require.Equal(t, usual, tuning(cmdbuf.Options{Tuning: &usual}))

	file := cmdbuf.TuningFile(folder, info)
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, bad := range [][]byte{{}, good[:len(good)-1], bytes.Replace(good, []byte("tuning 1"), []byte("tuning 0"), 1), []byte("hello")} {
		require.NoError(t, os.WriteFile(file, bad, 0o600))
		require.Equal(t, usual, tuning(cmdbuf.Options{}))
		require.Equal(t, 1, strings.Count(log.String(), "tuning ignored"), log.String())
		_, err := cmdbuf.LoadTuning(folder, info)
		require.ErrorIs(t, err, cmdbuf.ErrTuning)
	}
	// Of another driver, device or number of anything that a tuning may go by.
	require.NoError(t, os.WriteFile(file, good, 0o600))
	for name, change := range map[string]func(*vk.DeviceInfo){
		"driver":      func(i *vk.DeviceInfo) { i.DriverRaw++ },
		"device":      func(i *vk.DeviceInfo) { i.UUID[3]++ },
		"name":        func(i *vk.DeviceInfo) { i.Name += " as another" },
		"invocations": func(i *vk.DeviceInfo) { i.Limits.MaxWorkgroupInvocations-- },
		"format":      func(i *vk.DeviceInfo) { i.CacheUUID[0]++ },
	} {
		foreign := info
		change(&foreign)
		_, err := cmdbuf.LoadTuning(folder, foreign)
		require.ErrorIs(t, err, fs.ErrNotExist, name)
		require.NoError(t, os.WriteFile(cmdbuf.TuningFile(folder, foreign), good, 0o600))
		_, err = cmdbuf.LoadTuning(folder, foreign)
		require.ErrorIs(t, err, cmdbuf.ErrTuning, name)
	}
}

// No tuning makes a kernel exceed what a device allows, and a stream refuses one that is
// none.
func TestTuningIsChecked(t *testing.T) {
	d := vktest.Open(t)
	info := d.Info()
	require.NoError(t, cmdbuf.CheckTuning(info, cmdbuf.DefaultTuning(info)))
	require.NoError(t, cmdbuf.CheckTuning(info, shaders.Tuning{}), "valid everywhere")
	less := info
	less.Limits.MaxSharedMemory = 2048
	err := cmdbuf.CheckTuning(less, shaders.Tuning{})
	require.ErrorIs(t, err, cmdbuf.ErrTuning)
	require.ErrorContains(t, err, "bytes: want at most 2048")
	for name, bad := range map[string]shaders.Tuning{
		"too many groups": {Groups: 1 << 31},
		"no way to read":  {Reads: shaders.Scattered + 1},
	} {
		require.ErrorIs(t, cmdbuf.CheckTuning(info, bad), cmdbuf.ErrTuning, name)
		_, err := cmdbuf.NewStream(d, cmdbuf.Options{Tuning: &bad})
		require.ErrorIs(t, err, cmdbuf.ErrTuning, name)
		require.ErrorIs(t, cmdbuf.SaveTuning(t.TempDir(), info, cmdbuf.SavedTuning{Tuning: bad}), cmdbuf.ErrTuning, name)
	}
}
