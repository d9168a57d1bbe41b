package vk

import "fmt"

// Robustness says how far an access of a shader beyond the end of a binding can reach.
// It is settled when a device is opened: see Options.Untrusted.
type Robustness uint8

const (
	// NotRobust: anywhere. Whoever launches answers for the ranges.
	NotRobust Robustness = iota
	// RobustBuffer: anywhere in the memory of the buffer that is bound, and no farther.
	// Who cuts a buffer into parts must keep such shaders out of it.
	RobustBuffer
	// RobustBinding: nowhere; writes are dropped, and reads give 0.
	RobustBinding
)

func (r Robustness) String() string {
	if r > RobustBinding {
		return fmt.Sprintf("Robustness(%d)", uint8(r))
	}
	return [...]string{"not robust", "robust to the buffer", "robust to the binding"}[r]
}

// robustness is the best the device has.
func (i *DeviceInfo) robustness() (Robustness, error) {
	switch {
	case i.Features.RobustAccess2:
		return RobustBinding, nil
	case i.Features.RobustAccess:
		return RobustBuffer, nil
	}
	return NotRobust, fmt.Errorf("vk: untrusted shaders: %w: %q has no robust buffer access, which every Vulkan device should; open it without Options.Untrusted, or another", ErrUnsupported, i.Name)
}

// Robustness is what the device was opened with.
func (d *Device) Robustness() Robustness { return d.robust }
