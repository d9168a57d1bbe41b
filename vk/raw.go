package vk

import "unsafe"

// Raw is what a program needs to call the driver beneath a Device by itself: handles,
// and the loader's vkGetInstanceProcAddr to find functions with.
type Raw struct {
	Instance uint64
	Device   uint64
	Queue    uint64
	// GetInstanceProcAddr is a C function pointer.
	GetInstanceProcAddr unsafe.Pointer
}

// Lend calls use with the device's handles, for what the library does not offer, such as
// measuring its cost against that of the same calls without it. Nobody else submits to
// the queue meanwhile, so use must not call Submit or WaitIdle. What use makes it must
// destroy before the device is closed: Close does not know of it.
func (d *Device) Lend(use func(Raw) error) error {
	if err := d.usable("lending the device"); err != nil {
		return err
	}
	loader, err := openLoader()
	if err != nil {
		return err
	}
	d.queueMu.Lock()
	defer d.queueMu.Unlock()
	defer d.in.drain()
	return use(Raw{
		Instance: d.in.c.Handle(), Device: d.c.Handle(), Queue: d.queue,
		GetInstanceProcAddr: loader.ProcAddr(),
	})
}
