// Package probe calls Vulkan functions as they come, for the tests of package shim: the
// library checks limits before a driver sees a call, so nothing it does could show that
// the shim checks them too.
//
// A Probe belongs to the goroutine that lends it the device (vk.Device.Lend). What it
// makes it destroys by handle; it keeps no account, that is what is tested.
package probe
