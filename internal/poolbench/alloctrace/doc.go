// Package alloctrace holds recorded traces of allocations: what a program asked of a
// memory pool and gave back, in order, and when the device had run it.
//
// An allocator is only as good as the sequences it was tried on. A trace is such a
// sequence, in a file that can be read, compared and replayed on every layout.
//
// There are two kinds. [Recorded] makes a trace of what a stream really asked of its pools; the files in
// testdata/alloc, whose README describes the format, are recordings of packages mlp and llm. Those make their tensors beforehand, as
// good programs do, and are kind to an allocator. [Train] and [Decode] are modelled: they list the tensors that
// such programs would have if each operation made one for its result, which is harder, and no program of this repository runs so.
//
// # Life of a trace
//
// [pool.Manager.Record] and Recorded record a trace, [Parse] reads one, and [Trace.WriteTo] writes it. A [Player] plays it on a pool and
// calls a function of the caller after each event. [Trace.Lives] gives, instead, when each allocation
// begins and ends, for packing them offline.
//
// # Concurrency and errors
//
// A Trace is not changed by its methods and may be shared. Parse accepts any bytes and
// answers a [*SyntaxError] with the line that it does not understand.
package alloctrace
