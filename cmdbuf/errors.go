package cmdbuf

import (
	"errors"
	"fmt"

	"vkcompute/shaders"
)

// Errors to match with errors.Is.
var (
	// ErrClosed: the stream, graph or tensor was closed before the call.
	ErrClosed = errors.New("closed")
	// ErrCapturing: a call that waits, reads, submits or changes pools, while the stream
	// records a graph.
	ErrCapturing = errors.New("the stream is capturing")
	// ErrCaptureOver: a Capture used after its function returned.
	ErrCaptureOver = errors.New("the capture is over")
	// ErrOverlap: an output that shares elements with another argument of its launch.
	ErrOverlap = errors.New("output overlaps another argument")
	// ErrForeign: a tensor or an event used on a stream of another device.
	ErrForeign = errors.New("made on another device")
	// ErrShape: a shape, stride or range that does not fit.
	ErrShape = errors.New("shape does not fit")
	// ErrUnsupported: the device lacks what a shader needs.
	ErrUnsupported = errors.New("not supported by the device")
	// ErrUntrusted: a kernel that is not built in, on a device opened with
	// vk.Options.Untrusted, could reach memory that it was not given.
	ErrUntrusted = errors.New("not for an untrusted kernel")
)

var (
	errNilArgument  = errors.New("want a tensor or a scalar, found nil or a tensor that nobody made")
	errNamedOutside = errors.New("want a tensor or a scalar, found a named parameter, which only launches of a capture have")
)

// ArgumentError says which argument of a launch is wrong.
type ArgumentError struct {
	Kernel string
	Index  int // of the argument, from 0
	Param  string
	Err    error
}

func (e *ArgumentError) Error() string {
	return fmt.Sprintf("cmdbuf: launch %s: argument %d (%s): %v", e.Kernel, e.Index, e.Param, e.Err)
}

// Unwrap returns what is wrong.
func (e *ArgumentError) Unwrap() error { return e.Err }

// argumentError names the parameter, which the launch may not have.
func argumentError(k *shaders.Kernel, index int, err error) error {
	name := "beyond the last parameter"
	if index < len(k.Params) {
		name = k.Params[index].Name
	}
	return &ArgumentError{Kernel: k.Name, Index: index, Param: name, Err: err}
}

// CapabilityError is a shader that needs what the device lacks. It matches ErrUnsupported.
type CapabilityError struct {
	Kernel, Capability, Device string
}

func (e *CapabilityError) Error() string {
	return fmt.Sprintf("cmdbuf: kernel %s needs the SPIR-V capability %s, which the device %q does not have; use a variant without it or another device", e.Kernel, e.Capability, e.Device)
}

// Is reports whether target is ErrUnsupported.
func (e *CapabilityError) Is(target error) bool { return target == ErrUnsupported }
