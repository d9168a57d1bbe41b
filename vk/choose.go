package vk

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// rank orders kinds of device: discrete, integrated, virtual, other, CPU.
func (t DeviceType) rank() int {
	switch t {
	case DiscreteGPU:
		return 0
	case IntegratedGPU:
		return 1
	case VirtualGPU:
		return 2
	case CPU:
		return 4
	}
	return 3
}

// localMemory is the size of the device-local heaps together, in bytes: some devices
// divide theirs.
func (i *DeviceInfo) localMemory() uint64 {
	var sum uint64
	for _, h := range i.Heaps {
		if h.DeviceLocal {
			sum += h.Size
		}
	}
	return sum
}

// Choose returns the device that Open takes for a selector, and why. The selector is
// empty for the best one, or an index of the list, a type (discrete, integrated,
// virtual, cpu), a UUID, or a part of the name or of the driver's name, in any case; a
// number that is no index may be a part of a name.
// Among several, discrete goes before integrated, virtual, other and CPU devices, then
// the one with most device-local memory, then the first.
func Choose(list []DeviceInfo, selector string) (DeviceInfo, string, error) {
	if len(list) == 0 {
		return DeviceInfo{}, "", fmt.Errorf("vk: %w: the installed drivers list none", ErrNoDevice)
	}
	match, how := matcher(list, strings.TrimSpace(selector))
	var fit, refused []DeviceInfo
	for _, d := range list {
		switch {
		case !match(d):
		case d.Refused != "":
			refused = append(refused, d)
		default:
			fit = append(fit, d)
		}
	}
	if len(fit) == 0 {
		if len(refused) > 0 {
			return DeviceInfo{}, "", fmt.Errorf("vk: %w can be used: %s", ErrNoDevice, describe(refused))
		}
		return DeviceInfo{}, "", fmt.Errorf("vk: %w matches %q; there is %s", ErrNoDevice, selector, describe(list))
	}
	best := slices.MinFunc(fit, func(a, b DeviceInfo) int {
		if d := a.Type.rank() - b.Type.rank(); d != 0 {
			return d
		}
		if a.localMemory() != b.localMemory() {
			if a.localMemory() > b.localMemory() {
				return -1
			}
			return 1
		}
		return a.Index - b.Index
	})
	switch {
	case len(list) == 1:
		how = "the only device"
	case len(fit) == 1 && len(refused) > 0:
		how += ", the only one that can be used"
	case len(fit) == 1:
		how += ", the only match"
	default:
		how += fmt.Sprintf(", best of %d: %s before other kinds, then the most memory", len(fit), best.Type)
	}
	if best.Type == CPU {
		how += " (runs on the CPU)"
	}
	return best, how, nil
}

func matcher(list []DeviceInfo, selector string) (match func(DeviceInfo) bool, how string) {
	if selector == "" {
		return func(DeviceInfo) bool { return true }, "no device was asked for"
	}
	if n, err := strconv.Atoi(selector); err == nil && slices.ContainsFunc(list, func(d DeviceInfo) bool { return d.Index == n }) {
		return func(d DeviceInfo) bool { return d.Index == n }, "index " + selector
	}
	for t := IntegratedGPU; t <= CPU; t++ {
		if strings.EqualFold(selector, t.String()) {
			return func(d DeviceInfo) bool { return d.Type == t }, "type " + t.String()
		}
	}
	lower := strings.ToLower(selector)
	return func(d DeviceInfo) bool {
		return d.UUID.String() == lower || strings.Contains(strings.ToLower(d.Name), lower) || strings.Contains(strings.ToLower(d.Driver), lower)
	}, fmt.Sprintf("matches %q", selector)
}

func describe(list []DeviceInfo) string {
	var b strings.Builder
	for i, d := range list {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%d: %q (%s)", d.Index, d.Name, d.Type)
		if d.Refused != "" {
			fmt.Fprintf(&b, ", refused: %s", d.Refused)
		}
	}
	return b.String()
}
