// Package memstat tells tests how much of the C heap is in use, so that what crosses the
// border to C and is never freed can be seen. Go's own statistics do not count it.
//
// InUse reads the allocator's books of the whole process: drivers and their threads are
// in it, so tests compare many cycles with few and allow for noise.
package memstat
