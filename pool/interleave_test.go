package pool_test

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/internal/shim"
	"vkcompute/internal/vktest"
	"vkcompute/pool"
	"vkcompute/vk"
)

// thing is a slice and the word that all of it should hold.
type thing struct {
	s     pool.Slice
	role  vk.MemoryRole
	host  bool // allocated for the host
	value uint32
	known bool // whether value is what is there when all that was recorded has run

	// What it goes back to when the batch being recorded is not run.
	changed bool
	before  uint32
	was     bool
}

// result is a read-back slice and what a copy brought there.
type result struct {
	out    pool.Slice
	want   uint32
	serial uint64 // of the batch that copied
}

// world is two streams on one device, with slices that the host writes, that commands write and that
// both streams use.
type world struct {
	*rig
	driver *shim.Driver
	rnd    *rand.Rand
	things []*thing
	done   []result // submitted
	batch  []result // of the batch being recorded
	other  *rig     // the second stream
	theirs []result
	value  uint32
	hung   bool
	seen   struct{ early, busy, failed, dropped, shared, checked int }
}

// Device-written, host-written and shared slices come and go with work in flight, failed submissions, failed flushes and
// batches that are dropped, and every byte is what the order of the calls says. A queue that hangs for a
// while makes sure that what is in flight stays there.
func TestContentsWhateverBecomesOfTheBatches(t *testing.T) {
	profiles := []string{shim.Plain, shim.NonCoherent, shim.DiscreteGPU, shim.Tiny}
	if p := os.Getenv("VKCOMPUTE_TEST_PROFILE"); p != "" {
		profiles = []string{p}
	}
	steps := 700
	if testing.Short() {
		steps = 250
	}
	for _, p := range profiles {
		t.Run(p, func(t *testing.T) {
			for seed := range uint64(3) {
				runWorld(t, p, seed, steps)
			}
		})
	}
}

func runWorld(t *testing.T, profile string, seed uint64, steps int) {
	driver := vktest.NewDriver(t, profile)
	dev := vktest.OpenOn(t, driver)
	layout := pool.Layout{
		Pools:   []pool.PoolSpec{{Kind: pool.Sliced, PageSize: 16 << 10, MaxPageSize: 64 << 10}},
		Staging: []pool.PoolSpec{{Kind: pool.Sliced, PageSize: 8 << 10, MaxPageSize: 64 << 10}},
		Info:    []pool.PoolSpec{{Kind: pool.Sliced, PageSize: 12 << 10, MaxSlice: 4096}},
	}
	w := &world{
		rig: newRigOn(t, dev, pool.Options{Layout: layout}), other: newRigOn(t, dev, pool.Options{Layout: layout}),
		driver: driver, rnd: rand.New(rand.NewPCG(seed, 7)),
	}
	for range steps {
		w.step()
		require.NoError(t, w.m.Validate())
	}
	w.resume()
	w.submitOK()
	w.settle()
	for _, x := range w.things {
		require.NoError(t, x.s.Release())
	}
	w.rig.wait()
	w.m.Drain()
	assert.Zero(t, w.m.Stats().Total.Waiting)
	// A world in which nothing happens proves nothing.
	assert.NotZero(t, w.seen.early, "nothing was handed out early")
	assert.NotZero(t, w.seen.busy, "no new slice for the host while released ones were busy")
	assert.NotZero(t, w.seen.failed)
	assert.NotZero(t, w.seen.dropped)
	assert.NotZero(t, w.seen.shared)
	assert.Greater(t, w.seen.checked, steps/10)
}

func (w *world) step() {
	switch n := w.rnd.IntN(100); {
	case n < 22:
		w.allocDevice()
	case n < 40:
		w.allocHost()
	case n < 48:
		w.rewrite()
	case n < 66:
		w.readBack()
	case n < 80:
		w.release()
	case n < 84:
		w.share()
	case n < 92:
		w.submitOK()
	case n < 94:
		w.fail("vkQueueSubmit")
	case n < 95:
		w.fail("vkFlushMappedMemoryRanges")
	case n < 97:
		w.drop()
	case n < 98:
		if !w.hung {
			w.driver.Hang()
			w.hung = true
		}
	default:
		w.resume()
		w.settle()
	}
}

func (w *world) size() uint64 { return []uint64{64, 64, 256, 1000}[w.rnd.IntN(4)] }

func (w *world) next() uint32 {
	w.value++
	return w.value
}

func (w *world) pick(ok func(*thing) bool) *thing {
	var list []*thing
	for _, x := range w.things {
		if ok(x) {
			list = append(list, x)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[w.rnd.IntN(len(list))]
}

// allocDevice makes a slice that a command fills, or that a copy of another fills.
func (w *world) allocDevice() {
	if w.rnd.IntN(2) == 0 {
		s, err := w.m.Alloc(w.size())
		require.NoError(w.t, err)
		w.early(s)
		x := &thing{s: s, role: vk.DeviceMemory}
		w.things = append(w.things, x)
		w.command(x, w.next(), true)
		w.fill(s, x.value)
		return
	}
	from := w.pick(func(x *thing) bool { return x.known })
	if from == nil {
		return
	}
	s, err := w.m.Alloc(from.s.Size())
	require.NoError(w.t, err)
	w.early(s)
	x := &thing{s: s, role: vk.DeviceMemory}
	w.things = append(w.things, x)
	w.command(x, from.value, true)
	w.copy(s, from.s)
}

func (w *world) early(s pool.Slice) {
	if s.LastUse() > w.tl.Completed() {
		w.seen.early++
	}
}

// command notes what a command of the batch does to a slice.
func (w *world) command(x *thing, value uint32, known bool) {
	if !x.changed {
		x.changed, x.before, x.was = true, x.value, x.known
	}
	x.value, x.known = value, known
}

// allocHost makes a slice that the host fills at once, through the mapping.
func (w *world) allocHost() {
	role := []vk.MemoryRole{vk.DeviceMemory, vk.UploadMemory, vk.InfoMemory}[w.rnd.IntN(3)]
	if w.m.Stats().Total.Waiting > 0 {
		w.seen.busy++
	}
	s, err := w.m.AllocFor(w.size(), role, pool.NextHost)
	require.NoError(w.t, err)
	if s.Mapped() == nil { // as device memory of some devices
		require.Equal(w.t, vk.DeviceMemory, role)
		require.NoError(w.t, s.Release())
		return
	}
	x := &thing{s: s, role: role, host: true, value: w.next(), known: true}
	w.write(s, x.value)
	w.things = append(w.things, x)
}

// rewrite has the host or a command write a slice again.
func (w *world) rewrite() {
	x := w.pick(func(x *thing) bool { return !x.changed })
	if x == nil {
		return
	}
	if x.host && (x.role != vk.DeviceMemory || w.rnd.IntN(2) == 0) {
		if x.s.Idle() {
			x.value, x.known = w.next(), true
			w.write(x.s, x.value)
		}
		return
	}
	w.command(x, w.next(), true)
	w.fill(x.s, x.value)
}

// readBack copies a slice to where the host reads it later.
func (w *world) readBack() {
	x := w.pick(func(x *thing) bool { return x.known })
	if x == nil {
		return
	}
	out, err := w.m.AllocRole(x.s.Size(), vk.ReadbackMemory)
	require.NoError(w.t, err)
	w.copy(out, x.s)
	w.batch = append(w.batch, result{out, x.value, w.rig.next})
	if w.rnd.IntN(2) == 0 {
		w.forget(x) // before the copy has run, or was submitted
	}
}

func (w *world) release() {
	if x := w.pick(func(*thing) bool { return true }); x != nil {
		w.forget(x)
	}
}

func (w *world) forget(x *thing) {
	require.NoError(w.t, x.s.Release())
	for i, o := range w.things {
		if o == x {
			w.things[i] = w.things[len(w.things)-1]
			w.things = w.things[:len(w.things)-1]
			return
		}
	}
}

// share has the other stream copy a slice, after what this one has submitted. Its owner may release it at once.
func (w *world) share() {
	x := w.pick(func(x *thing) bool { return x.known && !x.changed })
	if x == nil {
		return
	}
	w.seen.shared++
	o := w.other
	// What the host wrote belongs to the pool of the slice, whoever submits.
	flushes := w.m.PendingFlushes(nil)
	out, err := o.m.AllocRole(x.s.Size(), vk.ReadbackMemory)
	require.NoError(w.t, err)
	o.list.Barrier(everything, everything)
	o.list.Copy(x.s.Buffer().Handle(), x.s.Offset(), out.Buffer().Handle(), out.Offset(), out.Size())
	serial := o.next
	require.NoError(w.t, out.Use(serial))
	require.NoError(w.t, x.s.UseOn(o.tl, serial))
	o.submitWith(flushes, vk.Wait{Timeline: w.tl, Serial: w.tl.Submitted()})
	w.m.FlushesDone(flushes, nil)
	w.theirs = append(w.theirs, result{out, x.value, serial})
	if w.rnd.IntN(2) == 0 {
		w.forget(x)
		return
	}
	// Commands of this stream that write it again must come after the copy.
	w.waits = append(w.waits, vk.Wait{Timeline: o.tl, Serial: serial})
}

func (w *world) submitOK() {
	w.submit()
	w.commit()
}

func (w *world) commit() {
	for _, x := range w.things {
		x.changed = false
	}
	w.done = append(w.done, w.batch...)
	w.batch = nil
}

// fail submits the batch to a driver that fails. The serial is used up; nothing has run.
func (w *world) fail(function string) {
	require.NoError(w.t, w.driver.Fail(function, 1, shim.ErrorOutOfHostMemory))
	flushes := w.m.PendingFlushes(nil)
	err := w.trySubmit(flushes)
	w.m.FlushesDone(flushes, err)
	w.driver.Unplan()
	if err == nil { // there was nothing to flush
		w.commit()
		return
	}
	require.ErrorIs(w.t, err, vk.ErrOutOfHostMemory)
	w.seen.failed++
	w.rollBack()
}

// drop gives the batch up without a submission. Its serial is that of the next batch.
func (w *world) drop() {
	w.list.Reset()
	w.seen.dropped++
	w.rollBack()
}

func (w *world) rollBack() {
	for _, x := range w.things {
		if x.changed {
			x.changed, x.value, x.known = false, x.before, x.was
		}
	}
	for _, r := range w.batch {
		require.NoError(w.t, r.out.Release())
	}
	w.batch = nil
}

func (w *world) resume() {
	if w.hung {
		w.driver.Release()
		w.hung = false
	}
}

// settle waits for both streams and looks at everything that was copied.
func (w *world) settle() {
	if w.hung {
		return
	}
	w.rig.wait()
	w.other.wait()
	for _, r := range w.done {
		w.checkResult(w.rig, r)
	}
	for _, r := range w.theirs {
		w.checkResult(w.other, r)
	}
	w.done, w.theirs = nil, nil
	w.waits = w.waits[:0]
}

func (w *world) checkResult(of *rig, r result) {
	require.Equal(w.t, pattern(r.want, int(r.out.Size())), of.read(r.out), "copied in submission %d", r.serial)
	require.NoError(w.t, r.out.Release())
	w.seen.checked++
}

// A flush covers whole atoms, and bytes that a command wrote beside what the host wrote must survive it.
func TestAFlushTouchesNoNeighbour(t *testing.T) {
	dev, _ := vktest.OpenProfile(t, shim.NonCoherent)
	r := newRigOn(t, dev, pool.Options{})
	var list []pool.Slice
	for range 8 {
		s, err := r.m.AllocFor(64, vk.DeviceMemory, pool.NextHost)
		require.NoError(t, err)
		require.NotNil(t, s.Mapped())
		r.write(s, 1)
		list = append(list, s)
	}
	r.submit()
	r.wait()
	for i := 0; i < len(list); i += 2 {
		r.fill(list[i], 2)
	}
	r.submit()
	r.wait()
	for i := 1; i < len(list); i += 2 {
		r.write(list[i], 3)
	}
	for _, s := range list {
		out, err := r.m.AllocRole(64, vk.ReadbackMemory)
		require.NoError(t, err)
		r.copy(out, s)
		list = append(list, out)
	}
	r.submit()
	r.wait()
	for i, out := range list[8:] {
		assert.Equal(t, pattern(2+uint32(i)%2, 64), r.read(out), "slice %d", i)
	}
	for _, s := range list {
		require.NoError(t, s.Release())
	}
}
