package main

import (
	"fmt"
	"os"
	"strings"

	"vkcompute/internal/shim"
	"vkcompute/vk"
)

// deviceFlags select what to run on.
type deviceFlags struct {
	Device  string `help:"Device to take: an index of 'vkbench devices', a name or part of one, a UUID, or discrete, integrated, virtual, cpu." placeholder:"N|NAME|UUID"`
	Driver  string `help:"Manifest (ICD file) of the driver to use instead of those installed." placeholder:"PATH" type:"path"`
	Profile string `help:"Emulate a device on the driver: discrete, rebar-256, noncoherent, tiny, budget, bare. What the device would not allow fails the run." placeholder:"NAME"`

	emulated *shim.Driver // of the profile
}

// check refuses what is bad usage.
func (f *deviceFlags) check() error {
	if f.Profile == "" {
		return nil
	}
	if _, err := shim.ProfileNamed(f.Profile); err != nil {
		var known []string
		for _, p := range shim.Profiles() {
			known = append(known, p.Name)
		}
		return fmt.Errorf("--profile %q: want %s", f.Profile, strings.Join(known, ", "))
	}
	return nil
}

// emulate makes every device from here on one of the profile's.
func (f *deviceFlags) emulate() error {
	if f.Profile == "" || f.emulated != nil {
		return nil
	}
	if err := shim.Install(); err != nil {
		return fmt.Errorf("--profile: %w", err)
	}
	d, err := shim.New(f.Profile)
	if err != nil {
		return fmt.Errorf("--profile: %w", err)
	}
	d.Use() // for good: the process has no other device
	f.emulated = d
	return nil
}

// useDriver makes the loader take the driver asked for. It must come before the first
// instance.
func (f *deviceFlags) useDriver() error {
	if f.Driver == "" {
		return nil
	}
	info, err := os.Stat(f.Driver)
	if err != nil {
		return fmt.Errorf("--driver: %w", err)
	}
	if info.IsDir() {
		return fmt.Errorf("--driver %s: want a driver's manifest, such as lvp_icd.x86_64.json; it is a folder", f.Driver)
	}
	// The second is what loaders before 1.3.207 read.
	for _, v := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"} {
		if err := os.Setenv(v, f.Driver); err != nil {
			return fmt.Errorf("--driver: %w", err)
		}
	}
	return nil
}

// choose lists the devices and finds the one to take.
func (f *deviceFlags) choose() (list []vk.DeviceInfo, chosen vk.DeviceInfo, why string, err error) {
	if err = f.useDriver(); err != nil {
		return nil, chosen, "", err
	}
	if err = f.emulate(); err != nil {
		return nil, chosen, "", err
	}
	if list, err = vk.Devices(); err != nil {
		return nil, chosen, "", err
	}
	selector, from := f.Device, ""
	if selector == "" {
		if selector = os.Getenv(vk.DeviceVariable); selector != "" {
			from = " (from " + vk.DeviceVariable + ")"
		}
	}
	if chosen, why, err = vk.Choose(list, selector); err != nil {
		return list, chosen, "", fmt.Errorf("%w%s", err, from)
	}
	return list, chosen, why + from, nil
}

// isLLVMpipe tells Mesa's CPU driver, which hands work to threads of its own, also beneath an
// emulated device.
func isLLVMpipe(d *vk.DeviceInfo) bool {
	return strings.Contains(strings.ToLower(d.Name+" "+d.Driver), "llvmpipe")
}
