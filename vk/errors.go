package vk

import (
	"errors"
	"fmt"
	"strings"

	vulkan "github.com/vulkan-go/vulkan"

	"vkcompute/vk/internal/abi"
)

// Errors to match with errors.Is. What is returned wraps them with the call that
// failed and the sizes involved.
var (
	// ErrDeviceLost: the device stopped answering for good. Every later call on it
	// fails with this error at once; close it and open a new one.
	ErrDeviceLost = errors.New("device lost")
	// ErrOutOfDeviceMemory: the device, its budget or its number of allocations is exhausted.
	ErrOutOfDeviceMemory = errors.New("out of device memory")
	// ErrOutOfHostMemory: the driver could not allocate host memory.
	ErrOutOfHostMemory = errors.New("out of host memory")
	// ErrNoLoader: there is no Vulkan loader library on this machine.
	ErrNoLoader = errors.New("no Vulkan loader found")
	// ErrLoaderOpen: the loader can be chosen only before the first use of one.
	ErrLoaderOpen = errors.New("a Vulkan loader is open already")
	// ErrNoDevice: there is no driver, no device that can be used, or none of the name asked for.
	ErrNoDevice = errors.New("no Vulkan device")
	// ErrNoValidation: validation was asked for and its layer is not installed.
	ErrNoValidation = errors.New("validation layer not found")
	// ErrClosed: the device, or the object the call is made on, was closed before.
	ErrClosed = errors.New("closed already")
	// ErrObjectsAlive: a device cannot be closed while objects made from it exist.
	ErrObjectsAlive = errors.New("objects of the device are still alive")
	// ErrUnsupported: the device lacks a feature that was asked for.
	ErrUnsupported = errors.New("not supported by the device")
	// ErrInvalidShader: the driver refused a shader.
	ErrInvalidShader = errors.New("invalid shader")
)

// Error is a call of the driver that failed.
type Error struct {
	Call   string // name of the Vulkan function
	Result int32  // its VkResult
	Detail string // what was attempted, with sizes; may be empty
}

func (e *Error) Error() string {
	s := "vk: " + e.Call + ": " + resultText(e.Result)
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	return s
}

// Is maps the result to the sentinel errors of this package.
func (e *Error) Is(target error) bool {
	switch vulkan.Result(e.Result) {
	case vulkan.ErrorDeviceLost:
		return target == ErrDeviceLost
	case vulkan.ErrorOutOfDeviceMemory, vulkan.ErrorTooManyObjects, vulkan.ErrorMemoryMapFailed:
		return target == ErrOutOfDeviceMemory
	case vulkan.ErrorOutOfHostMemory:
		return target == ErrOutOfHostMemory
	case vulkan.ErrorIncompatibleDriver:
		return target == ErrNoDevice
	case vulkan.ErrorLayerNotPresent:
		return target == ErrNoValidation
	case vulkan.ErrorFeatureNotPresent, vulkan.ErrorExtensionNotPresent:
		return target == ErrUnsupported
	case vulkan.ErrorInvalidShaderNv:
		return target == ErrInvalidShader
	}
	return false
}

var resultTexts = map[vulkan.Result]string{
	vulkan.Timeout:                    "timed out",
	vulkan.ErrorOutOfHostMemory:       ErrOutOfHostMemory.Error(),
	vulkan.ErrorOutOfDeviceMemory:     ErrOutOfDeviceMemory.Error(),
	vulkan.ErrorInitializationFailed:  "initialization failed",
	vulkan.ErrorDeviceLost:            ErrDeviceLost.Error(),
	vulkan.ErrorMemoryMapFailed:       "memory could not be mapped",
	vulkan.ErrorLayerNotPresent:       "layer not present",
	vulkan.ErrorExtensionNotPresent:   "extension not present",
	vulkan.ErrorFeatureNotPresent:     "feature not present",
	vulkan.ErrorIncompatibleDriver:    "no driver that fits",
	vulkan.ErrorTooManyObjects:        "too many objects",
	vulkan.ErrorFragmentedPool:        "fragmented pool",
	vulkan.ErrorOutOfPoolMemory:       "descriptor pool exhausted",
	vulkan.ErrorFragmentation:         "fragmentation",
	vulkan.ErrorInvalidExternalHandle: "invalid external handle",
	vulkan.ErrorInvalidShaderNv:       ErrInvalidShader.Error(),
	vulkan.Result(abi.BadStream):      "malformed command stream",
	vulkan.Result(abi.BadArgument):    "argument out of range",
	vulkan.Result(abi.ErrorUnknown):   "unknown error of the driver",
}

func resultText(r int32) string {
	if s, ok := resultTexts[vulkan.Result(r)]; ok {
		return s
	}
	return fmt.Sprintf("VkResult %d", r)
}

// LimitError is a request beyond a limit of the device, found before the driver saw it.
type LimitError struct {
	Name string // the limit, by its Vulkan name
	Want uint64
	Max  uint64
	What string // what was attempted; may be empty
}

func (e *LimitError) Error() string {
	s := fmt.Sprintf("vk: %s: want %d, the device allows %d", e.Name, e.Want, e.Max)
	if e.What != "" {
		s += " (" + e.What + ")"
	}
	return s
}

// checkLimit returns a *LimitError if want exceeds limit.
func checkLimit(name string, want, limit uint64, what string) error {
	if want <= limit {
		return nil
	}
	return &LimitError{Name: name, Want: want, Max: limit, What: what}
}

// MemoryError is an allocation that this package refused before asking the driver,
// since drivers differ in what they do past a budget. It matches ErrOutOfDeviceMemory.
type MemoryError struct {
	Want   uint64 // bytes asked for
	InUse  uint64 // bytes of the heap in use: through this device, or by the process where the driver tells
	Budget uint64 // bytes this device may allocate from the heap
	Heap   int
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("vk: out of device memory: want %d bytes of heap %d, %d of a budget of %d are in use", e.Want, e.Heap, e.InUse, e.Budget)
}

// Is reports whether target is ErrOutOfDeviceMemory.
func (e *MemoryError) Is(target error) bool { return target == ErrOutOfDeviceMemory }

// result turns a VkResult into an error and remembers that a device was lost.
func (d *Device) result(r int32, call, format string, args ...any) error {
	if r >= 0 {
		return nil
	}
	if vulkan.Result(r) == vulkan.ErrorDeviceLost {
		d.lost.Store(true)
	}
	return &Error{Call: call, Result: r, Detail: strings.TrimSpace(fmt.Sprintf(format, args...))}
}

// usable fails fast on a lost or closed device.
func (d *Device) usable(call string) error {
	if d.closed.Load() {
		return fmt.Errorf("vk: %s: the device is %w", call, ErrClosed)
	}
	if d.lost.Load() {
		return &Error{Call: call, Result: int32(vulkan.ErrorDeviceLost)}
	}
	return nil
}
