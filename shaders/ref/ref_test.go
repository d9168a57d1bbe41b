package ref_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/shaders"
	"vkcompute/shaders/ref"
)

func tensor(l shaders.Layout, data ...float32) ref.Tensor { return ref.Tensor{Layout: l, Data: data} }

// Small results worked out by hand.
func TestReferencesByHand(t *testing.T) {
	m := tensor(shaders.Contiguous(2, 3), 1, 2, 3, 4, 5, 6)
	row := tensor(shaders.Contiguous(3), 10, 20, 30)
	require.Equal(t, []float64{11, 22, 33, 14, 25, 36}, ref.Add(m, row, []int{2, 3}).Value)
	require.Equal(t, []float64{10, 40, 90, 40, 100, 180}, ref.Mul(m, row, []int{2, 3}).Value)
	require.Equal(t, []float64{6, 15}, ref.Sum(m, []int{2, 1}).Value)
	require.Equal(t, []float64{5, 7, 9}, ref.Sum(m, []int{1, 3}).Value)
	require.Equal(t, []float64{21}, ref.Sum(m, nil).Value)
	transposed := m
	transposed.Layout = shaders.Layout{Rank: 2, Shape: [8]int{3, 2}, Stride: [8]int{1, 3}}
	require.Equal(t, []float64{14, 32, 32, 77}, ref.MatMul(m, transposed, []int{2, 2}).Value)
	require.Equal(t, []float64{0, 0}, ref.MatMul(tensor(shaders.Contiguous(1, 0)), tensor(shaders.Contiguous(0, 2)), []int{1, 2}).Value)
	reversed := tensor(shaders.Layout{Rank: 1, Offset: 2, Shape: [8]int{3}, Stride: [8]int{-1}}, 1, 2, 3)
	require.Equal(t, []float64{4, 4, 4}, ref.Add(reversed, tensor(shaders.Contiguous(3), 1, 2, 3), []int{3}).Value)
}

func TestCompare(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, tt := range []struct {
		want, tol float64
		got       float32
		ok        bool
	}{
		{1, 0.1, 1.05, true},
		{1, 0.1, 1.2, false},
		{1, 0.1, float32(nan), false},
		{nan, 0, float32(nan), true},
		{nan, 0, 1, false},
		{inf, 0, float32(inf), true},
		{inf, 0, float32(-inf), false},
		{inf, nan, math.MaxFloat32, false},
		{1e39, 1, float32(inf), true},
		{-1e39, 1, float32(inf), false},
		{1e30, 1, float32(inf), false},
	} {
		require.Equal(t, tt.ok, ref.Compare(tt.want, tt.tol, tt.got) == nil, "%+v", tt)
	}
}

// right writes what is wanted, rounded, into a copy of the output binding.
func right(c ref.Case) []uint32 {
	out := append([]uint32(nil), c.Data[c.Out]...)
	l := c.Operands[c.Out].Layout
	ref.Each(l.Shape[:l.Rank], func(i int, pos []int) {
		bits := uint32(0)
		if c.Exact != nil {
			bits = c.Exact[i]
		} else {
			bits = math.Float32bits(float32(c.Want[i]))
		}
		out[ref.Index(l, pos)] = bits
	})
	return out
}

// Check accepts the right result and refuses it with any one element wrong, or
// any word overwritten that is no element.
func TestCheckCanFail(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	stray := 0
	for _, c := range append(ref.Edges(rng), ref.Cases(rng, 20)...) {
		require.NoError(t, c.Kernel.Err())
		if c.Out < 0 {
			continue
		}
		good := right(c)
		require.NoError(t, c.Check(good))
		require.Error(t, c.Check(append(good, 0)))
		if len(good) == 0 {
			continue
		}
		at := rng.IntN(len(good))
		if good[at] == c.Data[c.Out][at] {
			stray++
		}
		bad := append([]uint32(nil), good...)
		bad[at] = math.Float32bits(1e30)
		require.Error(t, c.Check(bad), c.Name)
	}
	require.Positive(t, stray)
}

func TestCasesAreReproducibleAndSmall(t *testing.T) {
	a := ref.Cases(rand.New(rand.NewPCG(3, 4)), 5)
	b := ref.Cases(rand.New(rand.NewPCG(3, 4)), 5)
	require.Len(t, b, len(a))
	for i := range a {
		require.Equal(t, a[i].Operands, b[i].Operands, a[i].Name)
		require.Equal(t, a[i].Data, b[i].Data, a[i].Name)
		require.LessOrEqual(t, a[i].Bytes(), 1<<20, a[i].Name)
		require.Len(t, a[i].Data, len(a[i].Operands))
	}
}

// The large cases are large: more groups than the least maximum of Vulkan.
func TestLargeCasesNeedFolding(t *testing.T) {
	for _, c := range ref.LargeCases(rand.New(rand.NewPCG(5, 6))) {
		_, size := c.Kernel.Spec(shaders.MaxWorkgroup{Invocations: 1024, Size: [3]uint32{1024, 1024, 64}, SharedBytes: 16 << 10})
		var p shaders.Plan
		require.NoError(t, c.Kernel.Plan(shaders.Env{WorkgroupSize: size}, c.Operands, &p), c.Name)
		if c.Kernel == shaders.MatMul || c.Kernel == shaders.Sum {
			require.Greater(t, p.Groups[0], uint64(65535), c.Name)
		}
		require.LessOrEqual(t, c.Bytes(), 70<<20, c.Name)
	}
}

// The known answers that Random123, the authors' library, ships for philox4x32-10.
func TestPhiloxKnownAnswers(t *testing.T) {
	const all = math.MaxUint32
	require.Equal(t, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}, ref.Philox([4]uint32{}, [2]uint32{}))
	require.Equal(t, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}, ref.Philox([4]uint32{all, all, all, all}, [2]uint32{all, all}))
	require.Equal(t, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		ref.Philox([4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0}))
}

// A million normal numbers have the moments of the distribution.
func TestRandomNormalMoments(t *testing.T) {
	r := ref.RandomNormal(1, 2, 0, 1, []int{1_000_000})
	var m [5]float64
	for _, z := range r.Value {
		p := 1.0
		for i := range m {
			m[i] += p / 1e6
			p *= z
		}
	}
	require.InDeltaSlice(t, []float64{1, 0, 1, 0, 3}, m[:], 0.02)
}
