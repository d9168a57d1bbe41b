package shim

/*
#cgo CFLAGS: -std=gnu11 -O2 -I${SRCDIR}/../../vk/internal/abi
#cgo linux LDFLAGS: -lpthread
#include <stdlib.h>
#include "shim.h"

#cgo nocallback sh_install
#cgo noescape sh_driver_new
#cgo nocallback sh_driver_new
#cgo nocallback sh_driver_free
#cgo nocallback sh_use_thread
#cgo nocallback sh_use_process
#cgo nocallback sh_fail
#cgo nocallback sh_planned
#cgo nocallback sh_unplan
#cgo noescape sh_calls
#cgo nocallback sh_calls
#cgo nocallback sh_hang
#cgo nocallback sh_release
#cgo nocallback sh_watchdog
#cgo nocallback sh_budget
#cgo noescape sh_objects
#cgo nocallback sh_objects
#cgo noescape sh_violation_take
#cgo nocallback sh_violation_take
#cgo nocallback sh_kind_name
#cgo nocallback sh_function_name
#cgo noescape sh_function_index
#cgo nocallback sh_function_index
#cgo noescape sh_wraps
#cgo nocallback sh_wraps
#cgo nocallback sh_library_functions
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"vkcompute/vk"
)

// Errors to match with errors.Is.
var (
	// ErrUnknown: there is no profile or function of that name.
	ErrUnknown = errors.New("there is none of this name")
	// ErrInUse: a driver cannot be closed while instances of it are alive.
	ErrInUse = errors.New("instances of the driver are alive")
	// ErrViolated: calls that the emulated device does not allow.
	ErrViolated = errors.New("calls that the emulated device does not allow")
)

// The loader, and what stands before it, are one per process.
var process struct {
	sync.Mutex
	installed bool
}

// Install puts the shim between the library and the loader. It fails with
// vk.ErrLoaderOpen once the process has used a device without it. Installing twice does nothing.
func Install() error {
	process.Lock()
	defer process.Unlock()
	if process.installed {
		return nil
	}
	real, err := vk.FindProcAddr()
	if err != nil {
		return fmt.Errorf("shim: %w", err)
	}
	if err := vk.SetProcAddr(C.sh_install(real)); err != nil {
		return fmt.Errorf("shim: %w", err)
	}
	process.installed = true
	return nil
}

// Driver is one emulated driver with its devices: memory that is used up through one
// of them is used up for all.
type Driver struct {
	c       *C.sh_driver
	profile Profile
}

// New makes a driver of the profile of a name. The shim must be installed.
func New(profile string) (*Driver, error) {
	p, err := ProfileNamed(profile)
	if err != nil {
		return nil, err
	}
	return NewProfile(p)
}

// NewProfile makes a driver of a profile of one's own.
func NewProfile(p Profile) (*Driver, error) {
	process.Lock()
	defer process.Unlock()
	if !process.installed {
		return nil, errors.New("shim: a driver: want the shim installed first, before any device is used")
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	c := p.c()
	if p.Name != Plain {
		c.name = C.CString(p.Name)
		defer C.free(unsafe.Pointer(c.name))
	}
	d := C.sh_driver_new(&c)
	if d == nil {
		return nil, errors.New("shim: a driver: out of memory")
	}
	return &Driver{c: d, profile: p}, nil
}

// Profile is what the driver presents.
func (d *Driver) Profile() Profile { return d.profile }

// With runs f; instances that f creates, in this goroutine, are the driver's.
func (d *Driver) With(f func() error) error {
	runtime.LockOSThread() // the C side keeps the driver by thread
	defer runtime.UnlockOSThread()
	former := C.sh_use_thread(d.c)
	defer func() { C.sh_use_thread(former) }()
	return f()
}

// Use makes the driver that of all instances created from now on, wherever no other
// driver's With is running, until restore is called. There is one such driver in a process.
func (d *Driver) Use() (restore func()) {
	former := C.sh_use_process(d.c)
	return sync.OnceFunc(func() { C.sh_use_process(former) })
}

// Open opens a device of the driver.
func (d *Driver) Open(o vk.Options) (*vk.Device, error) {
	var device *vk.Device
	err := d.With(func() (err error) {
		device, err = vk.Open(o)
		return err
	})
	return device, err
}

// Devices lists the driver's devices.
func (d *Driver) Devices() ([]vk.DeviceInfo, error) {
	var list []vk.DeviceInfo
	err := d.With(func() (err error) {
		list, err = vk.Devices()
		return err
	})
	return list, err
}

// Close frees the driver, whose devices are closed. Its error names what was created and
// not destroyed, and violations that nobody took.
func (d *Driver) Close() error {
	if d.c == nil {
		return nil
	}
	var err error
	if v := d.Violations(); len(v) > 0 {
		err = fmt.Errorf("shim: %w: %s", ErrViolated, strings.Join(v, "; "))
	}
	if alive := d.Alive(); alive != "" {
		err = errors.Join(err, fmt.Errorf("shim: never destroyed: %s", alive))
	}
	if C.sh_driver_free(d.c) == 0 {
		return errors.Join(err, fmt.Errorf("shim: closing a driver: %w", ErrInUse))
	}
	d.c = nil
	return err
}

// Count is how many objects of a kind were created and destroyed.
type Count struct {
	Kind               string
	Created, Destroyed uint64
}

// Objects counts, for each kind that was created, what was created and destroyed.
func (d *Driver) Objects() []Count {
	var created, destroyed [C.SH_KIND_COUNT]C.uint64_t
	C.sh_objects(d.c, &created[0], &destroyed[0])
	var list []Count
	for i := range created {
		if created[i] != 0 {
			list = append(list, Count{C.GoString(C.sh_kind_name(C.uint32_t(i))), uint64(created[i]), uint64(destroyed[i])})
		}
	}
	return list
}

// Alive names what was created and not destroyed, such as "2 buffers"; empty if nothing.
func (d *Driver) Alive() string {
	var parts []string
	for _, c := range d.Objects() {
		if c.Created != c.Destroyed {
			parts = append(parts, fmt.Sprintf("%d %s", int64(c.Created-c.Destroyed), c.Kind))
		}
	}
	return strings.Join(parts, ", ")
}

// Violations returns what the emulated device does not allow and was done all the same
// since the last call.
func (d *Driver) Violations() []string {
	var list []string
	var text [512]C.char
	for {
		var dropped C.uint64_t
		some := C.sh_violation_take(d.c, &text[0], C.size_t(len(text)), &dropped)
		if some != 0 {
			list = append(list, C.GoString(&text[0]))
		}
		if dropped != 0 {
			list = append(list, fmt.Sprintf("and %d more", uint64(dropped)))
		}
		if some == 0 {
			return list
		}
	}
}

// SetBudget sets the budget of a heap, in bytes, and stops it from shrinking. The
// profile must have one.
func (d *Driver) SetBudget(heap int, bytes uint64) {
	C.sh_budget(d.c, C.uint32_t(heap), C.uint64_t(bytes))
}

// Wraps reports whether the shim stands before a function of Vulkan.
func Wraps(function string) bool {
	name := C.CString(function)
	defer C.free(unsafe.Pointer(name))
	return C.sh_wraps(name) != 0
}

// libraryFunctions are the functions of the library's own table that return a VkResult.
func libraryFunctions() []string {
	var list []string
	p := C.sh_library_functions()
	for {
		s := C.GoString(p)
		if s == "" {
			return list
		}
		list = append(list, s)
		p = (*C.char)(unsafe.Add(unsafe.Pointer(p), len(s)+1))
	}
}
