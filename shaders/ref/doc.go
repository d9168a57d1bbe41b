// Package ref computes what the kernels of package shaders should give, in plain
// Go and float64, with the error each kernel promises, and makes random cases for
// tests. It is slow on purpose: every function walks logical positions one by one
// and shares no index arithmetic with the planners it checks.
//
// A Case holds everything a test needs to launch a kernel on a device: operands,
// the contents of each binding, and Check, which compares the output binding
// afterwards, including the elements that no launch may have touched. Cases gives
// random ones, LargeCases those with more work groups than most devices take in
// one dimension. The same seed gives the same cases.
//
// Nothing here is safe for concurrent use of one Case's data; Check only reads.
package ref
