package cfloor

/*
#cgo CFLAGS: -std=gnu11 -O2 -I${SRCDIR}/../../vk/internal/abi
#include "floor.h"

#cgo noescape cf_new
#cgo nocallback cf_new
#cgo noescape cf_run
#cgo nocallback cf_run
#cgo noescape cf_recorded
#cgo nocallback cf_recorded
#cgo nocallback cf_free
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"vkcompute/vk"
)

// ErrStuck: the device did not finish within the wait.
var ErrStuck = errors.New("the device did not finish in time")

// Mode says how much of a launch is made anew each time.
type Mode uint8

const (
	// Rebuild writes the info into an arena, and allocates, writes and frees a
	// descriptor set, for every launch; the commands are recorded each time.
	Rebuild Mode = C.CF_REBUILD
	// RebuildBuffer is Rebuild with a buffer and memory of its own for every info.
	RebuildBuffer Mode = C.CF_REBUILD_BUFFER
	// Cached has infos and sets at hand and records the commands each time.
	Cached Mode = C.CF_CACHED
	// Replay submits what was recorded once.
	Replay Mode = C.CF_REPLAY
	// Empty submits a command buffer without launches.
	Empty Mode = C.CF_EMPTY

	modeCount = C.CF_EMPTY + 1
)

func (m Mode) String() string {
	if m >= modeCount {
		return fmt.Sprintf("Mode(%d)", uint8(m))
	}
	return [...]string{"rebuild", "rebuild-buffer", "cached", "replay", "empty"}[m]
}

// Barrier is a global memory barrier. One without source stages is left out.
type Barrier struct{ From, To vk.Scope }

func (b Barrier) c() C.cf_barrier {
	return C.cf_barrier{
		src_stages: C.uint32_t(b.From.Stages), dst_stages: C.uint32_t(b.To.Stages),
		src_access: C.uint32_t(b.From.Access), dst_access: C.uint32_t(b.To.Access),
	}
}

// Tensor is what a storage buffer binding covers, in bytes.
type Tensor struct {
	Binding       uint32
	Buffer        uint64 // VkBuffer
	Offset, Range uint64
}

// Step is one launch of the chain.
type Step struct {
	Info    []uint64
	Tensors []Tensor
}

// Binds says how often the pipeline is bound.
type Binds uint8

const (
	// BindOnce binds it once in a command buffer.
	BindOnce Binds = iota
	// BindEach binds it for every launch.
	BindEach
)

// Spec describes a chain of launches of one pipeline. Binding 0 of set 0 is the info,
// with a dynamic offset; a pipeline without descriptors takes neither info nor tensors.
type Spec struct {
	Pipeline *vk.Pipeline
	Groups   [3]uint32
	Launches int
	// Steps are used in turn; their infos are of one length.
	Steps []Step
	// InfoRange is how many bytes binding 0 covers.
	InfoRange uint64
	Binds     Binds
	// Begin and End are the first and last command of every command buffer, Between
	// stands between two launches.
	Begin, Between, End Barrier
}

// Validate reports what the C loops do not check.
func (s *Spec) Validate() error {
	switch {
	case s.Pipeline == nil:
		return errors.New("cfloor: no pipeline")
	case s.Launches < 1 || s.Launches > 1<<20:
		return fmt.Errorf("cfloor: %d launches: want 1 to %d", s.Launches, 1<<20)
	case len(s.Steps) == 0:
		return errors.New("cfloor: no steps: want at least one")
	}
	storage, dynamic := s.Pipeline.Descriptors()
	if dynamic > 1 || dynamic == 0 && storage != 0 {
		return fmt.Errorf("cfloor: the pipeline has %d dynamic storage buffers beside %d others: want the info alone to be dynamic, or no descriptors at all", dynamic, storage)
	}
	if storage > C.CF_MAX_TENSORS {
		return fmt.Errorf("cfloor: %d tensors: want at most %d", storage, C.CF_MAX_TENSORS)
	}
	for i, step := range s.Steps {
		switch {
		case len(step.Tensors) != int(storage):
			return fmt.Errorf("cfloor: step %d has %d tensors, the pipeline %d", i, len(step.Tensors), storage)
		case len(step.Info) != len(s.Steps[0].Info):
			return fmt.Errorf("cfloor: step %d has an info of %d words, step 0 of %d: want one length", i, len(step.Info), len(s.Steps[0].Info))
		case dynamic > 0 && (len(step.Info) == 0 || uint64(len(step.Info))*8 > s.InfoRange):
			return fmt.Errorf("cfloor: step %d has an info of %d words: want at least one and at most the %d bytes of binding 0", i, len(step.Info), s.InfoRange)
		}
	}
	return nil
}

// Floor is a chain of launches ready to run.
type Floor struct {
	d        *vk.Device
	commands *vk.CommandPool
	c        *C.cf_floor
	launches int
}

// New prepares a chain. The tensors, the pipeline and the device must outlive it.
func New(d *vk.Device, s Spec) (*Floor, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	device := d.Info()
	types := device.TypesFor(vk.InfoMemory)
	if len(types) == 0 {
		return nil, fmt.Errorf("cfloor: %w: no memory for infos that the host can write", vk.ErrUnsupported)
	}
	f := &Floor{d: d, launches: s.Launches}
	var err error
	if f.commands, err = d.NewCommandPool(); err != nil {
		return nil, err
	}
	var buffers [3]vk.CommandBuffer
	for i := range buffers {
		if buffers[i], err = f.commands.New(); err != nil {
			f.commands.Close()
			return nil, err
		}
	}
	l := d.Limits()
	_, dynamic := s.Pipeline.Descriptors()
	info := s.Steps[0].Info
	spec := C.cf_spec{
		pipeline: C.uint64_t(s.Pipeline.Handle()), layout: C.uint64_t(s.Pipeline.Layout()), set_layout: C.uint64_t(s.Pipeline.SetLayout()),
		command_buffer: C.uint64_t(buffers[0]), replay_buffer: C.uint64_t(buffers[1]), empty_buffer: C.uint64_t(buffers[2]),
		launches: C.uint32_t(s.Launches), steps: C.uint32_t(len(s.Steps)), tensors: C.uint32_t(len(s.Steps[0].Tensors)),
		groups:      [3]C.uint32_t{C.uint32_t(s.Groups[0]), C.uint32_t(s.Groups[1]), C.uint32_t(s.Groups[2])},
		has_set:     C.uint32_t(dynamic),
		info_words:  C.uint32_t(len(info)),
		slot:        C.uint32_t(roundUp(uint64(len(info))*8, max(l.MinStorageBufferAlignment, l.NonCoherentAtomSize))),
		memory_type: C.uint32_t(types[0]),
		info_range:  C.uint64_t(s.InfoRange),
		bind_each:   C.uint32_t(s.Binds),
		begin:       s.Begin.c(), between: s.Between.c(), end: s.End.c(),
	}
	if device.MemoryTypes[types[0]].Flags&vk.HostCoherent != 0 {
		spec.coherent = 1
	}
	var tensors, infos []uint64
	for _, step := range s.Steps {
		infos = append(infos, step.Info...)
		for _, t := range step.Tensors {
			tensors = append(tensors, uint64(t.Binding), t.Buffer, t.Offset, t.Range)
		}
	}
	err = d.Lend(func(raw vk.Raw) error {
		spec.device, spec.queue = C.uint64_t(raw.Device), C.uint64_t(raw.Queue)
		var what *C.char
		var made *C.cf_floor
		r := C.cf_new(raw.GetInstanceProcAddr, C.uint64_t(raw.Instance), &spec, words(tensors), words(infos), &made, &what)
		f.c = made
		return failure(r, what, "preparing")
	})
	if err != nil {
		f.commands.Close()
		return nil, err
	}
	return f, nil
}

func roundUp(n, to uint64) uint64 { return (n + to - 1) / to * to }

func words(p []uint64) *C.uint64_t { return (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(p))) }

func failure(r C.VcResult, what *C.char, doing string) error {
	switch {
	case r >= 0:
		return nil
	case r == C.CF_STUCK:
		return fmt.Errorf("cfloor: %s: %s: %w", doing, C.GoString(what), ErrStuck)
	case r == C.CF_OUT_OF_MEMORY:
		return fmt.Errorf("cfloor: %s: %s: %w", doing, C.GoString(what), vk.ErrOutOfHostMemory)
	}
	return fmt.Errorf("cfloor: %s: %w", doing, &vk.Error{Call: C.GoString(what), Result: int32(r)})
}

// Run executes the chain in a mode and waits for it, shots times.
func (f *Floor) Run(mode Mode, shots int) error {
	if mode >= modeCount || shots < 1 {
		return fmt.Errorf("cfloor: %d shots of %v: want at least one of a known mode", shots, mode)
	}
	return f.d.Lend(func(vk.Raw) error {
		var what *C.char
		return failure(C.cf_run(f.c, C.cf_mode(mode), C.uint32_t(shots), &what), what, mode.String())
	})
}

// Counts says what a command buffer contains.
type Counts struct{ Launches, Barriers int }

// Recorded counts what was recorded last: by New for Replay, by Run for the modes that
// record. Barriers include those at the beginning and the end.
func (f *Floor) Recorded() Counts {
	var dispatches, barriers C.uint32_t
	C.cf_recorded(f.c, &dispatches, &barriers)
	return Counts{int(dispatches), int(barriers)}
}

// Launches is the length of the chain.
func (f *Floor) Launches() int { return f.launches }

// Close frees everything. Closing twice does nothing.
func (f *Floor) Close() {
	if f.c == nil {
		return
	}
	if C.cf_free(f.c) != 0 {
		f.commands.Close()
	}
	f.c = nil
}
