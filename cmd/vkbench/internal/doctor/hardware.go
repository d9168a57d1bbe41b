package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// vendors of graphics cards, by PCI number, with a part of the name of their driver's
// library.
var vendors = map[string]struct {
	name      string
	libraries []string
}{
	"0x1002": {"AMD", []string{"libvulkan_radeon", "amdvlk"}},
	"0x10de": {"NVIDIA", []string{"libGLX_nvidia", "libEGL_nvidia", "libvulkan_nouveau"}},
	"0x8086": {"Intel", []string{"libvulkan_intel"}},
}

// hardware looks for graphics cards and what serves them.
func (e *examination) hardware() {
	list, _ := filepath.Glob(e.path("/sys/bus/pci/devices/*"))
	read := func(dir, file string) string {
		text, _ := os.ReadFile(filepath.Join(dir, file))
		return strings.TrimSpace(string(text))
	}
	n := 0
	for _, dir := range list {
		if !strings.HasPrefix(read(dir, "class"), "0x03") {
			continue
		}
		n++
		vendor := read(dir, "vendor")
		v, known := vendors[vendor]
		name := v.name
		if !known {
			name = "vendor " + vendor
		}
		what := fmt.Sprintf("%s, PCI %s, device %s", name, filepath.Base(dir), read(dir, "device"))
		link, err := os.Readlink(filepath.Join(dir, "driver"))
		switch {
		case err != nil:
			e.say(areaHardware, Problem, "load or install the kernel's module for it (dmesg tells what it says of the card)", "%s: no kernel driver serves it", what)
		case !known:
			e.say(areaHardware, Good, "", "%s: kernel driver %s", what, filepath.Base(link))
		case !slices.ContainsFunc(e.found, func(lib string) bool {
			return slices.ContainsFunc(v.libraries, func(l string) bool { return strings.Contains(lib, l) })
		}):
			e.say(areaHardware, Problem, e.os.forVendor(v.name), "%s: kernel driver %s, and no Vulkan driver for it that loads", what, filepath.Base(link))
		default:
			e.say(areaHardware, Good, "", "%s: kernel driver %s", what, filepath.Base(link))
		}
	}
	if n == 0 {
		e.say(areaHardware, Note, "", "none on the PCI bus: only drivers that run on the CPU can give a device")
	}
}

// nodes checks that the user may open what drivers open.
func (e *examination) nodes() {
	var list []string
	for _, pattern := range []string{"/dev/dri/renderD*", "/dev/nvidiactl", "/dev/nvidia[0-9]*", "/dev/nvidia-uvm", "/dev/dxg", "/dev/kfd"} {
		found, _ := filepath.Glob(e.path(pattern))
		list = append(list, found...)
	}
	if len(list) == 0 {
		e.say(areaNodes, Note, "", "none (/dev/dri/renderD*, /dev/nvidia*): no GPU can be reached; in a container it must be passed on")
		return
	}
	slices.Sort(list)
	for _, p := range list {
		name := filepath.Join("/", strings.TrimPrefix(p, strings.TrimSuffix(e.Root, "/")))
		info, err := os.Stat(p)
		if err != nil {
			e.say(areaNodes, Problem, "see who made it and why", "%s: %v", name, err)
			continue
		}
		uid, gid, ok := owner(info)
		if !ok {
			continue
		}
		group := e.group(gid)
		mode := info.Mode().Perm()
		if e.may(mode, uid, gid) {
			e.say(areaNodes, Good, "", "%s: %s may read and write it", name, e.User)
			continue
		}
		fix := fmt.Sprintf("chmod or a udev rule that lets %s read and write it", e.User)
		if mode&0o060 == 0o060 {
			fix = fmt.Sprintf("sudo usermod -aG %s %s, then log in again", group, e.User)
		}
		e.say(areaNodes, Problem, fix, "%s: %s may not read and write it: mode %04o, owner %d, group %s", name, e.User, mode, uid, group)
	}
}

// may reports whether the user may read and write.
func (e *examination) may(mode os.FileMode, owner, group int) bool {
	const readWrite = 6
	switch {
	case e.UID == 0:
		return true
	case e.UID == owner:
		return mode>>6&readWrite == readWrite
	case slices.Contains(e.GIDs, group):
		return mode>>3&readWrite == readWrite
	}
	return mode&readWrite == readWrite
}

// group is the name of a group.
func (e *examination) group(gid int) string {
	text, _ := os.ReadFile(e.path("/etc/group"))
	for _, l := range strings.Split(string(text), "\n") {
		if f := strings.Split(l, ":"); len(f) > 2 && f[2] == strconv.Itoa(gid) {
			return f[0]
		}
	}
	return strconv.Itoa(gid)
}
