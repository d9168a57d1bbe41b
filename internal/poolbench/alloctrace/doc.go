// Package alloctrace holds recorded traces of allocations: what a program asked of a
// memory pool and gave back, in order, and when the device had run it.
//
// An allocator is only as good as the sequences it was tried on. A trace is such a
// sequence, in a file that can be read, compared and replayed on every layout. [Train] and
// [Decode] make the traces of this repository from the tensors of two real programs; their files
// lie in testdata/alloc, whose README describes the format.
//
// # Life of a trace
//
// [Parse] reads a trace and [Trace.WriteTo] writes one. A [Player] plays it on a pool and
// calls a function of the caller after each event. [Trace.Lives] gives, instead, when each allocation
// begins and ends, for packing them offline.
//
// # Concurrency and errors
//
// A Trace is not changed by its methods and may be shared. Parse accepts any bytes and
// answers a [*SyntaxError] with the line that it does not understand.
package alloctrace
