package cmdbuf_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/shim"
	"vkcompute/internal/testenv"
	"vkcompute/internal/vktest"
	"vkcompute/pool"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// stray is a kernel that writes where it is told to.
type stray struct {
	kernel *shaders.Kernel
	// The push constants of the next launch, and its groups.
	what, first, stride, value, groups uint32
}

// args are those of the next launch.
func (k *stray) args(out cmdbuf.Arg) []cmdbuf.Arg {
	list := []cmdbuf.Arg{out}
	for _, v := range []uint32{k.what, k.first, k.stride, k.value, k.groups} {
		list = append(list, cmdbuf.Uint32(v))
	}
	return list
}

const (
	strayData = iota
	strayInfo
	strayRead
)

// spirvWords reads a module of testdata.
func spirvWords(t testing.TB, name string) []uint32 {
	t.Helper()
	code, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	words := make([]uint32, len(code)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(code[4*i:])
	}
	return words
}

func loadWords(t testing.TB, words []uint32) *shaders.Module {
	t.Helper()
	var code []byte
	for _, w := range words {
		code = binary.LittleEndian.AppendUint32(code, w)
	}
	m, err := shaders.Load(code)
	require.NoError(t, err)
	return m
}

// newStray makes the kernel. Its module lies: it declares its info readonly.
func newStray(t testing.TB) *stray {
	const memberDecorate, coherent, nonWritable = 4<<16 | 72, 23, 24
	words := spirvWords(t, "stray.spv")
	lies := 0
	for i := 5; i < len(words); i += int(words[i] >> 16) {
		if words[i] == memberDecorate && words[i+3] == coherent {
			words[i+3] = nonWritable
			lies++
		}
	}
	require.Equal(t, 1, lies)
	params := []shaders.Param{{Name: "out", DType: shaders.Uint32, Binding: 1}}
	for _, name := range []string{"what", "first", "stride", "value", "groups"} {
		params = append(params, shaders.Param{Name: name, Kind: shaders.ScalarParam, DType: shaders.Uint32})
	}
	k, err := shaders.NewKernel(shaders.KernelSpec{
		Name: "stray", Module: loadWords(t, words), Params: params,
		Plan: func(_ shaders.Env, ops []shaders.Operand, p *shaders.Plan) error {
			p.Info = append(p.Info, 7, 7, 7, 7)
			for _, o := range ops[1:5] {
				p.Push = binary.NativeEndian.AppendUint32(p.Push, uint32(o.Bits))
			}
			p.Groups = [3]uint64{ops[5].Bits, 1, 1}
			return nil
		},
	})
	require.NoError(t, err)
	return &stray{kernel: k, stride: 1, groups: 1}
}

// untrustedStream opens a device for untrusted shaders.
func untrustedStream(t *testing.T, profile string, o cmdbuf.Options) *cmdbuf.Stream {
	t.Helper()
	driver := vktest.NewDriver(t, profile)
	options := vktest.Options(t)
	options.Untrusted = true
	d, err := driver.Open(options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	s, err := cmdbuf.NewStream(d, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(ctx)) })
	return s
}

// street is a row of tensors of one page, or of pages of the same size.
type street []*cmdbuf.Tensor[uint32]

const house = 64 // elements

func newStreet(t *testing.T, s *cmdbuf.Stream) street {
	list := make(street, 9)
	for i := range list {
		host := make([]uint32, house)
		for n := range host {
			host[n] = uint32(1000*i + n)
		}
		list[i] = upload(t, s, host, house)
	}
	return list
}

// damaged lists the neighbours whose elements are no longer what they were.
func (list street) damaged(t *testing.T, s *cmdbuf.Stream, own int) (bad []int) {
	t.Helper()
	require.NoError(t, s.Sync(ctx)) // who reads a neighbour need not wait for the kernel
	for i, x := range list {
		if i == own {
			continue
		}
		for n, v := range read(t, x) {
			if v != uint32(1000*i+n) {
				bad = append(bad, i)
				break
			}
		}
	}
	return bad
}

// far are indices whose byte offsets, at 32 bits, wrap to before the binding or into it.
var far = []uint32{1<<32 - 1024, 1 << 30, 1<<30 - 1024, 1 << 31, 1<<31 - 1024, 3 << 30, 3<<30 - 1024, 1 << 20, 1 << 28}

// misbehave launches the kernel in every way there is.
func misbehave(t *testing.T, k *stray, launch func(*shaders.Kernel, ...cmdbuf.Arg) error, x *cmdbuf.Tensor[uint32]) {
	for _, what := range []uint32{strayData, strayInfo} {
		for _, first := range append([]uint32{0}, far...) {
			k.what, k.first, k.stride, k.groups, k.value = what, first, 1, 2048, 0xdead
			require.NoError(t, launch(k.kernel, k.args(x)...))
		}
		k.first, k.stride, k.groups = 0, 0x10001, 1<<15 // all over the 32 bits of an index
		require.NoError(t, launch(k.kernel, k.args(x)...))
	}
	k.what, k.first, k.groups = strayRead, 1<<29, 1
	require.NoError(t, launch(k.kernel, k.args(x)...))
}

// A driver that writes into neighbours, without protection: otherwise the tests below
// would prove nothing.
func TestStrayWritesReachNeighboursOfTheTrusting(t *testing.T) {
	if testenv.Require(t).Driver != testenv.SwiftShader {
		t.Skip("this driver holds shaders to the binding, whether asked to or not")
	}
	s, k := newStream(t, cmdbuf.Options{}), newStray(t)
	require.Equal(t, vk.NotRobust, s.Device().Robustness())
	list := newStreet(t, s)
	require.NoError(t, s.Sync(ctx))
	k.first, k.groups, k.value = 0, 2*house, 0xdead
	require.NoError(t, s.Launch(k.kernel, k.args(list[4])...))
	require.NotEmpty(t, list.damaged(t, s, 4))
}

func TestStrayWritesReachNobody(t *testing.T) {
	for _, profile := range []string{shim.Plain, shim.Bare} {
		t.Run(profile, func(t *testing.T) {
			s, k := untrustedStream(t, profile, cmdbuf.Options{Pools: pool.ExclusivePages()}), newStray(t)
			list := newStreet(t, s)
			// What others have in their infos shows in what they compute. Theirs come after the
			// kernel's, since it writes upwards.
			require.NoError(t, s.Launch(k.kernel, k.args(list[4])...))
			sum := zeros(t, s, 3, 1)
			ones := upload(t, s, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
			flipped, err := ones.Transpose(0, 1)
			require.NoError(t, err)
			total := func(c interface {
				Launch(*shaders.Kernel, ...cmdbuf.Arg) error
			}) error {
				return c.Launch(shaders.Sum, flipped, sum)
			}
			g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error { return total(c) })
			require.NoError(t, err)
			defer g.Close()

			check := func() {
				t.Helper()
				require.Empty(t, list.damaged(t, s, 4))
				// What was there before must not stand for a result.
				require.NoError(t, sum.Write(make([]float32, 3)))
				require.NoError(t, total(s))
				require.Equal(t, []float32{5, 7, 9}, read(t, sum))
				require.NoError(t, sum.Write(make([]float32, 3)))
				require.NoError(t, g.Replay())
				require.Equal(t, []float32{5, 7, 9}, read(t, sum))
				require.NoError(t, s.Validate())
			}
			check()
			misbehave(t, k, s.Launch, list[4])
			check()
			bad, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
				misbehave(t, k, c.Launch, list[4])
				return nil
			})
			require.NoError(t, err)
			require.NoError(t, bad.Replay())
			check()
			require.NoError(t, bad.Close())
			// With a parameter, the info is one that changes.
			bad, err = s.Capture(ctx, func(c *cmdbuf.Capture) error {
				k.what, k.first, k.stride, k.groups = strayInfo, 0, 1, 4096
				return c.Launch(k.kernel, k.args(cmdbuf.Param("out", list[4]))...)
			})
			require.NoError(t, err)
			require.NoError(t, bad.Replay())
			require.NoError(t, bad.Set("out", list[4]))
			require.NoError(t, bad.Replay())
			check()
			require.NoError(t, bad.Close())

			// It does work on what it was given.
			k.what, k.first, k.stride, k.groups, k.value = strayData, 3, 1, 2, 42
			require.NoError(t, s.Launch(k.kernel, k.args(list[4])...))
			require.Equal(t, []uint32{42, 42}, read(t, list[4])[3:5])
		})
	}
}

// On shared pages the binding is what holds such a kernel, where the device can; where it
// cannot, the launch is refused, and nothing has changed.
func TestUntrustedKernelsOnSharedPages(t *testing.T) {
	for _, profile := range []string{shim.Plain, shim.Bare} {
		t.Run(profile, func(t *testing.T) {
			s, k := untrustedStream(t, profile, cmdbuf.Options{}), newStray(t)
			list := newStreet(t, s)
			require.Equal(t, list[3].Slice().Page(), list[4].Slice().Page(), "they are neighbours")
			if s.Device().Robustness() == vk.RobustBinding {
				misbehave(t, k, s.Launch, list[4])
				require.Empty(t, list.damaged(t, s, 4))
				return
			}
			require.Equal(t, vk.RobustBuffer, s.Device().Robustness())
			k.first, k.groups, k.value = 0, 2*house, 0xdead
			err := s.Launch(k.kernel, k.args(list[4])...)
			require.ErrorIs(t, err, cmdbuf.ErrUntrusted)
			require.ErrorContains(t, err, "pool.ExclusivePages()")
			var wrong *cmdbuf.ArgumentError
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, "out", wrong.Param)
			_, err = s.Capture(ctx, func(c *cmdbuf.Capture) error { return c.Launch(k.kernel, k.args(list[4])...) })
			require.ErrorIs(t, err, cmdbuf.ErrUntrusted)
			require.Empty(t, list.damaged(t, s, -1))

			// The library's own kernels need no such pages.
			require.NoError(t, s.Launch(shaders.Copy, list[4], list[5]))
			require.Equal(t, read(t, list[4]), read(t, list[5]))

			// Pages of its own for the tensors alone are not enough: there is the info.
			mixed := pool.SubSlices()
			mixed.Pools = pool.ExclusivePages().Pools
			half := untrustedStream(t, profile, cmdbuf.Options{Pools: mixed})
			x := upload(t, half, make([]uint32, house), house)
			err = half.Launch(k.kernel, k.args(x)...)
			require.ErrorIs(t, err, cmdbuf.ErrUntrusted)
			require.ErrorContains(t, err, "staging")
			require.NoError(t, half.Validate())
		})
	}
}

// Whatever such a kernel declares to do with its bytes, and to which of them, the next
// command on that memory waits.
func TestUntrustedKernelsAreOrderedByTheWholeBuffer(t *testing.T) {
	for _, profile := range []string{shim.Plain, shim.Bare} {
		t.Run(profile, func(t *testing.T) {
			s, k := untrustedStream(t, profile, cmdbuf.Options{Pools: pool.ExclusivePages()}), newStray(t)
			x := upload(t, s, make([]uint32, house), house)
			front, err := x.Range(0, 0, 16, 1)
			require.NoError(t, err)
			back, err := x.Range(0, 32, 48, 1)
			require.NoError(t, err)
			k.what, k.first, k.groups = strayData, 0, 1
			g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
				if err := c.Launch(k.kernel, k.args(front)...); err != nil {
					return err
				}
				return c.Launch(shaders.Fill, cmdbuf.Uint32(1), back)
			})
			require.NoError(t, err)
			defer g.Close()
			barriers := 0
			if s.Device().Robustness() == vk.RobustBuffer {
				barriers = 1
			}
			require.Len(t, g.Explain().Barriers, barriers)
		})
	}
}

// Addresses reach everything, so no untrusted kernel may have them.
func TestUntrustedKernelsHaveNoAddresses(t *testing.T) {
	addressed, err := shaders.Add.Module.Addressed()
	require.NoError(t, err)
	alien := func(m *shaders.Module) *shaders.Kernel {
		k, err := shaders.NewKernel(shaders.KernelSpec{Name: "alien", Module: m, Entry: shaders.Add.Entry, Spec: shaders.Add.Spec,
			Plan: func(_ shaders.Env, _ []shaders.Operand, p *shaders.Plan) error {
				p.Push, p.Groups = make([]byte, m.PushSize), [3]uint64{1, 1, 1}
				return nil
			}})
		require.NoError(t, err)
		return k
	}
	s := untrustedStream(t, shim.Plain, cmdbuf.Options{})
	require.ErrorIs(t, s.Launch(alien(addressed.Module)), cmdbuf.ErrUntrusted)

	// A module that leaves the capability out is still seen through.
	const capability, physicalAddresses = 2<<16 | 17, 5347
	var quiet []uint32
	words := addressed.Module.Words
	quiet = append(quiet, words[:5]...)
	for i := 5; i < len(words); i += int(words[i] >> 16) {
		if words[i] != capability || words[i+1] != physicalAddresses {
			quiet = append(quiet, words[i:i+int(words[i]>>16)]...)
		}
	}
	require.Less(t, len(quiet), len(words))
	m := *addressed.Module
	m.Words, m.Capabilities = quiet, []shaders.Capability{shaders.CapShader}
	require.ErrorIs(t, s.Launch(alien(&m)), cmdbuf.ErrUntrusted)
	m.Words = quiet[:len(quiet)-1]
	require.ErrorIs(t, s.Launch(alien(&m)), cmdbuf.ErrUntrusted)

	// A stream that passes addresses gives such a kernel descriptors all the same.
	if !s.Device().Info().Features.DeviceAddress {
		return
	}
	by, err := cmdbuf.NewStream(s.Device(), cmdbuf.Options{Addresses: true, Pools: pool.ExclusivePages()})
	require.NoError(t, err)
	defer func() { require.NoError(t, by.Close(ctx)) }()
	k := newStray(t)
	x, err := cmdbuf.Upload(by, make([]uint32, house), house)
	require.NoError(t, err)
	defer x.Close()
	k.first, k.groups, k.value = 2, 1, 9
	require.NoError(t, by.Launch(k.kernel, k.args(x)...))
	require.Equal(t, uint32(9), read(t, x)[2])
	require.EqualValues(t, 1, by.Stats().SetsMade)
}
