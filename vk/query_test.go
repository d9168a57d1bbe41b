package vk_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"vkcompute/vk"
)

func TestElapsed(t *testing.T) {
	for _, c := range []struct {
		bits     uint32
		period   float32
		from, to uint64
		want     time.Duration
	}{
		{64, 1, 10, 15, 5},
		{64, 1, math.MaxUint64 - 1, 3, 5},           // wraps at 64 bits
		{36, 1, 1<<36 - 2, 3, 5},                    // and at 36
		{36, 83.5, 1<<36 - 1, 1, 167},               // 12 MHz
		{36, 1, 1<<40 | 1<<36 - 2, 1<<41 | 3, 5},    // invalid bits hold anything
		{32, 1000, 0, 1_000_000, time.Second},       //
		{0, 1, 5, 9, 0},                             // no clock
		{64, 0, 5, 9, 0},                            //
		{64, 1, 0, math.MaxUint64, math.MaxInt64},   // backwards: as long as can be said
		{64, 1e9, 0, math.MaxUint64, math.MaxInt64}, //
	} {
		l := vk.Limits{TimestampBits: c.bits, TimestampPeriod: c.period}
		require.Equal(t, c.want, l.Elapsed(c.from, c.to), "%+v", c)
	}
	rapid.Check(t, func(t *rapid.T) {
		l := vk.Limits{TimestampBits: rapid.Uint32Range(20, 64).Draw(t, "bits"), TimestampPeriod: 1}
		ticks := rapid.Uint64Range(0, 1<<20-1).Draw(t, "ticks")
		from, noise := rapid.Uint64().Draw(t, "from"), rapid.Uint64().Draw(t, "noise")
		to := from + ticks
		if l.TimestampBits < 64 {
			to = to&(1<<l.TimestampBits-1) | noise<<l.TimestampBits
		}
		require.Equal(t, time.Duration(ticks), l.Elapsed(from, to))
	})
}

func TestTimestamps(t *testing.T) {
	l := newLab(t)
	if l.d.Limits().TimestampBits == 0 {
		_, err := l.d.NewQueryPool(2)
		require.ErrorIs(t, err, vk.ErrUnsupported)
		return
	}
	pool, err := l.d.NewQueryPool(3)
	require.NoError(t, err)
	defer pool.Close()
	size := uint64(16 << 20)
	a, b := l.buffer(vk.BufferSpec{Size: size}), l.buffer(vk.BufferSpec{Size: size})
	out := l.buffer(vk.BufferSpec{Size: 24, Role: vk.ReadbackMemory})

	var c vk.Commands
	c.ResetQueries(pool, 0, 3)
	l.run(&c)
	require.ErrorContains(t, pool.Ticks(0, make([]uint64, 3)), "not written yet")

	c.Reset()
	c.ResetQueries(pool, 0, 3)
	c.Timestamp(pool, 0, vk.StageTop)
	c.Copy(a.Handle(), 0, b.Handle(), 0, size)
	c.Barrier(transfers, transfers)
	c.Timestamp(pool, 1, vk.StageBottom)
	c.Timestamp(pool, 2, vk.StageBottom)
	c.CopyQueries(pool, 0, 3, out.Handle(), 0)
	c.Barrier(transferWrite, hostRead)
	start := time.Now()
	l.run(&c)
	wall := time.Since(start)
	ticks := make([]uint64, 3)
	require.NoError(t, pool.Ticks(0, ticks))
	took := l.d.Limits().Elapsed(ticks[0], ticks[1])
	t.Logf("%d bytes in %v, %v with submission and wait", size, took, wall)
	require.Positive(t, took)
	// Two clocks, one of which may be set right by the network meanwhile: a wrong unit or
	// period shows all the same.
	require.LessOrEqual(t, took, wall+wall/4+time.Millisecond)

	// The device's copy says the same.
	require.NoError(t, l.d.Invalidate(whole(out)))
	for i, want := range ticks {
		var got uint64
		for n := range 8 {
			got |= uint64(out.Mapped()[8*i+n]) << (8 * n)
		}
		require.Equal(t, want, got)
	}
	one := make([]uint64, 1)
	require.NoError(t, pool.Ticks(2, one))
	require.Equal(t, ticks[2], one[0])
	require.NoError(t, pool.Ticks(3, nil), "none is no query")
	require.ErrorContains(t, pool.Ticks(2, make([]uint64, 2)), "the pool has 3")
	require.ErrorContains(t, pool.Ticks(math.MaxUint32, one), "the pool has 3")
}

func TestQueryPoolRefusals(t *testing.T) {
	l := newLab(t)
	if l.d.Limits().TimestampBits == 0 {
		t.Skip("this queue has no timestamps")
	}
	_, err := l.d.NewQueryPool(0)
	require.ErrorContains(t, err, "0 timestamps")
	var e *vk.LimitError
	_, err = l.d.NewQueryPool(1 << 31)
	require.ErrorAs(t, err, &e)
	require.Equal(t, vk.LimitError{Name: "timestamps of one pool", Want: 1 << 31, Max: vk.MaxTimestamps}, *e)
	require.Contains(t, l.d.Alive(), "1 command pools")
	require.NotContains(t, l.d.Alive(), "query")
	pool, err := l.d.NewQueryPool(1)
	require.NoError(t, err)
	pool.Close()
	pool.Close()
	require.ErrorIs(t, pool.Ticks(0, make([]uint64, 1)), vk.ErrClosed)
}
