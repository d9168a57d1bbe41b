package doctor

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// System is what is examined.
type System struct {
	Root   string // of the file system; "/" for this machine
	Getenv func(string) string
	Home   string // the user's folder, as seen under Root
	UID    int
	GIDs   []int
	User   string
	// Machine is the processor's architecture as Go names it.
	Machine string
	// Probe loads one driver, given its manifest, and lists its devices; nil: not asked.
	Probe func(manifest string) (devices []string, err error)
}

// Level says how a check went.
type Level string

const (
	Good    Level = "ok"
	Note    Level = "note" // worth knowing, and nothing to repair
	Problem Level = "FAIL"
)

// Finding is what a check found.
type Finding struct {
	Area  string `json:"area"`
	Level Level  `json:"level"`
	Text  string `json:"text"`
	Fix   string `json:"fix,omitempty"` // what to do; every problem has one
}

// Diagnosis is everything that was found.
type Diagnosis struct {
	Findings []Finding `json:"findings"`
	// Usable says that a loader and a driver are there that could give a device.
	Usable bool `json:"usable"`
}

// The areas, in order.
const (
	areaLoader   = "loader"
	areaDrivers  = "drivers"
	areaLayers   = "layers"
	areaHardware = "graphics cards"
	areaNodes    = "device nodes"
	areaDisplay  = "display"
)

// Examine makes all checks.
func Examine(s System) Diagnosis {
	e := &examination{System: s, os: readOS(s)}
	e.folders = e.libraryFolders()
	loader := e.loader()
	drivers := e.drivers()
	e.layers()
	e.hardware()
	e.nodes()
	e.display()
	return Diagnosis{e.list, loader && drivers > 0}
}

type examination struct {
	System
	os      system
	folders []string // where libraries are searched, under Root
	list    []Finding
	found   []string // libraries of drivers that load, by file name
}

func (e *examination) say(area string, l Level, fix, format string, a ...any) {
	e.list = append(e.list, Finding{area, l, fmt.Sprintf(format, a...), fix})
}

// path is a path of the examined system on this one.
func (e *examination) path(p string) string { return filepath.Join(e.Root, p) }

// exists follows links as the examined system would.
func (e *examination) exists(p string) bool {
	_, err := os.Stat(e.resolve(p))
	return err == nil
}

// resolve follows links whose targets are paths of the examined system, and gives a path
// on this one.
func (e *examination) resolve(p string) string {
	for range 20 {
		info, err := os.Lstat(e.path(p))
		if err != nil || info.Mode()&os.ModeSymlink == 0 {
			break
		}
		to, err := os.Readlink(e.path(p))
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(p), to)
		}
		p = to
	}
	return e.path(p)
}

// libraryFolders are where the dynamic linker looks, roughly in its order.
func (e *examination) libraryFolders() []string {
	var list []string
	add := func(dirs ...string) {
		for _, d := range dirs {
			if d != "" && !slices.Contains(list, d) {
				list = append(list, d)
			}
		}
	}
	add(filepath.SplitList(e.Getenv("LD_LIBRARY_PATH"))...)
	e.linkerConfig("/etc/ld.so.conf", 0, add)
	triple := map[string]string{"amd64": "x86_64", "arm64": "aarch64", "386": "i386", "riscv64": "riscv64"}[e.Machine]
	if triple != "" {
		add("/lib/"+triple+"-linux-gnu", "/usr/lib/"+triple+"-linux-gnu")
	}
	add("/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib")
	return list
}

// linkerConfig reads the folders of ld.so.conf and what it includes.
func (e *examination) linkerConfig(file string, depth int, add func(...string)) {
	text, err := os.ReadFile(e.path(file))
	if err != nil || depth > 4 {
		return
	}
	for _, l := range strings.Split(string(text), "\n") {
		l = strings.TrimSpace(strings.SplitN(l, "#", 2)[0])
		if pattern, ok := strings.CutPrefix(l, "include "); ok {
			if !filepath.IsAbs(pattern) {
				pattern = filepath.Join(filepath.Dir(file), pattern)
			}
			more, _ := filepath.Glob(e.path(strings.TrimSpace(pattern)))
			for _, f := range more {
				e.linkerConfig(strings.TrimPrefix(f, strings.TrimSuffix(e.Root, "/")), depth+1, add)
			}
			continue
		}
		if strings.HasPrefix(l, "/") {
			add(l)
		}
	}
}

func (e *examination) loader() bool {
	const name = "libvulkan.so.1"
	at := e.findLibrary(name)
	if at == "" {
		e.say(areaLoader, Problem, e.os.install("libvulkan1", "vulkan-loader", "vulkan-icd-loader"), "%s was not found in %s", name, strings.Join(e.folders, ", "))
		return false
	}
	if err := e.loads(at, nil, 0); err != nil {
		e.say(areaLoader, Problem, "reinstall it: "+e.os.install("libvulkan1", "vulkan-loader", "vulkan-icd-loader"), "%s cannot be loaded: %v", at, err)
		return false
	}
	e.say(areaLoader, Good, "", "%s", at)
	return true
}

func (e *examination) display() {
	var have []string
	for _, v := range []string{"WAYLAND_DISPLAY", "DISPLAY"} {
		if value := e.Getenv(v); value != "" {
			have = append(have, v+"="+value)
		}
	}
	if len(have) == 0 {
		e.say(areaDisplay, Note, "", "none: this session is headless, which computing does not mind; vkbench view needs one")
		return
	}
	e.say(areaDisplay, Good, "", "%s", strings.Join(have, ", "))
}

// Write shows the findings to a person.
func (d Diagnosis) Write(w io.Writer) error {
	var b strings.Builder
	area := ""
	for _, f := range d.Findings {
		if f.Area != area {
			if area != "" {
				b.WriteString("\n")
			}
			area = f.Area
			b.WriteString(area + "\n")
		}
		fmt.Fprintf(&b, "  %-4s  %s\n", f.Level, f.Text)
		if f.Fix != "" {
			fmt.Fprintf(&b, "        → %s\n", f.Fix)
		}
	}
	n := len(d.Problems())
	switch {
	case n == 0 && d.Usable:
		b.WriteString("\nAll good.\n")
	case d.Usable:
		fmt.Fprintf(&b, "\n%s, but there is a loader and a driver to work with.\n", plural(n, "problem"))
	default:
		fmt.Fprintf(&b, "\n%s: Vulkan cannot work here before the first are solved.\n", plural(n, "problem"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Problems are the checks that failed.
func (d Diagnosis) Problems() []Finding {
	var list []Finding
	for _, f := range d.Findings {
		if f.Level == Problem {
			list = append(list, f)
		}
	}
	return list
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
