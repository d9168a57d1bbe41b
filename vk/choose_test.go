package vk_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"vkcompute/internal/testenv"
	"vkcompute/internal/vktest"
	"vkcompute/vk"
)

// devices makes a list with one made-up device per type given.
func devices(types ...vk.DeviceType) []vk.DeviceInfo {
	var list []vk.DeviceInfo
	for i, t := range types {
		d := vk.DeviceInfo{Index: i, Type: t, Name: "Maker " + strings.ToUpper(t.String()[:1]) + t.String()[1:], Driver: t.String() + "drv 1.2"}
		d.UUID[0], d.UUID[15] = byte(i+1), 0xab
		d.Heaps = []vk.Heap{{Size: 8 << 30, DeviceLocal: true}, {Size: 64 << 30}}
		list = append(list, d)
	}
	return list
}

func TestChooseByKind(t *testing.T) {
	order := []vk.DeviceType{vk.DiscreteGPU, vk.IntegratedGPU, vk.VirtualGPU, vk.OtherDevice, vk.CPU}
	for better, a := range order {
		for _, b := range order[better+1:] {
			for _, list := range [][]vk.DeviceInfo{devices(a, b), devices(b, a)} {
				got, why, err := vk.Choose(list, "")
				require.NoError(t, err)
				require.Equal(t, a, got.Type, "of %v and %v", a, b)
				require.Contains(t, why, "best of 2")
			}
		}
	}
}

func TestChooseTheOnlyOne(t *testing.T) {
	for _, kind := range []vk.DeviceType{vk.DiscreteGPU, vk.CPU} {
		got, why, err := vk.Choose(devices(kind), "")
		require.NoError(t, err)
		require.Equal(t, kind, got.Type)
		require.Contains(t, why, "the only device")
		require.Equal(t, kind == vk.CPU, strings.Contains(why, "runs on the CPU"), why)
	}
}

func TestChooseByMemory(t *testing.T) {
	list := devices(vk.DiscreteGPU, vk.DiscreteGPU, vk.DiscreteGPU)
	list[0].Heaps[1].Size = 1 << 40 // of the host: no matter
	list[1].Heaps[0].Size = 16 << 30
	got, _, err := vk.Choose(list, "")
	require.NoError(t, err)
	require.Equal(t, 1, got.Index)

	// Two heaps of one device count together.
	list[2].Heaps = []vk.Heap{{Size: 12 << 30, DeviceLocal: true}, {Size: 12 << 30, DeviceLocal: true}}
	got, _, err = vk.Choose(list, "discrete")
	require.NoError(t, err)
	require.Equal(t, 2, got.Index)

	// Equal ones: the first.
	got, _, err = vk.Choose(devices(vk.DiscreteGPU, vk.DiscreteGPU), "")
	require.NoError(t, err)
	require.Equal(t, 0, got.Index)
}

func TestChooseBySelector(t *testing.T) {
	list := devices(vk.DiscreteGPU, vk.IntegratedGPU, vk.CPU, vk.DiscreteGPU)
	list[3].Name = "GeFoo 4090"
	for _, c := range []struct {
		selector string
		index    int
		why      string
	}{
		{"2", 2, "index 2"}, {" 0 ", 0, "index 0"}, {"cpu", 2, "type cpu"}, {"CPU", 2, "type cpu"}, {"integrated", 1, "type integrated"},
		{"discrete", 0, "type discrete, best of 2"}, {"gefoo", 3, `"gefoo"`}, {"4090", 3, `"4090"`}, {"FOO 40", 3, ""},
		{"integrateddrv", 1, ""}, {"maker", 0, "best of 3"},
		{list[1].UUID.String(), 1, "the only match"}, {strings.ToUpper(list[2].UUID.String()), 2, "the only match"},
	} {
		t.Run(c.selector, func(t *testing.T) {
			got, why, err := vk.Choose(list, c.selector)
			require.NoError(t, err)
			require.Equal(t, c.index, got.Index)
			require.Contains(t, why, c.why)
		})
	}
}

func TestChooseUnknownNamesWhatThereIs(t *testing.T) {
	list := devices(vk.DiscreteGPU, vk.CPU)
	list[1].Refused = "it is too old"
	for _, selector := range []string{"nosuch", "7", "-1", "virtual", "01000000-0000-0000-0000-000000000000"} {
		_, _, err := vk.Choose(list, selector)
		require.ErrorIs(t, err, vk.ErrNoDevice)
		require.ErrorContains(t, err, selector)
		require.ErrorContains(t, err, `0: "Maker Discrete" (discrete)`)
		require.ErrorContains(t, err, `1: "Maker Cpu" (cpu), refused: it is too old`)
	}
	_, _, err := vk.Choose(nil, "")
	require.ErrorIs(t, err, vk.ErrNoDevice)
}

func TestChooseSkipsRefused(t *testing.T) {
	list := devices(vk.DiscreteGPU, vk.CPU)
	list[0].Refused = "it has Vulkan 1.1.0, 1.2 is needed"
	got, why, err := vk.Choose(list, "")
	require.NoError(t, err)
	require.Equal(t, vk.CPU, got.Type)
	require.Contains(t, why, "the only one that can be used")

	_, _, err = vk.Choose(list, "discrete")
	require.ErrorIs(t, err, vk.ErrNoDevice)
	require.ErrorContains(t, err, list[0].Refused)

	list[1].Refused = "it has no queue that computes"
	_, _, err = vk.Choose(list, "")
	require.ErrorIs(t, err, vk.ErrNoDevice)
	for _, d := range list {
		require.ErrorContains(t, err, d.Name)
		require.ErrorContains(t, err, d.Refused)
	}
}

// Whatever the list, an answer is usable, and no usable device is of a better kind.
func TestChooseProperty(t *testing.T) {
	rank := map[vk.DeviceType]int{vk.DiscreteGPU: 0, vk.IntegratedGPU: 1, vk.VirtualGPU: 2, vk.OtherDevice: 3, vk.CPU: 4}
	rapid.Check(t, func(t *rapid.T) {
		kinds := rapid.SliceOfN(rapid.SampledFrom([]vk.DeviceType{vk.OtherDevice, vk.IntegratedGPU, vk.DiscreteGPU, vk.VirtualGPU, vk.CPU}), 0, 6).Draw(t, "kinds")
		list := devices(kinds...)
		usable := 0
		for i := range list {
			list[i].Heaps[0].Size = rapid.Uint64Range(0, 3).Draw(t, "memory")
			if rapid.Bool().Draw(t, "refused") {
				list[i].Refused = "no"
			} else {
				usable++
			}
		}
		got, why, err := vk.Choose(list, "")
		if usable == 0 {
			require.ErrorIs(t, err, vk.ErrNoDevice)
			return
		}
		require.NoError(t, err)
		require.NotEmpty(t, why)
		require.Empty(t, got.Refused)
		for _, d := range list {
			if d.Refused != "" {
				continue
			}
			if r := rank[d.Type] - rank[got.Type]; r < 0 || r == 0 && d.Heaps[0].Size > got.Heaps[0].Size {
				t.Fatalf("%v is better than %v", d, got)
			}
		}
	})
}

// What a driver says decides whether the library runs on the device, and on which queues.
func TestRefusedDevices(t *testing.T) {
	good := func() *vk.Physical {
		return &vk.Physical{
			APIVersion: 1<<22 | 2<<12, TimelineSemaphore: true, MaxDynamicStorageBuffers: 4,
			QueueFamilies: []vk.PhysicalFamily{{Flags: 3, Count: 1, TimestampBits: 36}, {Flags: 2, Count: 2, TimestampBits: 48}, {Flags: 4, Count: 1}},
		}
	}
	i := vk.NewInfo(good())
	require.Empty(t, i.Refused)
	require.Equal(t, uint32(48), i.Limits.TimestampBits, "the queue that computes and draws nothing")
	require.True(t, i.Families[0].Transfer, "computing implies transfers")
	require.Equal(t, "1.2.0", i.API.String())
	require.Equal(t, uint64(1), i.Limits.NonCoherentAtomSize, "0 must never divide")

	for name, c := range map[string]struct {
		spoil func(p *vk.Physical)
		want  string
	}{
		"old":          {func(p *vk.Physical) { p.APIVersion = 1<<22 | 1<<12 | 300 }, "1.1.300"},
		"variant":      {func(p *vk.Physical) { p.APIVersion = 1<<29 | 1<<22 }, "1.2 is needed"},
		"no timeline":  {func(p *vk.Physical) { p.TimelineSemaphore = false }, "timeline"},
		"no compute":   {func(p *vk.Physical) { p.QueueFamilies = p.QueueFamilies[2:] }, "queue"},
		"no queues":    {func(p *vk.Physical) { p.QueueFamilies[0].Count, p.QueueFamilies[1].Count = 0, 0 }, "queue"},
		"no dynamic":   {func(p *vk.Physical) { p.MaxDynamicStorageBuffers = 0 }, "dynamic offset"},
		"nothing":      {func(p *vk.Physical) { *p = vk.Physical{} }, "0.0.0"},
		"only version": {func(p *vk.Physical) { *p = vk.Physical{APIVersion: p.APIVersion} }, "timeline"},
	} {
		t.Run(name, func(t *testing.T) {
			p := good()
			c.spoil(p)
			require.Contains(t, vk.NewInfo(p).Refused, c.want)
		})
	}
}

func TestDeviceVariable(t *testing.T) {
	o := vktest.Options(t)
	t.Setenv(vk.DeviceVariable, "no such device")
	_, err := vk.Open(o)
	require.ErrorIs(t, err, vk.ErrNoDevice)
	require.ErrorContains(t, err, vk.DeviceVariable)
	require.ErrorContains(t, err, "no such device")

	// The option wins over the variable.
	o.Device = "0"
	d, err := vk.Open(o)
	require.NoError(t, err)
	require.Equal(t, 0, d.Info().Index)
	require.NotContains(t, d.Why(), vk.DeviceVariable)
	require.NoError(t, d.Close())

	o.Device = ""
	t.Setenv(vk.DeviceVariable, "0")
	d, err = vk.Open(o)
	require.NoError(t, err)
	require.Contains(t, d.Why(), vk.DeviceVariable)
	require.NoError(t, d.Close())
}

func TestDevices(t *testing.T) {
	testenv.Require(t)
	list, err := vk.Devices()
	require.NoError(t, err)
	require.NotEmpty(t, list)
	for n, d := range list {
		require.Equal(t, n, d.Index)
		require.NotEmpty(t, d.Name)
		require.NotEmpty(t, d.Driver)
		require.NotEmpty(t, d.Heaps)
		for _, m := range d.MemoryTypes {
			require.Less(t, m.Heap, len(d.Heaps))
		}
		got, _, err := vk.Choose(list, d.UUID.String())
		if d.Refused == "" {
			require.NoError(t, err)
			require.Equal(t, d.UUID, got.UUID)
		}
	}
}
