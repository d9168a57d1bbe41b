// Package lack tells a device that is too small for something, or cannot do it at all,
// from one that fails at it: the first is a finding, the second a fault.
package lack

import (
	"errors"

	"vkcompute/cmdbuf"
	"vkcompute/pool"
	"vkcompute/vk"
)

// Of reports that an error speaks of what the device does not have: memory, a limit, a
// feature. Such an error says what was wanted and what is there.
func Of(err error) bool {
	var limit *vk.LimitError
	var capability *cmdbuf.CapabilityError
	return errors.Is(err, pool.ErrOutOfMemory) || errors.Is(err, vk.ErrOutOfDeviceMemory) || errors.Is(err, vk.ErrUnsupported) ||
		errors.As(err, &limit) || errors.As(err, &capability)
}
