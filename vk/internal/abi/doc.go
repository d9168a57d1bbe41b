// Package abi is the library's own door to the Vulkan driver.
//
// The Go binding github.com/vulkan-go/vulkan gives types, enumerations and the calls
// that pass handles and scalars. Everything that takes an array of structures, a chain
// of structures or a string goes through here instead, because that binding frees the
// C copies it makes of slices from finalizers, which may run before the driver has
// read them; slices nested in creation structures (bindings, pool sizes, push constant
// ranges, queues) are no exception. So does everything newer than Vulkan 1.0, and
// everything on the path of a launch, where a crossing into C costs tens of nanoseconds
// and a command decoded on the other side costs two.
//
// Rules of this border:
//
//   - Handles cross as uint64, arrays as flat slices of integers that the callee reads
//     only during the call. No Go pointer is ever stored in Go memory that crosses, and
//     none survives the call.
//   - No C function calls back into Go. Messages of the validation layer are collected
//     in a ring on the C side and fetched by Device owners (TakeMessages).
//   - The structures are spelled out in vulkan_abi.h; no Vulkan header is needed to
//     build. A test compares each with the system's header.
//   - A VkResult is returned as a plain int32. Package vk turns it into an error.
//
// Concurrency: an Instance and a Device may be used from several goroutines, subject to
// Vulkan's rules of external synchronisation, which package vk enforces.
package abi
