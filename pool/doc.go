// Package pool hands out device memory. Pages, one buffer each, are cut into
// reference-counted slices; a slice that nobody refers to any more goes back to
// its page when the device is done with it.
//
// Asking the driver for memory takes microseconds to milliseconds and the number of allocations
// is limited, often to 4096. A stream that launches thousands of kernels makes and
// drops tensors and info buffers all the time, so they come from pages
// that stay. What makes this more than an allocator for bytes is that the device
// runs behind: a range whose last reference is gone may still be read or written by
// commands that have not run.
//
// # Life of a slice
//
// [Manager.Alloc] and its siblings return a [Slice] with one reference. [Slice.Retain] and [Slice.Release]
// are explicit; [Slice.RetainAs] says who the holder is, for error
// messages. Whoever records a command with the slice stamps it with [Slice.Use]: the range is needed until
// that serial of the stream's timeline completes, a serial that need not have been submitted yet.
//
// The last Release ends the life of the slice, and every copy of the handle becomes invalid: later
// use is an error, not corruption. The range is retired:
//
//   - A range of device memory for commands is handed out again at once. What comes next is a command
//     on the same queue, and the barrier that its bytes call for orders the two. The new slice
//     inherits the serial as its [Slice.LastUse], so a host that wants
//     to touch it through the mapping sees that it is not [Slice.Idle].
//   - Every other range waits for its serials: what the host writes (info slots, upload
//     memory, device memory allocated with [NextHost]), what the host reads, and
//     what other streams used ([Slice.UseOn]). No barrier orders those. [Manager.Drain] brings them back.
//
// Whoever plans barriers must therefore go by the bytes of the buffer, not by
// the slice: two slices, one after the other, may be the same bytes.
//
// # Layouts
//
// A [Layout] is an ordered list of pools, sliced or exclusive, for device memory, staging and
// infos. [Manager.Install] replaces it and refuses while anything is alive.
// Pages grow with what is needed: the first are small, later ones an eighth of what the pool has, and a slice
// that is larger gets a page of its size. A new page takes the place of empty ones of the same use that were too small.
// Within a pool, slices for commands, slices for the host, and slices of each role lie on different pages,
// so host-written and device-written bytes never share one.
//
// # Memory and budgets
//
// Each role has memory types fit for it, best first. A pool asks for pages of the best; when that is at its
// budget or the driver has no more, empty pages are returned, the request is repeated once, smaller
// pages are tried, and then the next type that the pool's [BudgetPolicy] allows. Room on better memory is used
// before room on memory that was spilled to. No policy but [BudgetAllow] passes the budget of a heap, and
// none its size.
//
// Pages that are empty go back to the driver when a larger one takes their place, when memory is short, by
// [Manager.Cleanup], and after a period of disuse, but only when somebody calls: the pool has no goroutine and no
// timer. [Options].IdlePeriod says exactly when. Streams drain after they learned that work has completed, and so does an
// allocation that finds no room; who wants the memory of a stream that rests calls Cleanup.
//
// [DryRun] and [Manager.DryRun] tell what a layout would need, and [NewVirtual] makes a manager without
// memory, for planning and measurement; [Manager.Record] notes what a program asks for, to be tried on such a one.
// [Manager.Map] is a picture of every page and slice, [Map.WriteSVG] draws it.
//
// # Infos
//
// Info slots are small and bound with a dynamic offset. A descriptor covers a
// fixed range from there on, [Manager.InfoRange]; pages keep enough room at their end for it.
//
// # Memory that is not coherent
//
// [Slice.Written] records what the host wrote, [Manager.PendingFlushes] returns it before the next
// submission, and [Slice.InvalidateRange] says what to invalidate before reading. All are rounded to
// nonCoherentAtomSize, and on such memory each slice that the host writes has its atoms to itself.
//
// # Concurrency and ownership
//
// A [Manager] belongs to one stream, whose [Timeline] it asks, but any goroutine may call its
// methods and those of its slices: there is one mutex. No driver call, no call
// to the timeline, no log record and no hook happens while it is held.
// The accessors of a slice and Use take no lock; a caller must hold a reference
// while it calls them. Mapped bytes are the driver's memory and valid as long as the reference is.
//
// # Errors
//
// Errors are typed and matchable: [ErrInUse] and [*InUseError], [ErrOutOfMemory] and
// [*OutOfMemoryError], [ErrTooLarge], [ErrReleased], [ErrForeign], [ErrLeak]. An allocation that fails
// changes nothing, and later ones may succeed.
package pool
