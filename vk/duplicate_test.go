package vk_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/testenv"
	"vkcompute/internal/vktest"
	"vkcompute/vk"
)

func TestFold(t *testing.T) {
	twice := func(change func(a, b *vk.DeviceInfo)) []vk.DeviceInfo {
		list := devices(vk.DiscreteGPU, vk.CPU, vk.DiscreteGPU)
		list[2].UUID = list[0].UUID
		change(&list[0], &list[2])
		return list
	}
	names := func(list []vk.DeviceInfo) (names []string) {
		for i, d := range list {
			require.Equal(t, i, d.Index)
			names = append(names, d.Driver)
		}
		return names
	}
	same := []uint32{5, 6, 5}
	for name, c := range map[string]struct {
		change func(a, b *vk.DeviceInfo)
		models []uint32
		want   []string
	}{
		"another driver and name": {func(a, b *vk.DeviceInfo) { a.Driver, b.Driver, b.Name = "one", "two", "Other" }, same, []string{"one", "cpudrv 1.2"}},
		"the first is refused":    {func(a, b *vk.DeviceInfo) { a.Driver, b.Driver, a.Refused = "one", "two", "old" }, same, []string{"two", "cpudrv 1.2"}},
		"both are refused": {func(a, b *vk.DeviceInfo) { a.Driver, b.Driver, a.Refused, b.Refused = "one", "two", "old", "old" }, same,
			[]string{"one", "cpudrv 1.2"}},
		"without a UUID": {func(a, b *vk.DeviceInfo) { a.Driver, b.Driver, a.UUID, b.UUID = "one", "two", vk.UUID{}, vk.UUID{} }, same,
			[]string{"one", "cpudrv 1.2", "two"}},
		"another model":  {func(a, b *vk.DeviceInfo) { a.Driver, b.Driver = "one", "two" }, []uint32{5, 6, 7}, []string{"one", "cpudrv 1.2", "two"}},
		"another vendor": {func(a, b *vk.DeviceInfo) { a.Driver, b.Driver, b.VendorID = "one", "two", 9 }, same, []string{"one", "cpudrv 1.2", "two"}},
		"another UUID":   {func(a, b *vk.DeviceInfo) { a.Driver, b.Driver, b.UUID[3] = "one", "two", 9 }, same, []string{"one", "cpudrv 1.2", "two"}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, names(vk.Fold(twice(c.change), c.models...))) })
	}
	require.Empty(t, vk.Fold(nil))
}

// copyManifest gives a driver another name, under which the loader takes it for another.
func copyManifest(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var m struct {
		Version string         `json:"file_format_version"`
		ICD     map[string]any `json:"ICD"`
	}
	require.NoError(t, json.Unmarshal(raw, &m))
	library := m.ICD["library_path"].(string)
	if strings.Contains(library, "/") && !filepath.IsAbs(library) {
		library = filepath.Join(filepath.Dir(file), library)
	}
	// Where the dynamic linker knows what was loaded by its path, another path is
	// another library with state of its own.
	if filepath.IsAbs(library) {
		link := filepath.Join(t.TempDir(), "lib.so")
		require.NoError(t, os.Symlink(library, link))
		library = link
	}
	m.ICD["library_path"] = library
	raw, err = json.Marshal(m)
	require.NoError(t, err)
	other := filepath.Join(t.TempDir(), "other_icd.json")
	require.NoError(t, os.WriteFile(other, raw, 0o644))
	return other
}

// Drivers that are installed twice, and a manifest that is named twice.
func TestOneDeviceListedTwice(t *testing.T) {
	env := testenv.Require(t)
	if env.DriverFiles == "" || strings.ContainsRune(env.DriverFiles, os.PathListSeparator) {
		t.Skip("the tests run on whatever the loader finds")
	}
	want, err := vk.Devices()
	require.NoError(t, err)
	seen := 0
	for name, second := range map[string]string{"the same manifest": env.DriverFiles, "a copy": copyManifest(t, env.DriverFiles)} {
		t.Run(name, func(t *testing.T) {
			drivers(t, env.DriverFiles+string(os.PathListSeparator)+second)
			n, err := vk.CountPhysical()
			require.NoError(t, err)
			seen = max(seen, n)
			list, err := vk.Devices()
			require.NoError(t, err)
			require.Len(t, list, len(want))
			for i := range list {
				require.Equal(t, want[i].UUID, list[i].UUID)
				require.Equal(t, i, list[i].Index)
			}
			o := vktest.Options(t)
			o.Device = list[0].UUID.String()
			d, err := vk.Open(o)
			require.NoError(t, err)
			require.NoError(t, copyOnce(d, 3))
			require.NoError(t, d.Close())
		})
	}
	require.Greater(t, seen, len(want), "no driver was listed twice, so nothing was tested")
}
