package vk_test

import (
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"vkcompute/internal/vktest"
	"vkcompute/vk"
)

var roles = []vk.MemoryRole{vk.DeviceMemory, vk.UploadMemory, vk.ReadbackMemory, vk.InfoMemory}

// What the host writes comes back unchanged through memory of every role.
func TestBufferContents(t *testing.T) {
	l := newLab(t)
	for _, role := range roles {
		for _, size := range []uint64{1, 4, 100, 4096, 1<<20 + 4} {
			up, down := l.buffer(vk.BufferSpec{Size: size, Role: vk.UploadMemory}), l.buffer(vk.BufferSpec{Size: size, Role: vk.ReadbackMemory})
			middle := l.buffer(vk.BufferSpec{Size: size, Role: role, Name: role.String()})
			require.Equal(t, size, middle.Size())
			require.NotZero(t, middle.Handle())
			require.Equal(t, l.d.Info().Features.DeviceAddress, middle.Address() != 0)
			flags := l.d.Info().MemoryTypes[middle.MemoryType()].Flags
			require.Equal(t, flags&vk.HostVisible != 0, middle.Mapped() != nil)
			require.Equal(t, flags&vk.HostCoherent != 0, middle.Coherent())
			if role != vk.DeviceMemory {
				require.Len(t, middle.Mapped(), int(size))
			}
			for i := range up.Mapped() {
				up.Mapped()[i] = byte(i*7 + int(role))
			}
			var c vk.Commands
			c.Copy(up.Handle(), 0, middle.Handle(), 0, size)
			c.Barrier(transferWrite, transfers)
			c.Copy(middle.Handle(), 0, down.Handle(), 0, size)
			c.Barrier(transferWrite, hostRead)
			l.run(&c, whole(up))
			require.NoError(t, l.d.Invalidate(whole(down)))
			require.Equal(t, up.Mapped(), down.Mapped(), "%v, %d bytes", role, size)
		}
	}
}

func TestBufferRefusals(t *testing.T) {
	d := vktest.Open(t)
	limit := d.Limits().MaxMemoryAllocationSize
	require.NotZero(t, limit)
	before := d.HeapUsages()
	for name, c := range map[string]struct {
		spec vk.BufferSpec
		want string
	}{
		"no bytes":      {vk.BufferSpec{}, "0 bytes"},
		"no such role":  {vk.BufferSpec{Size: 4, Role: 17}, "MemoryRole(17)"},
		"no such usage": {vk.BufferSpec{Size: 4, Usage: 1 << 30}, "usage 0x40000000"},
		"no such rule":  {vk.BufferSpec{Size: 4, Budget: 9}, "rule 9"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := d.NewBuffer(c.spec)
			require.ErrorContains(t, err, c.want)
		})
	}
	for _, size := range []uint64{limit + 1, 1 << 62, math.MaxInt64, math.MaxUint64 - 1, math.MaxUint64} {
		_, err := d.NewBuffer(vk.BufferSpec{Size: size})
		var e *vk.LimitError
		require.ErrorAs(t, err, &e)
		require.Equal(t, vk.LimitError{Name: "maxMemoryAllocationSize", Want: size, Max: limit, What: e.What}, *e)
		require.Contains(t, e.What, "device buffer")
	}
	_, err := d.NewBuffer(vk.BufferSpec{Size: 4, MemoryTypes: 1 << 31})
	require.ErrorIs(t, err, vk.ErrUnsupported)

	for i, h := range d.HeapUsages() {
		require.Equal(t, before[i].Used, h.Used, "a refusal changes nothing")
	}
	require.Empty(t, d.Alive())
}

// CPU drivers hand out more than there is.
func TestBufferOverBudget(t *testing.T) {
	d := vktest.Open(t)
	size := d.HeapUsages()[0].Budget + 1
	if len(d.Info().Heaps) > 1 || size > d.Limits().MaxMemoryAllocationSize {
		t.Skipf("no single allocation can pass the budget of a heap here")
	}
	for _, fallback := range []vk.Fallback{vk.FallbackNone, vk.FallbackAny} {
		_, err := d.NewBuffer(vk.BufferSpec{Size: size, Fallback: fallback})
		require.ErrorIs(t, err, vk.ErrOutOfDeviceMemory)
		var e *vk.MemoryError
		require.ErrorAs(t, err, &e)
		require.GreaterOrEqual(t, e.Want, size)
		require.Equal(t, size-1, e.Budget)
		require.Zero(t, e.InUse)
	}
	require.Empty(t, d.Alive())
	require.Zero(t, d.HeapUsages()[0].Used)
}

func TestHeapUsage(t *testing.T) {
	d := vktest.Open(t)
	b, err := d.NewBuffer(vk.BufferSpec{Size: 1 << 20})
	require.NoError(t, err)
	u := d.HeapUsages()[b.HeapIndex()]
	require.GreaterOrEqual(t, u.Used, uint64(1<<20))
	require.LessOrEqual(t, u.Budget, u.Size)
	b.Close()
	require.Zero(t, d.HeapUsages()[b.HeapIndex()].Used)
}

// Drivers reuse handles at once; caches keyed by them would find the dead.
func TestBufferIDsAreNeverReused(t *testing.T) {
	vktest.Options(t)
	d, err := vk.Open(vk.Options{}) // the validation layer has unique handles of its own
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	seen, handles := map[uint64]bool{}, map[uint64]bool{}
	for range 100 {
		b, err := d.NewBuffer(vk.BufferSpec{Size: 64})
		require.NoError(t, err)
		require.NotZero(t, b.ID())
		require.False(t, seen[b.ID()])
		seen[b.ID()], handles[b.Handle()] = true, true
		b.Close()
	}
	t.Logf("%d handles for 100 buffers", len(handles))
}

func TestBufferCloseTwice(t *testing.T) {
	d := vktest.Open(t)
	b, err := d.NewBuffer(vk.BufferSpec{Size: 64})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(b.Close)
	}
	wg.Wait()
	b.Close()
	require.Nil(t, b.Mapped())
	require.Empty(t, d.Alive())
	require.Error(t, d.Invalidate(vk.FlushRange{Buffer: b, Size: 4}))
}

func TestFlushRanges(t *testing.T) {
	info := vk.DeviceInfo{
		Heaps:       []vk.Heap{{Size: 1 << 30}},
		MemoryTypes: []vk.MemoryType{{Flags: vk.DeviceLocal}, {Flags: vk.HostVisible}},
	}
	d, other := vk.FakeDevice(info), vk.FakeDevice(info)
	mapped := vk.FakeBuffer(d, 100, 128, 1, true)
	for _, r := range []vk.FlushRange{{mapped, 0, 100}, {mapped, 100, 0}, {mapped, 99, 1}, {mapped, 0, 0}} {
		require.NoError(t, r.Check(d))
	}
	for name, r := range map[string]vk.FlushRange{
		"nothing":             {},
		"of another device":   {vk.FakeBuffer(other, 100, 128, 1, true), 0, 4},
		"not mapped":          {vk.FakeBuffer(d, 100, 128, 0, false), 0, 4},
		"too long":            {mapped, 0, 101},
		"from beyond":         {mapped, 101, 0},
		"end wraps":           {mapped, 8, math.MaxUint64 - 4},
		"in the padding only": {mapped, 100, 1},
	} {
		t.Run(name, func(t *testing.T) { require.Error(t, r.Check(d)) })
	}
}

func TestAtomRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		atom := uint64(1) << rapid.IntRange(0, 10).Draw(t, "atom")
		size := rapid.Uint64Range(1, 10000).Draw(t, "buffer")
		allocated := size + rapid.Uint64Range(0, 300).Draw(t, "padding")
		offset := rapid.Uint64Range(0, size-1).Draw(t, "offset")
		length := rapid.Uint64Range(1, size-offset).Draw(t, "length")
		lo, hi := vk.AtomRange(offset, length, atom, allocated)
		require.True(t, lo <= offset && offset+length <= hi && hi <= allocated, "[%d, %d) holds the range", lo, hi)
		require.Zero(t, lo%atom)
		require.True(t, hi%atom == 0 || hi == allocated)
		require.Less(t, offset-lo, atom)
		require.Less(t, hi-offset-length, atom)
	})
}

func TestHandlesSurviveTheBinding(t *testing.T) {
	for _, h := range []uint64{0, 1, 7, 1 << 31, 1<<32 + 5, 0xdeadbeefcafe, math.MaxUint64} {
		require.Equal(t, h, vk.HandleRoundTrip(h))
	}
}

func TestMemoryErrorsSayWhatWasWanted(t *testing.T) {
	e := &vk.MemoryError{Want: 11, InUse: 22, Budget: 33, Heap: 4}
	for _, want := range []string{"11", "22", "33", "heap 4", "out of device memory"} {
		require.True(t, strings.Contains(e.Error(), want), e.Error())
	}
	require.ErrorIs(t, e, vk.ErrOutOfDeviceMemory)
	require.NotErrorIs(t, e, vk.ErrOutOfHostMemory)
}
