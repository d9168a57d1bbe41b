// Package shim stands between the library and the Vulkan driver, and makes of that
// driver another one: with other memory, tighter limits or fewer features, one that
// fails on demand, or whose queue hangs.
//
// # Why
//
// The drivers at hand have one kind of memory, which is everything at once, accept what
// others refuse, and never run out of anything. A library tested on them alone breaks on
// the first discrete GPU, on the first phone, and on the first error. The shim presents
// what those have, and enforces it: what it presents it also holds the library to, and
// anything beyond is a violation that fails the test.
//
// # Life cycle
//
// [Install] puts the shim before the loader; it comes before the first use of a device and stays
// for the life of the process. [New] makes a [Driver] of a [Profile]. Instances that are created
// inside [Driver.With], or while [Driver.Use] is in force, belong to it, and so does all that
// is made from them. Several drivers live side by side. Whoever belongs to none passes
// through, at no cost to the path of a launch. When its devices are closed, [Driver.Close]
// says what was left over.
//
//	Install → New → With(open a device) → Fail, Hang, Objects, Violations → Close
//
// # What is emulated
//
// Handles stay those of the driver; the shim looks up what it knows of them. Memory types
// are mapped to the driver's. Memory that is not coherent is a copy: what the host writes reaches
// the device by a flush and nothing else, and what the host has not invalidated reads as 0xcb. Where it
// can be done, the validation layer runs beneath the shim and sees the calls that remain.
//
// Not emulated: limits of images and graphics, the addresses of buffers, indirect
// dispatches beyond the limits (the counts are on the device).
//
// # Concurrency
//
// A Driver may be used from several goroutines. With concerns its own goroutine alone.
//
// # Errors
//
// [ErrUnknown] for a profile or function that does not exist, [ErrInUse] for a driver whose instances are
// still alive. Everything that goes wrong beneath is a violation, since the caller of Vulkan is another.
package shim
