package doctor

import (
	"os"
	"path/filepath"
	"strings"
)

// system is the distribution, as far as advice depends on it.
type system struct{ ids []string } // ID and ID_LIKE of os-release

func readOS(s System) system {
	var o system
	text, _ := os.ReadFile(filepath.Join(s.Root, "etc/os-release"))
	for _, l := range strings.Split(string(text), "\n") {
		name, value, _ := strings.Cut(l, "=")
		if name == "ID" || name == "ID_LIKE" {
			o.ids = append(o.ids, strings.Fields(strings.Trim(value, `"`))...)
		}
	}
	return o
}

func (o system) like(id string) bool {
	for _, i := range o.ids {
		if i == id {
			return true
		}
	}
	return false
}

// install says how to install a package by its name on Debian, Fedora and Arch.
func (o system) install(debian, fedora, arch string) string {
	switch {
	case o.like("debian") || o.like("ubuntu"):
		return "sudo apt-get install " + debian
	case o.like("fedora") || o.like("rhel"):
		return "sudo dnf install " + fedora
	case o.like("arch"):
		return "sudo pacman -S " + arch
	}
	return "install " + o.packages(debian, fedora, arch)
}

func (o system) packages(debian, fedora, arch string) string {
	switch {
	case o.like("debian") || o.like("ubuntu"):
		return debian
	case o.like("fedora") || o.like("rhel"):
		return fedora
	case o.like("arch"):
		return arch
	}
	return "Debian and Ubuntu: " + debian + ", Fedora: " + fedora + ", Arch: " + arch
}

// forDriver says how to mend a driver, by the name of its manifest.
func (o system) forDriver(manifest string) string {
	name := strings.ToLower(filepath.Base(manifest))
	switch {
	case strings.Contains(name, "nvidia"):
		return o.forVendor("NVIDIA")
	case strings.Contains(name, "lvp"):
		return o.install("--reinstall mesa-vulkan-drivers", "mesa-vulkan-drivers", "vulkan-swrast")
	case strings.Contains(name, "radeon"):
		return o.forVendor("AMD")
	case strings.Contains(name, "intel"):
		return o.forVendor("Intel")
	}
	return "reinstall the package that brought it, or remove the file"
}

func (o system) forVendor(vendor string) string {
	switch vendor {
	case "NVIDIA":
		return "install NVIDIA's driver of the kernel module's version: " + o.packages("nvidia-driver or libnvidia-gl-…", "akmod-nvidia", "nvidia-utils") + "; in a container, give it the graphics capability (NVIDIA_DRIVER_CAPABILITIES=all)"
	case "AMD":
		return o.install("mesa-vulkan-drivers", "mesa-vulkan-drivers", "vulkan-radeon")
	case "Intel":
		return o.install("mesa-vulkan-drivers", "mesa-vulkan-drivers", "vulkan-intel")
	}
	return "install the vendor's Vulkan driver"
}
