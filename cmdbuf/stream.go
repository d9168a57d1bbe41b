package cmdbuf

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"vkcompute/metacache"
	"vkcompute/pool"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// Options of a stream. The zero value is the default.
type Options struct {
	// Pools is the layout of the stream's device memory; zero: pool.SubSlices.
	Pools pool.Layout
	// PoolIdle is the disuse after which a page goes back to the driver, at the next call
	// that finds work completed; 0: pool.DefaultIdlePeriod, negative: never.
	PoolIdle time.Duration
	// PoolTouch says when fresh memory that the host sees is touched for the first time.
	PoolTouch pool.Touch
	// Cache is the policy of the metadata cache; nil: metacache.DefaultPolicy.
	Cache *metacache.Policy
	// Sets says whether descriptor sets are cached.
	Sets SetCaching
	// BatchLimit is the number of commands after which a batch is submitted by itself;
	// 0: 256.
	BatchLimit int
	// Order is that of a graph's operations; the zero value saves barriers where it can.
	Order Order
	// Addresses passes buffers and infos to kernels as device addresses in push constants,
	// not by descriptor: replays are cheaper on many drivers. Results and barriers are the
	// same; the validation layer cannot see hazards through addresses. vk.ErrUnsupported
	// where the device has none.
	Addresses bool
	// MaxSubmitTime splits the replay of a long graph into submissions that take no longer
	// than this on the device, as far as its segments of 64 operations allow: where a
	// desktop's watchdog ends what takes too long. The first replay of each graph is
	// measured, segment by segment, and waits for each. 0: one submission.
	MaxSubmitTime time.Duration
	// Profile takes the times of launches on the device: see Stream.Profile and
	// Graph.Profile.
	// vk.ErrUnsupported where the device has no timestamps.
	Profile bool
	// Tuning is how kernels use the device; ErrTuning if the device cannot be used so. Nil:
	// what SaveTuning left in the folder of the device's pipeline cache (vk.Options), or
	// DefaultTuning. Nothing is measured here.
	Tuning *shaders.Tuning
	// Logger; nil: the device's.
	Logger *slog.Logger
}

const defaultBatchLimit = 256

// vectorSize is the size of a vec4. Shaders that read by vectors want their bindings to begin at
// a multiple of it, whatever less the device asks for.
const vectorSize = 16

// Stream is an ordered sequence of launches, transfers and replays on a device, with the
// memory pools and the metadata cache they use. Its methods may be called from several
// goroutines; they take turns.
type Stream struct {
	dev        *vk.Device
	limits     *vk.Limits
	alignment  uint64 // of the offset of a binding
	logger     *slog.Logger
	caching    SetCaching
	batchLimit int
	graphOrder Order
	profiling  bool
	addresses  bool
	maxSubmit  time.Duration
	tuning     shaders.Tuning

	mu       sync.Mutex
	closed   bool
	capture  *Capture // the running one
	pools    *pool.Manager
	cache    *metacache.Cache[pool.Slice]
	timeline *vk.Timeline
	programs map[*shaders.Kernel]*program
	sets     *setCache
	dummy    *vk.Buffer               // stands in for tensors without elements
	elements map[reflect.Type]element // those of tensors, but for the usual ones

	hazards  hazards
	memo     memo
	batch    batch
	next     launch          // scratch of prepare
	accesses []binding       // scratch of enqueue
	times    *batchProfile   // of the current batch
	timed    []*batchProfile // of earlier ones, oldest first
	reads    sync.WaitGroup  // goroutines of ReadAsync
	graphs   map[*Graph]struct{}
	garbage  []garbage
	lenders  map[*pool.Manager]uint64 // pools of other streams whose slices this one uses, until which serial
	// The host touches no memory before this serial is done: that of the last replay, since
	// graphs stamp their slices only when closed, and of the last wait for another stream.
	behind uint64
	stats  Stats

	// Pages can go while any lock is held by anybody, so their buffers are noted here and
	// looked at before the next launch.
	goneMu  sync.Mutex
	gone    []uint64
	anyGone atomic.Bool
}

// Stats counts what a stream did since it was made.
type Stats struct {
	Launches    uint64 // eager ones recorded, those without work not counted
	Barriers    uint64 // between the commands of batches
	Submissions uint64
	Replays     uint64
	Transfers   uint64 // copies recorded
	SetsMade    uint64
	Cache       metacache.Stats
	Pools       pool.Stats
}

// NewStream makes a stream on a device.
func NewStream(d *vk.Device, o Options) (*Stream, error) {
	if o.BatchLimit < 0 {
		return nil, fmt.Errorf("cmdbuf: new stream: a batch limit of %d: want 0 or more", o.BatchLimit)
	}
	s := &Stream{
		dev: d, limits: d.Limits(), alignment: max(d.Limits().MinStorageBufferAlignment, vectorSize), logger: o.Logger, caching: o.Sets,
		batchLimit: o.BatchLimit, graphOrder: o.Order, profiling: o.Profile, addresses: o.Addresses, maxSubmit: o.MaxSubmitTime,
		programs: map[*shaders.Kernel]*program{}, hazards: newHazards(), memo: newMemo(), graphs: map[*Graph]struct{}{},
		elements: map[reflect.Type]element{},
	}
	if s.logger == nil {
		s.logger = d.Logger()
	}
	if s.batchLimit == 0 {
		s.batchLimit = defaultBatchLimit
	}
	if info := d.Info(); o.Addresses && !info.Features.DeviceAddress {
		return nil, fmt.Errorf("cmdbuf: new stream: %w: the device %q has no buffer device addresses", vk.ErrUnsupported, info.Name)
	}
	if o.MaxSubmitTime < 0 {
		return nil, fmt.Errorf("cmdbuf: new stream: a MaxSubmitTime of %v: want 0 or more", o.MaxSubmitTime)
	}
	if o.Profile && s.limits.TimestampBits == 0 {
		return nil, fmt.Errorf("cmdbuf: new stream: profiling: %w: the device has no timestamps", vk.ErrUnsupported)
	}
	if err := s.tune(o.Tuning); err != nil {
		return nil, fmt.Errorf("cmdbuf: new stream: %w", err)
	}
	if err := s.build(o); err != nil {
		return nil, errors.Join(fmt.Errorf("cmdbuf: new stream: %w", err), s.teardown())
	}
	return s, nil
}

func (s *Stream) build(o Options) error {
	policy := metacache.DefaultPolicy()
	if o.Cache != nil {
		policy = *o.Cache
	}
	var err error
	if s.cache, err = metacache.New(policy, func(v pool.Slice) { v.ReleaseAs(pool.Cache) }); err != nil {
		return err
	}
	if s.timeline, err = s.dev.NewTimeline(); err != nil {
		return err
	}
	if s.pools, err = pool.New(s.dev, s.timeline, pool.Options{
		Layout: o.Pools, Logger: s.logger, IdlePeriod: o.PoolIdle, Touch: o.PoolTouch, PageClosing: s.pageClosing,
	}); err != nil {
		return err
	}
	if s.batch.pool, err = s.dev.NewCommandPool(); err != nil {
		return err
	}
	s.sets = newSetCache(s.dev)
	s.dummy, err = s.dev.NewBuffer(vk.BufferSpec{Size: 256, Role: vk.DeviceMemory, Fallback: vk.FallbackAny, Name: "stand-in for empty tensors"})
	return err
}

func (s *Stream) pageClosing(buffer uint64) {
	s.goneMu.Lock()
	s.gone = append(s.gone, buffer)
	s.anyGone.Store(true)
	s.goneMu.Unlock()
}

// forgetPages drops what is kept about buffers that are gone.
func (s *Stream) forgetPages() {
	if !s.anyGone.Load() {
		return
	}
	s.goneMu.Lock()
	defer s.goneMu.Unlock()
	for _, b := range s.gone {
		s.sets.forget(b)
		s.hazards.forget(b)
	}
	s.gone = s.gone[:0]
	s.anyGone.Store(false)
}

// open tells whether the stream takes work. The lock is held.
func (s *Stream) open(call string) error {
	if s.closed {
		return fmt.Errorf("cmdbuf: %s: stream: %w", call, ErrClosed)
	}
	if s.dev.Lost() {
		return fmt.Errorf("cmdbuf: %s: %w", call, vk.ErrDeviceLost)
	}
	return nil
}

// idle is open, and not capturing.
func (s *Stream) idle(call string) error {
	if err := s.open(call); err != nil {
		return err
	}
	return s.uncaptured(call)
}

func (s *Stream) uncaptured(call string) error {
	if s.capture != nil {
		return fmt.Errorf("cmdbuf: %s: %w; it may not happen inside a capture", call, ErrCapturing)
	}
	return nil
}

// Launch checks a launch and adds it to the current batch: grid and info words come from
// the kernel and the arguments. Nothing is recorded or changed if it is wrong. A launch
// with nothing to do is fine.
func (s *Stream) Launch(k *shaders.Kernel, args ...Arg) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.idle("launch"); err != nil {
		return err
	}
	l := s.memo.find(s, k, args)
	if l == nil {
		var err error
		if l, err = s.prepare(k, args); err != nil || l.empty() {
			return err
		}
		s.memo.learn(l)
	}
	return s.enqueue(l)
}

// Flush submits the current batch, if it holds anything.
func (s *Stream) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.idle("flush"); err != nil {
		return err
	}
	return s.flush()
}

// Sync submits the current batch and waits for everything submitted so far. When the
// context ends first, the work remains pending and the stream usable.
func (s *Stream) Sync(ctx context.Context) error {
	s.mu.Lock()
	err := s.idle("sync")
	if err == nil {
		err = s.flush()
	}
	serial := s.timeline.Submitted()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if err := s.timeline.Wait(ctx, serial); err != nil {
		return fmt.Errorf("cmdbuf: sync: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.reclaim()
	}
	return nil
}

// InstallPools replaces the layout of the pools: it finishes all work, clears the cached
// infos that no graph pins (they are slices too), and hands the layout over. While
// tensors or graphs hold memory it answers pool.ErrInUse and the pools stay as they are.
func (s *Stream) InstallPools(ctx context.Context, layout pool.Layout) error {
	return s.install(ctx, layout, (*pool.Manager).Install)
}

// InstallPoolsAround is InstallPools for a stream with graphs: the memory that graphs hold
// does not stand in the way, and stays on its pages until it is free. Other tensors do.
func (s *Stream) InstallPoolsAround(ctx context.Context, layout pool.Layout) error {
	return s.install(ctx, layout, (*pool.Manager).InstallAround)
}

func (s *Stream) install(ctx context.Context, layout pool.Layout, how func(*pool.Manager, pool.Layout) error) error {
	if err := s.Sync(ctx); err != nil {
		return fmt.Errorf("cmdbuf: install pools: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.idle("install pools"); err != nil {
		return err
	}
	s.cache.ClearUnpinned()
	s.reclaim()
	if err := how(s.pools, layout); err != nil {
		return fmt.Errorf("cmdbuf: install pools: %w", err)
	}
	s.forgetPages()
	return nil
}

// Pools is the stream's device memory: what it holds, as figures and as a picture, what a
// layout would make of it, and its empty pages to give back. Layouts are installed by
// InstallPools, which first lets go of what the stream itself holds.
func (s *Stream) Pools() *pool.Manager { return s.pools }

// Device is the device the stream runs on.
func (s *Stream) Device() *vk.Device { return s.dev }

// Stats returns what was counted so far.
func (s *Stream) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	if !s.closed {
		st.SetsMade, st.Cache, st.Pools = s.sets.made, s.cache.Stats(), s.pools.Stats()
	}
	return st
}

// Validate checks the invariants of the stream and of what it is made of.
func (s *Stream) Validate() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	return errors.Join(s.hazards.Validate(), s.cache.Validate(), s.pools.Validate())
}

// Close finishes all work, closes the stream's graphs and gives everything back. Tensors
// still open keep their memory until they are closed, which the error says; memory that
// another stream still uses goes when that stream is done with it. If the context ends
// before the work does, nothing is closed and Close may be called again.
func (s *Stream) Close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	if err := s.uncaptured("close"); err != nil {
		return err
	}
	errFlush := s.flush()
	// Nobody else can use the stream meanwhile; a cancelled context ends the wait.
	if err := s.timeline.Wait(ctx, s.timeline.Submitted()); err != nil && !s.dev.Lost() {
		return fmt.Errorf("cmdbuf: closing a stream: %w", errors.Join(err, errFlush))
	}
	s.reads.Wait() // what they wait for is done
	for g := range s.graphs {
		g.close()
	}
	s.reclaim()
	s.closed = true
	if err := s.teardown(); err != nil {
		return fmt.Errorf("cmdbuf: closing a stream: %w", errors.Join(err, errFlush))
	}
	if errFlush != nil {
		return fmt.Errorf("cmdbuf: closing a stream: %w", errFlush)
	}
	return nil
}

// teardown gives back what build made, as far as it came. Nothing is pending.
func (s *Stream) teardown() error {
	var err error
	if s.cache != nil {
		err = errors.Join(err, s.cache.Close())
	}
	if s.sets != nil {
		s.sets.close()
	}
	s.closeTimes()
	if s.batch.pool != nil {
		s.batch.pool.Close()
	}
	s.batch.waited()
	for _, p := range s.programs {
		p.release()
	}
	s.programs = nil
	if s.dummy != nil {
		s.dummy.Close()
	}
	if s.pools != nil {
		errPools := s.pools.Close()
		var left *pool.LeakError
		if errors.As(errPools, &left) && left.Slices == 0 && left.Serial == 0 {
			errPools = nil // other streams are still to return it: see returnLent
		}
		err = errors.Join(err, errPools)
	}
	if s.timeline != nil {
		s.timeline.Close()
	}
	return err
}
