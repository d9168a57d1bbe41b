// Package sweep lets every call of the driver fail once.
//
// # Why
//
// Error paths are the code that never runs. A program that computes for a day meets each of them,
// and what it finds there is a leak, an object stuck half made, or a wait
// that never ends. So the main path of the library, from opening a device to closing it,
// runs once for each call of it that returns a VkResult and each result that such a call
// can plausibly have, with that call failing.
//
// # What must hold
//
// The error comes back, with the function and its result in it, except from the few calls
// that the library can do without, which the test lists; what was made is destroyed, nothing
// twice; nothing hangs; the device goes on working unless it is lost; if it is, every later
// call says so at once, without asking the driver, and another device can be opened.
//
// [Run] is the main path. It is safe for use from several goroutines on several devices.
package sweep
