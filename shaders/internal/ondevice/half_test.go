package ondevice

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
)

func f32bits(v []float32) []uint32 {
	out := make([]uint32, len(v))
	for i := range v {
		out[i] = math.Float32bits(v[i])
	}
	return out
}

// Every float16 there is, in pieces that the smallest binding holds.
func TestEveryHalfToFloat(t *testing.T) {
	s := newStream(t)
	const piece = 1 << 13
	x, err := cmdbuf.New[shaders.Half](s, piece)
	require.NoError(t, err)
	defer x.Close()
	y := zeros(t, s, piece)
	host, want := make([]shaders.Half, piece), make([]float32, piece)
	for at := 0; at < 1<<16; at += piece {
		for i := range host {
			host[i] = shaders.Half(at + i)
			want[i] = host[i].Float32()
		}
		require.NoError(t, x.Write(host))
		require.NoError(t, s.Launch(shaders.HalfToFloat, x, y))
		require.Equal(t, f32bits(want), f32bits(read(t, y)), "from %#x", at)
	}
}

// Numbers around the middle between each two neighbours, where rounding decides, and any
// numbers at all.
func TestFloatToHalfRoundsAsGoDoes(t *testing.T) {
	s := newStream(t)
	var list []float32
	for i := range 0x7c00 {
		a, b := float64(shaders.Half(i).Float32()), float64(1<<16)
		if i+1 < 0x7c00 {
			b = float64(shaders.Half(i + 1).Float32())
		}
		m := float32((a + b) / 2)
		list = append(list, m, -math.Nextafter32(m, 0), math.Nextafter32(m, math.MaxFloat32))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 30000 {
		list = append(list, math.Float32frombits(rng.Uint32()))
	}
	list = append(list, 0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), 65504, 65519.996, 65520, 1e-45, -1e-40)
	for len(list) > 0 {
		host := list[:min(len(list), 10001)] // not whole blocks
		list = list[len(host):]
		x := upload(t, s, host, len(host))
		y := upload(t, s, make([]shaders.Half, len(host)), len(host))
		require.NoError(t, s.Launch(shaders.FloatToHalf, x, y))
		for i, h := range read(t, y) {
			require.Equal(t, uint16(shaders.HalfOf(host[i])), uint16(h), "%x", host[i])
		}
		require.NoError(t, x.Close())
		require.NoError(t, y.Close())
	}
}

// Halves share words: whatever the view, those that are not its own stay as they are, and
// launches that write the two halves of the same words do not disturb each other.
func TestHalvesOfViews(t *testing.T) {
	s := newStream(t)
	rng := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		rows, columns := 1+rng.IntN(9), 1+rng.IntN(40)
		host := make([]shaders.Half, rows*columns)
		for i := range host {
			host[i] = shaders.Half(i + 1)
		}
		h := upload(t, s, host, rows, columns)
		from, step := rng.IntN(columns), 1+rng.IntN(3)
		view, err := h.Range(1, from, columns, step)
		require.NoError(t, err)
		first := rng.IntN(rows)
		view, err = view.Range(0, first, rows, 1)
		require.NoError(t, err)
		turned := rng.IntN(2) == 0
		if turned {
			view, err = view.Transpose(0, 1)
			require.NoError(t, err)
		}
		shape := view.Shape()
		values := normal(rng, view.Len())
		x := upload(t, s, values, shape...)
		require.NoError(t, s.Launch(shaders.FloatToHalf, x, view))
		at := 0
		for i := range shape[0] {
			for j := range shape[1] {
				r, c := i, j
				if turned {
					r, c = j, i
				}
				host[(first+r)*columns+from+c*step] = shaders.HalfOf(values[at])
				at++
			}
		}
		require.Equal(t, host, read(t, h))
		y := zeros(t, s, shape...)
		require.NoError(t, s.Launch(shaders.HalfToFloat, view, y))
		back := read(t, y)
		for i := range values {
			require.Equal(t, shaders.HalfOf(values[i]).Float32(), back[i])
		}
	}
	n := 1001
	h := upload(t, s, make([]shaders.Half, 2*n), 2*n)
	even, err := h.Range(0, 0, 2*n, 2)
	require.NoError(t, err)
	odd, err := h.Range(0, 1, 2*n, 2)
	require.NoError(t, err)
	a, b := normal(rng, n), normal(rng, n)
	x, y := upload(t, s, a, n), upload(t, s, b, n)
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
		if err := c.Launch(shaders.FloatToHalf, x, even); err != nil {
			return err
		}
		return c.Launch(shaders.FloatToHalf, y, odd)
	})
	require.NoError(t, err)
	defer g.Close()
	require.NoError(t, g.Replay())
	for i, got := range read(t, h) {
		want := a
		if i%2 == 1 {
			want = b
		}
		require.Equal(t, shaders.HalfOf(want[i/2]), got)
	}
	require.ErrorContains(t, s.Launch(shaders.FloatToHalf, x, x), "want float16, found float32")
	require.ErrorContains(t, s.Launch(shaders.Copy, h, h), "want float32, int32 or uint32")
}

// A row, a column and a single element serve all of the output, in blocks and one by one.
func TestHalvesAreBroadcast(t *testing.T) {
	s := newStream(t)
	rng := rand.New(rand.NewPCG(9, 10))
	for _, columns := range []int{3, 8, 64} {
		const rows = 5
		for _, from := range [][]int{{columns}, {rows, 1}, {1, 1}, {}} {
			n := shaders.Contiguous(from...).Len()
			values := normal(rng, n)
			at := func(i int) int {
				switch {
				case n == 1:
					return 0
				case len(from) == 1:
					return i % columns
				}
				return i / columns
			}
			h := upload(t, s, make([]shaders.Half, rows*columns), rows, columns)
			require.NoError(t, s.Launch(shaders.FloatToHalf, upload(t, s, values, from...), h))
			few := make([]shaders.Half, n)
			for i, v := range values {
				few[i] = shaders.HalfOf(v)
			}
			f := zeros(t, s, rows, columns)
			require.NoError(t, s.Launch(shaders.HalfToFloat, upload(t, s, few, from...), f))
			floats := read(t, f)
			for i, got := range read(t, h) {
				require.Equal(t, few[at(i)], got, "%v to %d × %d", from, rows, columns)
				require.Equal(t, got.Float32(), floats[i])
			}
		}
	}
}

func halves(rng *rand.Rand, n int) []shaders.Half {
	list := make([]shaders.Half, n)
	for i := range list {
		list[i] = shaders.HalfOf(float32(rng.NormFloat64()))
		if rng.IntN(20) == 0 {
			list[i] = shaders.Half(rng.IntN(0x400)) // denormal
		}
	}
	return list
}

func TestGatherHalf(t *testing.T) {
	s := newStream(t)
	rng := rand.New(rand.NewPCG(5, 6))
	for _, size := range []int{1, 3, 8, 64, 67} {
		const rows, n = 50, 29
		host := halves(rng, rows*size)
		table := upload(t, s, host, rows, size)
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = int32(rng.IntN(rows+4) - 2)
		}
		out := zeros(t, s, n, size)
		require.NoError(t, s.Launch(shaders.GatherHalf, table, upload(t, s, ids, n), out))
		for i, got := range read(t, out) {
			want := float32(0)
			if id := int(ids[i/size]); id >= 0 && id < rows {
				want = host[id*size+i%size].Float32()
			}
			require.Equal(t, want, got)
		}
	}
}

// The product stays within its bound, whatever the shape and the layout, with denormals,
// infinities and NaN among the weights, through descriptors and through addresses.
func TestMatVecHalf(t *testing.T) {
	d := vktest.Open(t)
	for _, addresses := range []bool{false, true} {
		if addresses && !d.Info().Features.DeviceAddress {
			continue
		}
		s, err := cmdbuf.NewStream(d, cmdbuf.Options{Addresses: addresses})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close(ctx)) })
		rng := rand.New(rand.NewPCG(7, 8))
		for _, dims := range [][3]int{{1, 1, 1}, {1, 5, 7}, {2, 64, 128}, {1, 33, 130}, {3, 3, 1024}, {1, 100, 4}, {1, 7, 2000}, {2, 1, 515}} {
			batch, m, k := dims[0], dims[1], dims[2]
			host := halves(rng, batch*m*k)
			vector := normal(rng, batch*k)
			special := m > 2 && k > 2
			if special {
				host[1] = 0x7c00   // row 0: an infinity
				host[k+1] = 0x7e01 // row 1: a NaN
			}
			x := upload(t, s, vector, batch, k)
			check := func(a *cmdbuf.Tensor[shaders.Half]) {
				t.Helper()
				out := zeros(t, s, batch, m)
				require.NoError(t, s.Launch(shaders.MatVecHalf, a, x, out))
				for i, got := range read(t, out) {
					b, r := i/m, i%m
					sum, size := 0.0, 0.0
					for j := range k {
						p := float64(host[(b*m+r)*k+j].Float32()) * float64(vector[b*k+j])
						sum, size = sum+p, size+math.Abs(p)
					}
					switch {
					case math.IsNaN(sum):
						require.True(t, got != got, "%v row %d: %v", dims, r, got)
					case math.IsInf(sum, 0):
						require.Equal(t, sum, float64(got))
					default:
						require.InDelta(t, sum, float64(got), 32*size/(1<<23)+1e-40, "%v row %d", dims, r)
					}
				}
			}
			check(upload(t, s, host, batch, m, k))
			// The same matrices stored the other way around, and behind an odd offset.
			turned := make([]shaders.Half, len(host)+1)
			for b := range batch {
				for r := range m {
					for c := range k {
						turned[1+b*m*k+c*m+r] = host[(b*m+r)*k+c]
					}
				}
			}
			whole := upload(t, s, turned, len(turned))
			l := shaders.Contiguous(batch, k, m)
			l.Offset = 1
			view, err := whole.Strided(l)
			require.NoError(t, err)
			view, err = view.Transpose(1, 2)
			require.NoError(t, err)
			check(view)
		}
	}
}
