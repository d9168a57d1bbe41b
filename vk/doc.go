// Package vk is the library's view of a Vulkan driver: the loader, the choice of a
// device, and the few kinds of object that computing needs.
//
// # Why
//
// The rest of the library wants to speak of buffers, pipelines, serials and command
// streams, and to meet every failure as an error that says what was wanted and what was
// found. Drivers differ in what they check: those of CPU devices accept bindings beyond
// the limits, pools that overflow and allocations larger than the heap, and a program
// that works on them fails elsewhere. So every limit the library depends on is enforced
// here, before the driver sees the call.
//
// # Life cycle
//
// Open makes a Device, which owns one queue. Buffers, pipelines, pools and timelines are
// made from it and closed by whoever made them, before the device; Device.Close refuses
// while any is alive and says which. Work is built as Commands, plain Go memory; Submit
// records, flushes and submits it in a single call into C and returns the serial that
// the stream's Timeline reaches when the work is done.
//
//	Open → NewBuffer, NewPipeline, NewDescriptorPool, NewCommandPool, NewTimeline
//	     → Commands → Submit → Timeline.Wait → Close of each → Device.Close
//
// Options.Untrusted confines shaders of others when the device is opened; Device.Robustness
// says to what. Package cmdbuf does the rest. Options.Prints brings what shaders print to
// the log.
//
// # Concurrency
//
// A Device and a Timeline may be used from several goroutines; the device locks its
// queue. CommandPool, DescriptorPool, Commands and Submission belong to one goroutine at
// a time.
//
// # Ownership
//
// Nothing here is reference counted and nothing is freed by the garbage collector: a
// VkBuffer that dies while the GPU reads it takes the process with it, so the owner
// decides, knowing the serials. Packages pool and cmdbuf do.
//
// # Errors
//
// A failed call is an *Error with the name of the function; a request beyond a limit a
// *LimitError; an allocation beyond the budget a *MemoryError. Match kinds with
// errors.Is: ErrDeviceLost, ErrOutOfDeviceMemory, ErrNoDevice and the others. A device
// once lost fails every later call at once.
package vk
