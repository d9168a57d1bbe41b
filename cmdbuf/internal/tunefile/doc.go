// Package tunefile is the file in which the tuning of one device is kept. It knows bytes
// and names, no device and no limits: what a file says is for its reader to check.
//
// # The file
//
// Text, so that a person can see what was chosen:
//
//	vkcompute tuning 1
//	sha256 of all that follows, in hexadecimal
//	JSON: the key of the device, what it is called, where the tuning comes from, and the tuning
//
// The version grows when a tuning comes to mean something else, and the key holds the
// kernels' code: values measured with other kernels are worth nothing. No byte lies outside of a comparison, and
// a file is replaced in one step, so that nobody reads half of it.
//
// # Errors
//
// Everything that is wrong with a file is ErrFile, with what was wanted and found. A file
// that is not there is fs.ErrNotExist.
package tunefile
