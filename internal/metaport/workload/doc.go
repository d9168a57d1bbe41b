// Package workload holds what is measured on a metadata info cache, so that the
// benchmarks of metacache and the command line measure the same thing.
//
// A Case does the same work with metacache and with the port of the reference,
// which is the yardstick: measure both in one process, in turns, and compare
// medians; only the ratio means anything on another machine. Each run checks
// what the cache answers and returns an error rather than a time for a wrong
// answer.
//
// Values are two machine words, like a handle of a pool slice. The release
// function does nothing.
package workload
