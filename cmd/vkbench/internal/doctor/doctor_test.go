package doctor

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// library is the least shared library that debug/elf reads: a header, a dynamic section
// and its strings.
func library(machine elf.Machine, needed ...string) []byte {
	names := "\x00"
	var dynamic []elf.Dyn64
	for _, n := range needed {
		dynamic = append(dynamic, elf.Dyn64{Tag: int64(elf.DT_NEEDED), Val: uint64(len(names))})
		names += n + "\x00"
	}
	dynamic = append(dynamic, elf.Dyn64{})
	const header, section = 64, 64
	at := uint64(header + 3*section)
	var b bytes.Buffer
	put := func(v any) { binary.Write(&b, binary.LittleEndian, v) }
	h := elf.Header64{Type: uint16(elf.ET_DYN), Machine: uint16(machine), Version: 1, Shoff: header, Ehsize: header, Shentsize: section, Shnum: 3, Shstrndx: 2}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	put(h)
	put(elf.Section64{})
	put(elf.Section64{Type: uint32(elf.SHT_DYNAMIC), Off: at, Size: uint64(16 * len(dynamic)), Link: 2, Entsize: 16})
	put(elf.Section64{Type: uint32(elf.SHT_STRTAB), Off: at + uint64(16*len(dynamic)), Size: uint64(len(names))})
	put(dynamic)
	b.WriteString(names)
	return b.Bytes()
}

// root is a file system made for a test.
type root struct {
	t   *testing.T
	dir string
}

func (r root) put(path string, content []byte) {
	r.t.Helper()
	p := filepath.Join(r.dir, path)
	require.NoError(r.t, os.MkdirAll(filepath.Dir(p), 0o755))
	require.NoError(r.t, os.WriteFile(p, content, 0o644))
}

func (r root) text(path, content string) { r.t.Helper(); r.put(path, []byte(content)) }

func (r root) link(path, to string) {
	r.t.Helper()
	p := filepath.Join(r.dir, path)
	require.NoError(r.t, os.MkdirAll(filepath.Dir(p), 0o755))
	require.NoError(r.t, os.Symlink(to, p))
}

func (r root) card(address, vendor, device, driver string) {
	dir := "sys/bus/pci/devices/" + address + "/"
	r.text(dir+"class", "0x030000\n")
	r.text(dir+"vendor", vendor+"\n")
	r.text(dir+"device", device+"\n")
	if driver != "" {
		r.link(dir+"driver", "../../../bus/pci/drivers/"+driver)
	}
}

const lib = "usr/lib/x86_64-linux-gnu/"

// good is a machine with a loader, a working driver of an AMD card, and a layer.
func (r root) good() {
	r.text("etc/os-release", "ID=debian\n")
	r.put(lib+"libc.so.6", library(elf.EM_X86_64, "ld-linux-x86-64.so.2"))
	r.put(lib+"libvulkan.so.1.3.239", library(elf.EM_X86_64, "libc.so.6"))
	r.link(lib+"libvulkan.so.1", "libvulkan.so.1.3.239")
	r.put(lib+"libLLVM-15.so.1", library(elf.EM_X86_64, "libc.so.6"))
	r.put(lib+"libvulkan_radeon.so", library(elf.EM_X86_64, "libLLVM-15.so.1", "libc.so.6"))
	// Absolute, and so a link of the examined system.
	r.link("lib/radeon.so", "/usr/lib/x86_64-linux-gnu/libvulkan_radeon.so")
	r.text("usr/share/vulkan/icd.d/radeon_icd.x86_64.json", `{"file_format_version":"1.0.0","ICD":{"library_path":"libvulkan_radeon.so","api_version":"1.3"}}`)
	r.text("usr/share/vulkan/explicit_layer.d/v.json", `{"layer":{"name":"VK_LAYER_KHRONOS_validation","library_path":"libVkLayer.so"}}`)
	r.put(lib+"libVkLayer.so", library(elf.EM_X86_64))
	r.card("0000:03:00.0", "0x1002", "0x73bf", "amdgpu")
	r.text("etc/group", "root:x:0:\nrender:x:105:\n")
	r.text("dev/dri/renderD128", "")
	require.NoError(r.t, os.Chmod(filepath.Join(r.dir, "dev/dri/renderD128"), 0o666))
}

// examine gives the diagnosis, without what differs between machines.
func (r root) examine(env map[string]string, probe func(string) ([]string, error)) (Diagnosis, string) {
	r.t.Helper()
	d := Examine(System{Root: r.dir, Getenv: func(v string) string { return env[v] }, Home: "/home/somebody", UID: 1234, GIDs: []int{1234}, User: "somebody", Machine: "amd64", Probe: probe})
	var b bytes.Buffer
	require.NoError(r.t, d.Write(&b))
	for _, p := range d.Problems() {
		require.NotEmpty(r.t, p.Fix, "what to do about %q", p.Text)
	}
	require.NotContains(r.t, b.String(), r.dir, "paths are those of the examined system")
	return d, b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestEverythingMissing(t *testing.T) {
	d, text := root{t, t.TempDir()}.examine(nil, nil)
	require.False(t, d.Usable)
	golden(t, "missing.txt", text)
}

func TestGood(t *testing.T) {
	r := root{t, t.TempDir()}
	r.good()
	d, text := r.examine(map[string]string{"DISPLAY": ":0"}, func(string) ([]string, error) { return []string{"A card (discrete)"}, nil })
	require.True(t, d.Usable)
	require.Empty(t, d.Problems())
	golden(t, "good.txt", text)
}

func TestPartly(t *testing.T) {
	r := root{t, t.TempDir()}
	r.good()
	icd := func(name, library string) {
		r.text("etc/vulkan/icd.d/"+name+".json", `{"ICD":{"library_path":"`+library+`"}}`)
	}
	// In the order of their names.
	icd("a_absent", "libabsent.so")
	icd("b_lvp_needs", "libvulkan_lvp.so")
	r.put(lib+"libvulkan_lvp.so", library(elf.EM_X86_64, "libLLVM-15.so.1", "libLLVM-19.so.1", "libgone.so.2"))
	icd("c_deep", "/opt/driver/lib.so")
	r.put("opt/driver/lib.so", library(elf.EM_X86_64, "libmiddle.so"))
	r.put(lib+"libmiddle.so", library(elf.EM_X86_64, "libvanished.so"))
	icd("d_elsewhere", "../lib/driver.so")
	icd("e_other_processor", "libarm.so")
	r.put(lib+"libarm.so", library(elf.EM_AARCH64))
	icd("f_text", "libtext.so")
	r.text(lib+"libtext.so", "not a library")
	icd("g_empty", "libempty.so")
	r.text(lib+"libempty.so", "")
	r.text("etc/vulkan/icd.d/h_broken.json", `{"ICD":`)
	r.text("etc/vulkan/icd.d/i_nothing.json", `{"layer":{}}`)
	r.link("etc/vulkan/icd.d/j_dangling.json", "/nowhere.json")
	icd("nvidia_icd", "libGLX_nvidia.so.0")
	r.text("usr/share/vulkan/implicit_layer.d/overlay.json", `{"layers":[{"name":"VK_LAYER_overlay","library_path":"liboverlay.so"}]}`)
	r.card("0000:04:00.0", "0x10de", "0x2330", "nvidia")
	r.card("0000:05:00.0", "0x8086", "0x56a0", "")
	r.card("0000:06:00.0", "0x1af4", "0x1050", "virtio-pci")
	require.NoError(t, os.Chmod(filepath.Join(r.dir, "dev/dri/renderD128"), 0o660))
	d, text := r.examine(map[string]string{"VK_INSTANCE_LAYERS": "VK_LAYER_overlay"}, nil)
	require.True(t, d.Usable, "one driver is good")
	text = regexp.MustCompile(`owner \d+, group \S+`).ReplaceAllString(text, "owner X, group Y")
	text = regexp.MustCompile(`-aG \S+`).ReplaceAllString(text, "-aG Y")
	golden(t, "partly.txt", text)
}

func TestProbe(t *testing.T) {
	r := root{t, t.TempDir()}
	r.good()
	d, text := r.examine(nil, func(m string) ([]string, error) {
		require.Equal(t, "/usr/share/vulkan/icd.d/radeon_icd.x86_64.json", m)
		return nil, errors.New("it ended the process: signal: segmentation fault")
	})
	require.False(t, d.Usable)
	require.Contains(t, text, "loading it failed: it ended the process")
	_, text = r.examine(nil, func(string) ([]string, error) { return nil, nil })
	require.Contains(t, text, "loads, and has no device on this machine")
}

// The variables of the loader replace, add to, and hide what is installed.
func TestVariables(t *testing.T) {
	r := root{t, t.TempDir()}
	r.good()
	d, text := r.examine(map[string]string{"VK_DRIVER_FILES": "/gone.json"}, nil)
	require.False(t, d.Usable)
	require.Contains(t, text, "VK_DRIVER_FILES is set: no driver but those it names is used")
	require.Contains(t, text, "/gone.json: there is no such file")
	require.Contains(t, text, "correct or unset VK_DRIVER_FILES")
	d, _ = r.examine(map[string]string{"VK_ICD_FILENAMES": "/usr/share/vulkan/icd.d"}, nil)
	require.True(t, d.Usable, "a folder of manifests")
	r.text("opt/more.json", `{"ICD":{"library_path":"/usr/lib/x86_64-linux-gnu/libvulkan_radeon.so"}}`)
	_, text = r.examine(map[string]string{"VK_ADD_DRIVER_FILES": "/opt/more.json"}, nil)
	require.Contains(t, text, "/opt/more.json")
	require.Contains(t, text, "/usr/share/vulkan/icd.d/radeon_icd")
	_, text = r.examine(map[string]string{"LD_LIBRARY_PATH": "/opt/lib", "VK_LOADER_DRIVERS_DISABLE": "*"}, nil)
	require.Contains(t, text, "VK_LOADER_DRIVERS_DISABLE=* may keep the loader")
}

func TestLinkerConfig(t *testing.T) {
	r := root{t, t.TempDir()}
	r.text("etc/ld.so.conf", "include ld.so.conf.d/*.conf # more\n/opt/last\n")
	r.text("etc/ld.so.conf.d/a.conf", "# none\n/opt/first\n")
	r.put("opt/first/libvulkan.so.1", library(elf.EM_X86_64))
	_, text := r.examine(nil, nil)
	require.Contains(t, text, "ok    /opt/first/libvulkan.so.1")
}

func TestPermissions(t *testing.T) {
	for _, c := range []struct {
		uid, owner, group int
		gids              []int
		mode              os.FileMode
		want              bool
	}{
		{0, 7, 7, nil, 0o000, true}, {5, 5, 7, nil, 0o600, true}, {5, 5, 7, nil, 0o060, false}, {5, 6, 7, []int{7}, 0o660, true},
		{5, 6, 7, []int{8}, 0o660, false}, {5, 6, 7, []int{8}, 0o666, true}, {5, 6, 7, []int{7}, 0o606, false}, {5, 6, 7, nil, 0o004, false},
	} {
		e := &examination{System: System{UID: c.uid, GIDs: c.gids}}
		require.Equal(t, c.want, e.may(c.mode, c.owner, c.group), "%+v", c)
	}
}

func TestAdviceByDistribution(t *testing.T) {
	for id, want := range map[string]string{"ID=ubuntu\nID_LIKE=debian": "sudo apt-get install a", "ID=\"rocky\"\nID_LIKE=\"rhel fedora\"": "sudo dnf install b", "ID=arch": "sudo pacman -S c", "ID=other": "install Debian and Ubuntu: a, Fedora: b, Arch: c"} {
		r := root{t, t.TempDir()}
		r.text("etc/os-release", id)
		require.Equal(t, want, readOS(System{Root: r.dir}).install("a", "b", "c"))
	}
}
