package metaport_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/internal/metaport"
	"vkcompute/internal/metaport/trace"
)

// target lets traces be replayed against the port.
type target struct {
	*metaport.Cache[uint64]
	released []uint64
}

func newTarget(maxEntries, maxCachedSize int) (*target, error) {
	t := &target{}
	c, err := metaport.New(maxEntries, maxCachedSize, func(v uint64) { t.released = append(t.released, v) })
	t.Cache = c
	return t, err
}

func (t *target) Lookup(mode metaport.Mode, words []uint64) (uint64, trace.Answer, error) {
	v, hit, store := t.Cache.Lookup(mode, words)
	switch {
	case hit:
		return v, trace.Hit, nil
	case store:
		return 0, trace.MissStore, nil
	}
	return 0, trace.MissKeep, nil
}

func (t *target) Store(words []uint64, value uint64) error {
	t.Cache.Store(words, value)
	return nil
}

func (t *target) CaptureCommit(graph uint64) error {
	t.Cache.CaptureCommit(graph)
	return nil
}

func (t *target) CaptureDiscard() error {
	t.Cache.CaptureDiscard()
	return nil
}

func (t *target) TakeReleased() []uint64 {
	released := t.released
	t.released = nil
	return released
}

// TestTraces: the port behaves as the reference did when it was recorded, which
// is what makes it a yardstick.
func TestTraces(t *testing.T) {
	files, err := filepath.Glob("../../testdata/traces/*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			recorded, err := trace.ParseFile(file)
			require.NoError(t, err)
			require.NotEmpty(t, recorded.Steps)
			port, err := newTarget(recorded.MaxEntries, recorded.MaxCachedSize)
			require.NoError(t, err)
			require.NoError(t, recorded.Replay(port))
		})
	}
}

func TestNewRefusesBadBounds(t *testing.T) {
	release := func(int) {}
	for name, make := range map[string]func() (*metaport.Cache[int], error){
		"negative entries": func() (*metaport.Cache[int], error) { return metaport.New(-1, 8, release) },
		"negative size":    func() (*metaport.Cache[int], error) { return metaport.New(1, -8, release) },
		"nil release":      func() (*metaport.Cache[int], error) { return metaport.New[int](1, 8, nil) },
	} {
		c, err := make()
		assert.Error(t, err, name)
		assert.Nil(t, c, name)
	}
}

// TestHitAllocatesNothing: a yardstick that allocates would be too long.
func TestHitAllocatesNothing(t *testing.T) {
	c, err := metaport.New(8, 64, func(int) {})
	require.NoError(t, err)
	words := []uint64{1, 2, 3}
	_, _, store := c.Lookup(metaport.Normal, words)
	require.True(t, store)
	c.Store(words, 1)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if _, hit, _ := c.Lookup(metaport.Normal, words); !hit {
			t.Fatal("want a hit")
		}
	}))
}

// TestClearDropsPinnedEntries: the port keeps the faults of the reference.
func TestClearDropsPinnedEntries(t *testing.T) {
	c, err := newTarget(8, 64)
	require.NoError(t, err)
	c.Cache.Lookup(metaport.Capture, []uint64{1})
	c.Cache.Store([]uint64{1}, 7)
	c.Cache.CaptureCommit(1)
	c.Clear()
	assert.Zero(t, c.Len())
	assert.Equal(t, []uint64{7}, c.TakeReleased())
}
