package cmdbuf_test

import (
	"embed"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/shim"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
	"vkcompute/shaders/wgsl"
	"vkcompute/vk"
)

//go:embed testdata/user/*.spv
var userShaders embed.FS

func userKernel(t testing.TB, name string, params ...shaders.Param) *shaders.Kernel {
	t.Helper()
	k, err := shaders.LoadKernelFS(userShaders, "testdata/user/"+name+".spv", params...)
	require.NoError(t, err)
	require.Equal(t, name, k.Name)
	return k
}

type joint struct {
	Axis  [3]float32
	Angle float32
}

// fieldsParticle has the layout of fields.comp's Particle.
type fieldsParticle struct {
	Mass     float32
	_        [12]byte
	Position [3]float32
	_        [4]byte
	Charge   [2]float32
	Kind     int32
	Flags    uint32
	Color    [4]float32
	Turn     [3][4]float32
	History  [5]float32
	_        [12]byte
	Joints   [2]joint
	Cell     [3]int32
	_        [4]byte
	Pair     [2]uint32
	_        [8]byte
}

func (p *fieldsParticle) flat() (v [39]float32) {
	list := append(append([]float32{p.Mass}, p.Position[:]...), p.Charge[:]...)
	list = append(append(list, float32(p.Kind), float32(p.Flags)), p.Color[:]...)
	for _, c := range p.Turn {
		list = append(list, c[:3]...)
	}
	list = append(list, p.History[:]...)
	for _, j := range p.Joints {
		list = append(append(list, j.Axis[:]...), j.Angle)
	}
	for _, c := range p.Cell {
		list = append(list, float32(c))
	}
	copy(v[:], append(list, float32(p.Pair[0]), float32(p.Pair[1])))
	return v
}

func (p fieldsParticle) moved() fieldsParticle {
	for i, d := range []float32{p.Charge[0], p.Charge[1], p.Mass} {
		p.Position[i] += d
		p.Cell[i] = -p.Cell[i]
	}
	var turned [3][4]float32
	for c := range 3 {
		for r := range 3 {
			turned[c][r] = p.Turn[r][c]
		}
	}
	p.Turn = turned
	return p
}

func particles(n int) []fieldsParticle {
	rng := rand.New(rand.NewPCG(1, 2))
	f := func() float32 { return float32(rng.IntN(2000)-1000) / 8 } // exact in every sum here
	list := make([]fieldsParticle, n)
	for i := range list {
		p := &list[i]
		p.Mass, p.Kind, p.Flags = f(), int32(rng.IntN(100)-50), uint32(rng.IntN(1000))
		for k := range 3 {
			p.Position[k], p.Cell[k] = f(), int32(rng.IntN(100)-50)
			for r := range 3 {
				p.Turn[k][r] = f()
			}
		}
		for k := range p.Color {
			p.Color[k] = f()
		}
		for k := range p.History {
			p.History[k] = f()
		}
		for k := range 2 {
			p.Charge[k], p.Pair[k] = f(), uint32(rng.IntN(1000))
			p.Joints[k] = joint{[3]float32{f(), f(), f()}, f()}
		}
	}
	return list
}

// Every field of a struct arrives where the shader looks for it and comes back from where
// the shader put it: at once and in a graph, through descriptors and addresses, from
// whole tensors and from parts whose beginnings no binding can have.
func TestStructsReachTheShaderFieldByField(t *testing.T) {
	require.NoError(t, shaders.Std430(reflect.TypeFor[fieldsParticle]()))
	k := userKernel(t, "fields")
	require.Equal(t, shaders.Composite, k.Params[0].DType)
	for _, addresses := range []bool{false, true} {
		t.Run(map[bool]string{false: "descriptors", true: "addresses"}[addresses], func(t *testing.T) {
			d := vktest.Open(t)
			if addresses && !d.Info().Features.DeviceAddress {
				t.Skip("the device has no addresses")
			}
			s, err := cmdbuf.NewStream(d, cmdbuf.Options{Addresses: addresses})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close(ctx)) })
			const n = 61
			host := particles(n)
			in := upload(t, s, host, n)
			flat := upload(t, s, make([][39]float32, n), n)
			out := upload(t, s, make([]fieldsParticle, n), n)
			check := func(from, to int) {
				t.Helper()
				parts, moved := read(t, flat), read(t, out)
				for i := range n {
					if i < from || i >= to {
						require.Zero(t, parts[i])
						require.Zero(t, moved[i])
						continue
					}
					require.Equal(t, host[i].flat(), parts[i], "%d", i)
					require.Equal(t, host[i].moved(), moved[i], "%d", i)
				}
				require.NoError(t, flat.Write(make([][39]float32, n)))
				require.NoError(t, out.Write(make([]fieldsParticle, n)))
			}
			require.NoError(t, s.Launch(k, in, flat, out))
			check(0, n)
			for _, from := range []int{1, 7, 16, 37, 60} {
				a, err := in.Range(0, from, n, 1)
				require.NoError(t, err)
				b, err := flat.Range(0, from, n, 1)
				require.NoError(t, err)
				c, err := out.Range(0, from, n, 1)
				require.NoError(t, err)
				require.NoError(t, s.Launch(k, a, b, c))
				check(from, n)
			}
			g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
				tmp, err := cmdbuf.Temp[[39]float32](c, n)
				if err != nil {
					return err
				}
				if err := c.Launch(k, cmdbuf.Param("in", in), tmp, out); err != nil {
					return err
				}
				return c.Copy(flat, tmp)
			})
			require.NoError(t, err)
			defer g.Close()
			require.NoError(t, g.Replay())
			check(0, n)
			host = particles(n + 1)[1:]
			other := upload(t, s, host, n)
			require.NoError(t, g.Set("in", other))
			require.NoError(t, g.Replay())
			check(0, n)
			require.ErrorContains(t, g.Set("in", flat), "want a tensor of type cmdbuf_test.fieldsParticle")
			// Every second one, read and written through a view with gaps.
			half, err := other.Range(0, 1, n, 2)
			require.NoError(t, err)
			list := read(t, half)
			for i := range list {
				require.Equal(t, host[1+2*i], list[i])
				list[i].Mass = float32(i)
			}
			require.NoError(t, half.Write(list))
			for i, p := range read(t, other) {
				if i%2 == 1 {
					require.Equal(t, float32(i/2), p.Mass)
				} else {
					require.Equal(t, host[i], p)
				}
			}
		})
	}
}

type driftParticle struct {
	Position [3]float32
	Mass     float32
	Velocity [3]float32
	_        [4]byte
}

type wind struct {
	Time float32
	_    [12]byte
	Gust [3]float32
}

// A struct of one element serves all invocations; what does not match is told by field.
func TestStructsAreChecked(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	k := userKernel(t, "drift")
	w := upload(t, s, []wind{{Time: 2, Gust: [3]float32{4, 0, -4}}})
	p := upload(t, s, []driftParticle{
		{Position: [3]float32{1, 2, 3}, Mass: 2, Velocity: [3]float32{1, 1, 1}},
		{Position: [3]float32{0, 0, 0}, Mass: 4, Velocity: [3]float32{0, 0, 8}},
	}, 2)
	require.NoError(t, s.Launch(k, w, p))
	require.NoError(t, s.Launch(k, w, p)) // in place by its nature
	got := read(t, p)
	require.Equal(t, [3]float32{13, 6, -1}, got[0].Position)
	require.Equal(t, [3]float32{4, 0, 28}, got[1].Position)
	require.Equal(t, [3]float32{0, 0, 8}, got[1].Velocity)

	fails := func(err error, says string) {
		t.Helper()
		require.ErrorIs(t, err, shaders.ErrOperand)
		require.ErrorContains(t, err, says)
	}
	fails(s.Launch(k, p, w), "want one struct { ")
	two := upload(t, s, make([]wind, 2), 2)
	fails(s.Launch(k, two, p), "one element at an aligned beginning")
	unpadded := upload(t, s, make([]struct {
		Position, Velocity [3]float32
		Mass               float32
	}, 2), 2)
	err := s.Launch(k, w, unpadded)
	require.ErrorIs(t, err, shaders.ErrType)
	// Without names in the binary the members go by their number.
	fails(err, "field Velocity: want float32, found [3]float32")
	packed := upload(t, s, make([]struct {
		Position [3]float32
		Mass     float32
		Velocity [3]float32
	}, 2), 2)
	fails(s.Launch(k, w, packed), "elements 32 bytes apart")
	floats := zeros(t, s, 2)
	fails(s.Launch(k, w, floats), "found float32")
	fails(s.Launch(shaders.Add, p, p, p), "want float32, found cmdbuf_test.driftParticle")
	fails(s.Launch(shaders.Copy, p, p), "want float32, int32 or uint32")
	require.Error(t, s.Copy(p, unpadded))
	copied := upload(t, s, make([]driftParticle, 2), 2)
	require.NoError(t, s.Copy(copied, p))
	require.Equal(t, got, read(t, copied))

	for _, err := range []error{
		errorOf(cmdbuf.New[struct{ P *int }](s, 1)), errorOf(cmdbuf.New[bool](s, 1)), errorOf(cmdbuf.New[int](s, 1)),
		errorOf(cmdbuf.Upload(s, []string{"a"}, 1)), errorOf(cmdbuf.New[[]float32](s, 1)), errorOf(cmdbuf.New[any](s, 1)),
	} {
		require.ErrorIs(t, err, shaders.ErrType)
	}
}

func errorOf[T any](_ T, err error) error { return err }

// Numbers of every width are elements too, with a name of their own or without.
func TestTypedSlices(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	type meters float32
	a := upload(t, s, []meters{1, 2, 3}, 3)
	b := upload(t, s, []meters{10, 20, 30}, 3)
	require.NoError(t, s.Launch(shaders.Add, a, b, b))
	require.Equal(t, []meters{11, 22, 33}, read(t, b))
	bytes := upload(t, s, []uint8{1, 2, 3, 4, 5}, 5)
	odd, err := bytes.Range(0, 1, 5, 2)
	require.NoError(t, err)
	require.Equal(t, []uint8{2, 4}, read(t, odd))
	require.NoError(t, odd.Write([]uint8{8, 9}))
	require.Equal(t, []uint8{1, 8, 3, 9, 5}, read(t, bytes))
	long := upload(t, s, []int64{math.MinInt64, 0, math.MaxInt64}, 3)
	require.Equal(t, []int64{math.MinInt64, 0, math.MaxInt64}, read(t, long))
	require.NoError(t, long.Map(ctx, func(host []int64) { host[1] = 7 }))
	require.Equal(t, []int64{math.MinInt64, 7, math.MaxInt64}, read(t, long))
	_, err = cmdbuf.New[[1 << 20]float64](s, 1<<30)
	require.Error(t, err)
	_, err = cmdbuf.New[[1 << 40]float64](s, 1<<30)
	require.ErrorIs(t, err, cmdbuf.ErrShape)
}

// Larger than what one copy stages, in elements that do not divide it.
func TestManyStructs(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	n := 16<<20/28 + 1000
	if s.Device().Limits().MaxStorageBufferRange < 1<<20 {
		n = 3000
	}
	host := make([][7]uint32, n)
	for i := range host {
		host[i] = [7]uint32{uint32(i), 1, 2, 3, 4, 5, ^uint32(i)}
	}
	x := upload(t, s, host, n)
	got := read(t, x)
	require.True(t, len(got) == n && equal(host, got))
	every, err := x.Range(0, 1, n, 3)
	require.NoError(t, err)
	into := make([][7]uint32, every.Len())
	require.NoError(t, <-every.ReadAsync(ctx, into))
	for i, v := range into {
		require.Equal(t, host[1+3*i], v)
	}
}

func equal[T comparable](a, b []T) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Double precision where the device has it, and the name of what is missing where not.
func TestFloat64(t *testing.T) {
	for _, profile := range []string{"", shim.Bare} {
		t.Run("profile "+profile, func(t *testing.T) {
			var d *vk.Device
			if profile == "" {
				d = vktest.Open(t)
			} else {
				d, _ = vktest.OpenProfile(t, profile)
			}
			s, err := cmdbuf.NewStream(d, cmdbuf.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close(ctx)) })
			k := userKernel(t, "polynomial")
			require.Equal(t, shaders.Float64, k.Params[0].DType)
			rng := rand.New(rand.NewPCG(3, 4))
			host := make([]float64, 1000)
			for i := range host {
				host[i] = rng.NormFloat64()
			}
			x := upload(t, s, host, len(host))
			y := upload(t, s, make([]float64, len(host)), len(host))
			err = s.Launch(k, x, y)
			if !d.Info().Features.Float64 {
				var missing *cmdbuf.CapabilityError
				require.ErrorAs(t, err, &missing)
				require.Equal(t, "Float64", missing.Capability)
				require.ErrorIs(t, err, cmdbuf.ErrUnsupported)
				return
			}
			require.NoError(t, err)
			for i, got := range read(t, y) {
				want := math.FMA(host[i], host[i], host[i]) + 1.0/3
				require.InDelta(t, want, got, 4e-16*(1+host[i]*host[i])) // far below float32
			}
			part, err := x.Range(0, 3, len(host), 1)
			require.NoError(t, err)
			rest, err := y.Range(0, 5, len(host)-2+4, 1)
			if err == nil {
				require.Error(t, s.Launch(k, part, rest), "other shapes")
			}
			tail, err := y.Range(0, 3, len(host), 1)
			require.NoError(t, err)
			require.NoError(t, s.Launch(k, part, tail))
			require.ErrorContains(t, s.Launch(k, zeros(t, s, 4), y), "want float64, found float32")
		})
	}
}

// A graph with structs can be saved, and loaded where its kernel is known.
func TestSavedGraphsKeepStructs(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	k := userKernel(t, "drift")
	w := upload(t, s, []wind{{Time: 1, Gust: [3]float32{1, 0, 0}}})
	all := upload(t, s, make([]driftParticle, 9), 9)
	p, err := all.Range(0, 4, 9, 1)
	require.NoError(t, err)
	list := make([]driftParticle, 5)
	for i := range list {
		list[i] = driftParticle{Mass: 1, Velocity: [3]float32{float32(i), 1, 0}}
	}
	require.NoError(t, p.Write(list))
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error { return c.Launch(k, w, p) })
	require.NoError(t, err)
	defer g.Close()
	var file strings.Builder
	require.NoError(t, g.Save(ctx, &file, cmdbuf.SaveOptions{Contents: true, Views: map[string]cmdbuf.Arg{"p": p}}))
	other := newStream(t, cmdbuf.Options{})
	_, err = cmdbuf.Load(ctx, other, strings.NewReader(file.String()), cmdbuf.LoadOptions{})
	require.ErrorIs(t, err, cmdbuf.ErrUnknownKernel)
	l, err := cmdbuf.Load(ctx, other, strings.NewReader(file.String()), cmdbuf.LoadOptions{Kernels: []*shaders.Kernel{userKernel(t, "drift")}})
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, l.Replay())
	q, err := cmdbuf.TensorNamed[driftParticle](l, "p")
	require.NoError(t, err)
	for i, v := range read(t, q) {
		require.Equal(t, [3]float32{float32(i) + 1, 1, 0}, v.Position)
	}
	_, err = cmdbuf.TensorNamed[float32](l, "p")
	require.ErrorContains(t, err, "want elements of type float32, found composite")
	_, err = cmdbuf.TensorNamed[[200]float32](l, "p")
	require.ErrorIs(t, err, cmdbuf.ErrShape)
}

// Warm launches with structs cost no allocation either.
func TestLaunchesWithStructsAllocateNothing(t *testing.T) {
	s := newStream(t, cmdbuf.Options{BatchLimit: 1 << 20})
	k := userKernel(t, "drift")
	w, p := upload(t, s, make([]wind, 1)), upload(t, s, make([]driftParticle, 64), 64)
	launch := func() {
		if err := s.Launch(k, w, p); err != nil {
			t.Fatal(err)
		}
	}
	for range 200 {
		launch()
	}
	require.NoError(t, s.Sync(ctx))
	require.Less(t, testing.AllocsPerRun(100, launch), 0.5)
}

// WGSL in two lines, struct and all.
func TestStructsInWGSL(t *testing.T) {
	k, err := wgsl.Kernel("age", `
		struct Person { born: vec2<u32>, height: f32, at: vec3<f32>, age: i32 }
		@group(0) @binding(1) var<storage, read> year: array<u32>;
		@group(0) @binding(2) var<storage, read_write> people: array<Person>;
		@compute @workgroup_size(32)
		fn main(@builtin(global_invocation_id) id: vec3<u32>) {
			if (id.x < arrayLength(&people)) {
				people[id.x].age = i32(year[id.x] - people[id.x].born.x);
				people[id.x].at = people[id.x].at * people[id.x].height;
			}
		}`)
	require.NoError(t, err)
	type person struct {
		Born   [2]uint32
		Height float32
		_      [4]byte
		At     [3]float32
		Age    int32
	}
	require.NoError(t, shaders.Std430(reflect.TypeFor[person]()))
	s := newStream(t, cmdbuf.Options{})
	year := upload(t, s, []uint32{2000, 1990}, 2)
	people := upload(t, s, []person{{Born: [2]uint32{1970, 1}, Height: 2, At: [3]float32{1, 2, 3}}, {Born: [2]uint32{1980, 1}, Height: 1, At: [3]float32{4, 5, 6}}}, 2)
	require.NoError(t, s.Launch(k, year, people))
	require.Equal(t, []person{{Born: [2]uint32{1970, 1}, Height: 2, At: [3]float32{2, 4, 6}, Age: 30},
		{Born: [2]uint32{1980, 1}, Height: 1, At: [3]float32{4, 5, 6}, Age: 10}}, read(t, people))
	type wrong struct {
		Height float32
		_      [4]byte
		Born   [2]uint32
		At     [3]float32
		Age    int32
	}
	err = s.Launch(k, year, upload(t, s, make([]wrong, 2), 2))
	require.ErrorIs(t, err, shaders.ErrType)
}

// Push constants are scalars without anything being said of them, and change without
// another info, in a graph too.
func TestPushConstantsAreScalars(t *testing.T) {
	s := newStream(t, cmdbuf.Options{})
	k := userKernel(t, "saxpy")
	require.Equal(t, []shaders.ParamKind{shaders.TensorParam, shaders.TensorParam, shaders.ScalarParam, shaders.ScalarParam},
		[]shaders.ParamKind{k.Params[0].Kind, k.Params[1].Kind, k.Params[2].Kind, k.Params[3].Kind})
	x, y := upload(t, s, []float32{1, 2, 3}, 3), zeros(t, s, 3)
	require.NoError(t, s.Launch(k, x, y, cmdbuf.Float32(2), cmdbuf.Int32(-1)))
	require.Equal(t, []float32{1, 3, 5}, read(t, y))
	require.ErrorContains(t, s.Launch(k, x, y, cmdbuf.Int32(2), cmdbuf.Int32(-1)), "want float32, found int32")
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		return c.Launch(k, x, y, cmdbuf.Param("a", cmdbuf.Float32(10)), cmdbuf.Int32(1))
	})
	require.NoError(t, err)
	defer g.Close()
	require.NoError(t, g.Replay())
	require.Equal(t, []float32{11, 21, 31}, read(t, y))
	require.NoError(t, g.Set("a", cmdbuf.Float32(100)))
	require.NoError(t, g.Replay())
	require.Equal(t, []float32{101, 201, 301}, read(t, y))

	// The names and the order of one's own.
	mine := userKernel(t, "saxpy", shaders.Param{Name: "factor", Kind: shaders.ScalarParam}, shaders.Param{Name: "x", Binding: 1},
		shaders.Param{Name: "y", Binding: 2}, shaders.Param{Name: "summand", Kind: shaders.ScalarParam, DType: shaders.Int32})
	require.NoError(t, s.Launch(mine, cmdbuf.Float32(3), x, y, cmdbuf.Int32(0)))
	require.Equal(t, []float32{3, 6, 9}, read(t, y))
	_, err = shaders.LoadKernelFS(userShaders, "testdata/user/saxpy.spv", shaders.Param{Name: "x", Binding: 1}, shaders.Param{Name: "y", Binding: 2})
	require.ErrorContains(t, err, "want 2 scalars, as many as the shader has push constants, found 0")
	_, err = shaders.LoadKernelFS(userShaders, "testdata/user/saxpy.spv", shaders.Param{Name: "x", Binding: 1}, shaders.Param{Name: "y", Binding: 2},
		shaders.Param{Name: "a", Kind: shaders.ScalarParam, DType: shaders.Uint32}, shaders.Param{Name: "b", Kind: shaders.ScalarParam})
	require.ErrorContains(t, err, "scalar a is uint32, and push constant 0 (constant0) float32")
}
