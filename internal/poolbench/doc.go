// Package poolbench measures the memory pools: what an allocation costs, and how much memory is lost
// to fragmentation. It needs no device, because what is measured is bookkeeping; pools are those
// of pool.NewVirtual.
//
// [Cycle] and [Holes] have a method Run(n int) error that does the thing n times, as package bench wants it, and
// are checked when they are closed: figures of a broken allocator are worth nothing. [Fragmentation] plays a
// trace, recorded or modelled, and compares it with the best packing found offline.
//
// A Cycle or Holes is used by one goroutine at a time. Errors are those of package pool, and [ErrNotMeasured]
// when what was measured turns out not to be what the name says.
package poolbench
