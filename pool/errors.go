package pool

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrReleased reports a slice that was released before, or the zero Slice.
	ErrReleased = errors.New("pool: slice is released or was never allocated")
	// ErrForeign reports a slice that belongs to another manager.
	ErrForeign = errors.New("pool: slice belongs to another manager")
	// ErrNotHeld reports the release of a reference that its holder does not have.
	ErrNotHeld = errors.New("pool: holder has no reference on this slice")
	// ErrTooManyReferences reports a reference count at its limit.
	ErrTooManyReferences = errors.New("pool: too many references on one slice")
	// ErrBounds reports bytes outside a slice.
	ErrBounds = errors.New("pool: range outside the slice")
	// ErrNotHostWritable reports a host write to memory that the host cannot see, or on which a flush
	// could overwrite what the device wrote beside it.
	ErrNotHostWritable = errors.New("pool: slice must not be written by the host")
	// ErrInUse matches an [InUseError].
	ErrInUse = errors.New("pool: in use")
	// ErrLeak matches a [LeakError].
	ErrLeak = errors.New("pool: slices are still alive")
	// ErrOutOfMemory matches an [OutOfMemoryError].
	ErrOutOfMemory = errors.New("pool: out of memory")
	// ErrTooLarge matches a [TooLargeError].
	ErrTooLarge = errors.New("pool: no pool accepts this size")
	// ErrClosed reports a manager that was closed.
	ErrClosed = errors.New("pool: manager is closed")
	// ErrLayout reports a layout that cannot be installed.
	ErrLayout = errors.New("pool: invalid layout")
)

// InUseError says why pools could not be rebuilt. It matches [ErrInUse]. Nothing was changed.
type InUseError struct {
	Slices      int    // alive, zero-size ones included
	Bytes       uint64 // that the slices asked for
	HeldByGraph int    // slices that a graph holds
	HeldByCache int    // slices that a metadata cache holds
	Waiting     int    // released slices whose serials have not completed
	Serial      uint64 // the latest serial that the pages wait for
	Creating    int    // allocations under way in other goroutines
}

func (e *InUseError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "pool: in use: %d slices of %d bytes are alive, %d of them held by graphs and %d by the metadata cache",
		e.Slices, e.Bytes, e.HeldByGraph, e.HeldByCache)
	waits(&b, e.Waiting, e.Serial)
	if e.Creating > 0 {
		fmt.Fprintf(&b, "; %d allocations are under way", e.Creating)
	}
	b.WriteString("; release the slices, clear the cache, close the graphs and wait for the stream first")
	return b.String()
}

// waits tells what released slices wait for: serial 0 is none of the manager's own timeline.
func waits(b *strings.Builder, waiting int, serial uint64) {
	if waiting > 0 {
		fmt.Fprintf(b, "; %d released ones wait", waiting)
		if serial == 0 {
			b.WriteString(" for other streams that use them")
		}
	}
	if serial > 0 {
		fmt.Fprintf(b, "; pages are busy until serial %d", serial)
	}
}

// Is matches [ErrInUse].
func (e *InUseError) Is(target error) bool { return target == ErrInUse }

// LeakError says what was alive when a manager was closed. It matches [ErrLeak].
// Pages that hold nothing alive were freed all the same; the others are freed when their last slice
// is released or, if they only wait for the device, by the next Close or Drain. Where Slices is 0 and Serial
// is 0, all that remains waits for timelines of other streams.
type LeakError struct {
	Slices      int
	Bytes       uint64
	HeldByGraph int
	HeldByCache int
	Waiting     int
	Serial      uint64
	Pages       int // not freed
	// Stacks holds the allocating stack of each slice alive when the
	// program was built with the tag poolstacks, and is empty otherwise.
	Stacks []string
}

func (e *LeakError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "pool: closed with %d slices of %d bytes alive, %d of them held by graphs and %d by the metadata cache",
		e.Slices, e.Bytes, e.HeldByGraph, e.HeldByCache)
	waits(&b, e.Waiting, e.Serial)
	fmt.Fprintf(&b, "; %d pages remain", e.Pages)
	if len(e.Stacks) == 0 && e.Slices > 0 {
		b.WriteString(" (build with -tags poolstacks to see where they were allocated)")
	}
	for _, s := range e.Stacks {
		b.WriteString("\n")
		b.WriteString(s)
	}
	return b.String()
}

// Is matches [ErrLeak].
func (e *LeakError) Is(target error) bool { return target == ErrLeak }

// OutOfMemoryError says that no page could be had for a slice, after empty pages were returned, and
// smaller pages and every memory type that the policy allows were tried. It matches [ErrOutOfMemory] and unwraps to the
// driver's last answer, if the driver was asked at all. The manager remains usable.
type OutOfMemoryError struct {
	Wanted   uint64 // bytes asked for
	InUse    uint64 // bytes that slices alive asked for
	Reserved uint64 // bytes of all pages
	Budget   uint64 // the bound that was met last: the pool's cap, or the budget of the heap; 0 when there is none
	Pool     string // the last pool tried
	Cause    error
}

func (e *OutOfMemoryError) Error() string {
	budget := "no budget set"
	if e.Budget > 0 {
		budget = fmt.Sprintf("budget %d", e.Budget)
	}
	msg := fmt.Sprintf("pool: out of memory: wanted %d bytes from pool %q; %d in use, %d reserved, %s", e.Wanted, e.Pool, e.InUse, e.Reserved, budget)
	if e.Cause != nil {
		msg += ": " + e.Cause.Error()
	}
	return msg
}

// Is matches [ErrOutOfMemory].
func (e *OutOfMemoryError) Is(target error) bool { return target == ErrOutOfMemory }

// Unwrap returns the driver's answer.
func (e *OutOfMemoryError) Unwrap() error { return e.Cause }

// TooLargeError says that no pool of the layout accepts a size, or that no
// descriptor of this device could bind it. It matches [ErrTooLarge].
type TooLargeError struct {
	Wanted uint64
	Max    uint64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("pool: no pool accepts %d bytes, the largest slice is %d; use a layout that ends with an exclusive pool without MaxSlice", e.Wanted, e.Max)
}

// Is matches [ErrTooLarge].
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }
