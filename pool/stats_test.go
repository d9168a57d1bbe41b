package pool

import (
	"encoding/json"
	"expvar"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var _ expvar.Var = Var{}

func TestStatsAddUpAndComeOutAsTextAndJSON(t *testing.T) {
	m, _, _ := newFake(t, Options{})
	for _, size := range []uint64{100, 300_000, 1 << 26} {
		_, err := m.Alloc(size)
		require.NoError(t, err)
	}
	i, err := m.AllocInfo(24)
	require.NoError(t, err)
	require.NoError(t, i.Use(5))
	require.NoError(t, i.Release())
	_, err = m.Alloc(0)
	require.NoError(t, err)
	s := m.Stats()
	var sum Counts
	for _, p := range s.Pools {
		sum.Slices += p.Slices
		sum.InUse += p.InUse
		sum.Padding += p.Padding
		sum.Reserved += p.Reserved
		sum.Pages += p.Pages
		sum.WaitingBytes += p.WaitingBytes
	}
	assert.Equal(t, s.Total.Slices, sum.Slices+1, "the zero-size slice is in the total alone")
	assert.Equal(t, [5]uint64{s.Total.InUse, s.Total.Padding, s.Total.Reserved, uint64(s.Total.Pages), s.Total.WaitingBytes},
		[5]uint64{sum.InUse, sum.Padding, sum.Reserved, uint64(sum.Pages), sum.WaitingBytes})
	assert.Equal(t, uint64(156+300_032-300_000), s.Total.Padding)
	assert.Equal(t, uint64(256), s.Total.WaitingBytes)
	assert.Equal(t, uint64(1<<26), s.Total.Largest)
	assert.Equal(t, 4, s.Total.PeakSlices, "the info and the zero-size slice were not alive together")

	text := s.String()
	assert.Contains(t, text, "medium")
	assert.Contains(t, text, "total")
	var back Stats
	require.NoError(t, json.Unmarshal([]byte(m.Var().String()), &back))
	assert.Equal(t, s, back)
}

func TestErrorsSayWhatWasWantedAndWhatToDo(t *testing.T) {
	for _, c := range []struct {
		err  error
		want []string
	}{
		{&InUseError{Slices: 2, Bytes: 10, Waiting: 1, Serial: 7, Creating: 1}, []string{"2 slices of 10 bytes", "serial 7", "1 allocations are under way", "close the graphs"}},
		{&OutOfMemoryError{Wanted: 1, InUse: 2, Reserved: 3, Pool: "p", Cause: errFake}, []string{"wanted 1", "2 in use", "3 reserved", "no budget", errFake.Error()}},
		{&OutOfMemoryError{Budget: 9}, []string{"budget 9"}},
		{&TooLargeError{Wanted: 5, Max: 4}, []string{"5 bytes", "is 4", "layout"}},
		{&LeakError{Slices: 1, Stacks: []string{"here"}}, []string{"1 slices", "here"}},
		{&LeakError{Slices: 1}, []string{"-tags poolstacks"}},
	} {
		for _, w := range c.want {
			assert.Contains(t, c.err.Error(), w)
		}
	}
	assert.Equal(t, "graph cache user Holder(9)", Graph.String()+" "+Cache.String()+" "+User.String()+" "+Holder(9).String())
}
