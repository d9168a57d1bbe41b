// Package cfloor runs launches the way a careful C program would, without the library:
// plain loops over the driver's own functions. What they cost is the floor that the
// library's figures are shown against.
//
// The comparison is worth something only if both do the same. So a Floor works on the
// library's own device and pipeline, in the same process and on the same queue, with
// the same grid, descriptor layout, info words and barriers; Recorded counts what was
// recorded, for callers to check that the two agree.
//
// # Life cycle
//
// New makes a Floor for a chain of launches, builds what the cached modes need and
// records what is replayed. Run executes the chain in one crossing into C and waits for
// it, as many times as asked. Close frees everything; do so before the device is closed.
//
// # Concurrency, ownership, errors
//
// A Floor belongs to one goroutine at a time and borrows device, pipeline and tensors.
// While it runs, the device's queue is locked. A failed call is an error with its name
// and VkResult. After a device did not finish within a long wait the Floor frees nothing
// any more, because the device may still read it, and every later Run fails.
package cfloor
