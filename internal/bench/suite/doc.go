// Package suite holds the workloads other than launch: what the parts of the library
// cost, and what the device under them can do.
//
// Each workload is a function that sets up, checks what is computed against plain Go,
// and only then measures, by the method of package bench. A wrong result is an error
// matching ErrWrong. What takes a device does not close it; what it makes on it is gone
// when the function returns, unless closing failed, which is an error too.
//
// Bytes are counted read plus written, of the work as it was asked for: a copy of n
// bytes moves 2n, and what the library moves besides, through a staging buffer, is its
// own cost and not counted.
package suite
