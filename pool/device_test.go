package pool_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/internal/vktest"
	"vkcompute/pool"
	"vkcompute/vk"
)

// rig is the least that runs commands on slices: one timeline, command buffers, and a barrier
// before every command.
type rig struct {
	t    testing.TB
	dev  *vk.Device
	tl   *vk.Timeline
	cmds *vk.CommandPool
	m    *pool.Manager
	list vk.Commands
	next uint64 // serial of the batch being recorded
	// waits are for other timelines, in each submission.
	waits []vk.Wait
}

func newRig(t testing.TB, o pool.Options) *rig {
	t.Helper()
	return newRigOn(t, vktest.Open(t), o)
}

func newRigOn(t testing.TB, dev *vk.Device, o pool.Options) *rig {
	t.Helper()
	r := &rig{t: t, dev: dev, next: 1}
	var err error
	r.tl, err = r.dev.NewTimeline()
	require.NoError(t, err)
	r.cmds, err = r.dev.NewCommandPool()
	require.NoError(t, err)
	r.m, err = pool.New(r.dev, r.tl, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		r.wait()
		assert.NoError(t, r.m.Validate())
		assert.NoError(t, r.m.Close())
		r.cmds.Close()
		r.tl.Close()
	})
	return r
}

var everything = vk.Scope{
	Stages: vk.StageTransfer | vk.StageHost,
	Access: vk.AccessTransferRead | vk.AccessTransferWrite | vk.AccessHostRead | vk.AccessHostWrite,
}

func (r *rig) fill(s pool.Slice, value uint32) {
	r.list.Barrier(everything, everything)
	r.list.Fill(s.Buffer().Handle(), s.Offset(), s.Size()&^3, value)
	require.NoError(r.t, s.Use(r.next))
}

func (r *rig) copy(to, from pool.Slice) {
	r.list.Barrier(everything, everything)
	r.list.Copy(from.Buffer().Handle(), from.Offset(), to.Buffer().Handle(), to.Offset(), min(to.Size(), from.Size()))
	require.NoError(r.t, to.Use(r.next))
	require.NoError(r.t, from.Use(r.next))
}

func (r *rig) submit() {
	flushes := r.m.PendingFlushes(nil)
	r.submitWith(flushes)
	r.m.FlushesDone(flushes, nil)
}

func (r *rig) submitWith(flushes []vk.FlushRange, waits ...vk.Wait) {
	require.NoError(r.t, r.trySubmit(flushes, waits...))
}

// trySubmit submits the batch, whose commands are gone then.
func (r *rig) trySubmit(flushes []vk.FlushRange, waits ...vk.Wait) error {
	r.list.Barrier(everything, everything)
	b, err := r.cmds.New()
	require.NoError(r.t, err)
	serial, err := r.dev.Submit(&vk.Submission{
		Record: b, Commands: &r.list, Buffers: []vk.CommandBuffer{b}, Flushes: flushes, Waits: append(waits, r.waits...),
	}, r.tl)
	require.Equal(r.t, r.next, serial, "%v", err)
	r.list.Reset()
	r.next++
	return err
}

func (r *rig) wait() {
	r.t.Helper()
	require.NoError(r.t, r.tl.Wait(context.Background(), r.tl.Submitted()))
	r.m.Drain()
}

// write writes through the mapping of a slice that the host may touch.
func (r *rig) write(s pool.Slice, value uint32) {
	require.True(r.t, s.Idle())
	b := s.Mapped()
	require.Len(r.t, b, int(s.Size()))
	for i := 0; i+4 <= len(b); i += 4 {
		binary.LittleEndian.PutUint32(b[i:], value)
	}
	require.NoError(r.t, s.Written(0, s.Size()))
}

func (r *rig) read(s pool.Slice) []byte {
	require.True(r.t, s.Idle())
	rng, needed, err := s.InvalidateRange(0, s.Size())
	require.NoError(r.t, err)
	if needed {
		require.NoError(r.t, r.dev.Invalidate(rng))
	}
	return s.Mapped()
}

func pattern(value uint32, size int) []byte {
	return bytes.Repeat(binary.LittleEndian.AppendUint32(nil, value), size/4)
}

// Ranges are handed out again while the device is still behind, and every copy reads what was in its
// source when the copy was recorded.
func TestContentsSurviveReuse(t *testing.T) {
	r := newRig(t, pool.Options{Layout: pool.Layout{
		Pools: []pool.PoolSpec{{Kind: pool.Sliced, PageSize: 64 << 10}},
		Info:  []pool.PoolSpec{{Kind: pool.Sliced, PageSize: 16 << 10, MaxSlice: 4096}},
	}})
	type result struct {
		out  pool.Slice
		want uint32
	}
	for round := range 4 {
		var results []result
		reused := false
		for i := range 60 {
			value := uint32(round*1000 + i + 1)
			var src pool.Slice
			var err error
			if i%3 == 0 { // the host writes it, now
				src, err = r.m.AllocInfo(256)
				require.NoError(t, err)
				r.write(src, value)
			} else { // the device writes it, later
				src, err = r.m.Alloc(256)
				require.NoError(t, err)
				reused = reused || src.LastUse() > r.tl.Completed()
				r.fill(src, value)
			}
			out, err := r.m.AllocRole(256, vk.ReadbackMemory)
			require.NoError(t, err)
			r.copy(out, src)
			require.NoError(t, src.Release()) // before the copy has run, or was submitted
			results = append(results, result{out, value})
			if i%20 == 19 {
				r.submit()
			}
		}
		require.True(t, reused, "nothing was handed out early, so nothing was tested")
		r.wait()
		for i, x := range results {
			assert.Equal(t, pattern(x.want, 256), r.read(x.out), "round %d result %d", round, i)
			require.NoError(t, x.out.Release())
		}
		require.NoError(t, r.m.Validate())
	}
	require.Zero(t, r.m.Stats().Total.Waiting)
	require.NoError(t, r.m.Install(pool.ExclusivePages()))
}

func TestEveryRoleOnThisDevice(t *testing.T) {
	for name, l := range map[string]pool.Layout{"SubSlices": pool.SubSlices(), "ExclusivePages": pool.ExclusivePages()} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, pool.Options{Layout: l, Touch: pool.TouchAhead})
			align := r.dev.Limits().MinStorageBufferAlignment
			for _, size := range []uint64{4, 100, 4096, 100_000, 3 << 20} {
				var held []pool.Slice
				for _, role := range []vk.MemoryRole{vk.DeviceMemory, vk.UploadMemory, vk.ReadbackMemory, vk.InfoMemory} {
					s, err := r.m.AllocRole(size, role)
					if role == vk.InfoMemory && r.m.InfoRange(size) > r.dev.Limits().MaxStorageBufferRange {
						require.ErrorIs(t, err, pool.ErrTooLarge, "no descriptor could cover it")
						continue
					}
					require.NoError(t, err)
					assert.Equal(t, role, s.Role())
					assert.Zero(t, s.Offset()%align)
					assert.LessOrEqual(t, s.Offset()+size, s.Buffer().Size())
					if role == vk.InfoMemory {
						assert.LessOrEqual(t, s.Offset()+r.m.InfoRange(size), s.Buffer().Size())
					}
					if role != vk.DeviceMemory {
						assert.Len(t, s.Mapped(), int(size))
					}
					held = append(held, s)
				}
				up, dev, back := held[1], held[0], held[2]
				r.write(up, uint32(size))
				r.copy(dev, up)
				r.copy(back, dev)
				r.submit()
				r.wait()
				assert.Equal(t, pattern(uint32(size), int(size)), r.read(back)[:size&^3])
				for _, s := range held {
					require.NoError(t, s.Release())
				}
			}
		})
	}
}

// limited fails like a device whose memory is used up.
type limited struct {
	*vk.Device
	room int64
}

func (l *limited) NewBuffer(s vk.BufferSpec) (*vk.Buffer, error) {
	if l.room -= int64(s.Size); l.room < 0 {
		l.room += int64(s.Size)
		return nil, vk.ErrOutOfDeviceMemory
	}
	return l.Device.NewBuffer(s)
}

func TestOutOfMemoryOnADevice(t *testing.T) {
	dev := vktest.Open(t)
	tl, err := dev.NewTimeline()
	require.NoError(t, err)
	defer tl.Close()
	m, err := pool.New(&limited{dev, 1 << 20}, tl, pool.Options{})
	require.NoError(t, err)
	a, err := m.Alloc(1000)
	require.NoError(t, err)
	_, err = m.Alloc(2 << 20)
	var oom *pool.OutOfMemoryError
	require.ErrorAs(t, err, &oom)
	require.ErrorIs(t, err, vk.ErrOutOfDeviceMemory)
	assert.Equal(t, uint64(2<<20), oom.Wanted)
	require.True(t, a.Valid())
	b, err := m.Alloc(2000)
	require.NoError(t, err, "there is room in the page")
	require.ErrorIs(t, m.Close(), pool.ErrLeak)
	require.NoError(t, a.Release())
	var leak *pool.LeakError
	require.True(t, errors.As(m.Close(), &leak))
	require.Equal(t, 1, leak.Slices)
	require.NoError(t, b.Release(), "which returns the last page")
}

func TestTheBudgetOfTheDeviceHolds(t *testing.T) {
	r := newRig(t, pool.Options{})
	heaps := r.dev.HeapUsages()
	most := uint64(0)
	for _, h := range heaps {
		most = max(most, h.Size)
	}
	_, err := r.m.Alloc(most)
	require.Error(t, err, "all of the largest heap, of which the budget is 80 %%")
	s, err := r.m.Alloc(1000)
	require.NoError(t, err)
	require.NoError(t, s.Release())
}
