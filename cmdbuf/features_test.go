package cmdbuf_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/shim"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// declaring makes a kernel whose module says that it needs a capability.
func declaring(t *testing.T, c shaders.Capability) *shaders.Kernel {
	t.Helper()
	words := spirvWords(t, "stray.spv")
	words = slices.Insert(words, 5, 2<<16|17, uint32(c))
	m := loadWords(t, words)
	m.Bindings = slices.Clone(m.Bindings)
	for i := range m.Bindings {
		if m.Bindings[i].Binding == shaders.InfoBinding {
			m.Bindings[i].Access = shaders.Read // it writes there only when told to
		}
	}
	k, err := shaders.NewKernel(shaders.KernelSpec{
		Name: "declaring", Module: m, Params: []shaders.Param{{Name: "out", DType: shaders.Uint32, Binding: 1}},
		Plan: func(_ shaders.Env, _ []shaders.Operand, p *shaders.Plan) error {
			p.Info, p.Push, p.Groups = append(p.Info, 0), append(p.Push, make([]byte, 16)...), [3]uint64{1, 1, 1}
			return nil
		},
	})
	require.NoError(t, err)
	return k
}

// A kernel that needs something optional runs where that is there, and is refused by its
// name where it is not. The built-in ones need nothing.
func TestCapabilitiesThatDevicesDifferIn(t *testing.T) {
	const subgroups, memoryModel = shaders.Capability(61), shaders.Capability(5345)
	for _, profile := range []string{shim.Plain, shim.Bare} {
		t.Run(profile, func(t *testing.T) {
			d, _ := vktest.OpenProfile(t, profile)
			s, err := cmdbuf.NewStream(d, cmdbuf.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close(ctx)) })
			x := upload(t, s, []uint32{5, 5}, 2)
			f := d.Info().Features
			ran := 0
			for c, have := range map[shaders.Capability]bool{
				shaders.CapFloat64: f.Float64, shaders.CapFloat16: f.Float16, shaders.CapInt64: f.Int64, shaders.CapInt16: f.Int16,
				shaders.CapInt8: f.Int8, shaders.CapStorageBuffer16: f.Storage16, shaders.CapStorageBuffer8: f.Storage8,
				subgroups: f.Subgroups&vk.SubgroupBasic != 0, memoryModel: false,
			} {
				err := s.Launch(declaring(t, c), x)
				if have {
					require.NoError(t, err, c)
					ran++
					continue
				}
				var e *cmdbuf.CapabilityError
				require.ErrorAs(t, err, &e, c)
				require.ErrorIs(t, err, cmdbuf.ErrUnsupported)
				require.Equal(t, c.String(), e.Capability)
				require.Equal(t, d.Info().Name, e.Device)
			}
			if profile == shim.Bare {
				require.Equal(t, 1, ran, "basic operations of subgroups are not optional")
				_, err := cmdbuf.NewStream(d, cmdbuf.Options{Addresses: true})
				require.ErrorIs(t, err, vk.ErrUnsupported)
				_, err = cmdbuf.NewStream(d, cmdbuf.Options{Profile: true})
				require.ErrorIs(t, err, vk.ErrUnsupported)
			}
			want := []uint32{5, 5}
			if ran > 0 {
				want[0] = 0
			}
			require.Equal(t, want, read(t, x), "those that ran wrote there, the others did not")
			for _, k := range shaders.Builtins() {
				require.NotContains(t, k.Module.Capabilities, subgroups, k.Name)
				for _, c := range k.Module.Capabilities {
					require.Contains(t, []shaders.Capability{shaders.CapShader, shaders.CapMatrix}, c, k.Name)
				}
			}
		})
	}
}

// The limits that a launch can pass are those of the device at hand.
func TestLaunchLimitsOfATinyDevice(t *testing.T) {
	d, driver := vktest.OpenProfile(t, shim.Tiny)
	s, err := cmdbuf.NewStream(d, cmdbuf.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(ctx)) })
	var e *vk.LimitError

	most := int(d.Limits().MaxStorageBufferRange / 4)
	require.Equal(t, 16<<10, most)
	long := zeros(t, s, most+1)
	require.ErrorAs(t, s.Launch(shaders.Copy, long, long), &e)
	require.Equal(t, "maxStorageBufferRange", e.Name)
	require.Equal(t, uint64(64<<10), e.Max)
	part, err := long.Range(0, 0, most, 1)
	require.NoError(t, err)
	require.NoError(t, s.Launch(shaders.Neg, part, part))

	k, err := shaders.NewKernel(shaders.KernelSpec{Name: "wide", Module: shaders.Nop.Module, Entry: shaders.Nop.Entry, Spec: shaders.Nop.Spec,
		Params: shaders.Nop.Params, Plan: func(_ shaders.Env, _ []shaders.Operand, p *shaders.Plan) error {
			p.Groups = [3]uint64{1, 65536, 1}
			return nil
		}})
	require.NoError(t, err)
	require.ErrorAs(t, s.Launch(k), &e)
	require.Equal(t, vk.LimitError{Name: "maxComputeWorkGroupCount[1]", Want: 65536, Max: 65535, What: e.What}, *e)
	require.Empty(t, driver.Violations())
}
