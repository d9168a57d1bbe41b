package poolbench_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/internal/poolbench"
	"vkcompute/internal/poolbench/alloctrace"
	"vkcompute/pool"
	"vkcompute/vk"
)

func file(name string) string { return filepath.Join("..", "..", "testdata", "alloc", name+".txt") }

func recorded(t testing.TB, name string) *alloctrace.Trace {
	t.Helper()
	f, err := os.Open(file(name))
	require.NoError(t, err)
	defer f.Close()
	tr, err := alloctrace.Parse(f)
	require.NoError(t, err)
	return tr
}

// The pages in use span at most a tenth more than the best packing that somebody finds who knows the future. What they
// reserve is, of the programs that are recorded, at most a tenth more than the best packing by role. The modelled ones make a
// tensor for each operation; of the small one a page here and there is a larger part.
func TestFragmentation(t *testing.T) {
	for _, c := range []struct {
		name            string
		trace           *alloctrace.Trace
		device, reserve float64
	}{
		{"recorded/train", recorded(t, "train"), .05, .10},
		{"recorded/decode", recorded(t, "decode"), .10, .10},
		{"modelled/train", alloctrace.Train(), .30, .20},
		{"modelled/decode", alloctrace.Decode(), .10, .10},
	} {
		for _, align := range []uint64{16, 256} {
			if testing.Short() && align == 16 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", c.name, align), func(t *testing.T) {
				info := vk.DeviceInfo{Limits: vk.Limits{MinStorageBufferAlignment: align}}
				r, err := poolbench.Fragmentation(c.trace, pool.SubSlices(), info)
				require.NoError(t, err)
				t.Logf("\n%v", r)
				require.Len(t, r.Roles, 4)
				for _, w := range append(r.Roles, r.Total) {
					assert.LessOrEqual(t, w.Live, w.Packed, w.Role)
					assert.LessOrEqual(t, w.Live, w.Span, "%s: less than what was alive", w.Role)
					assert.LessOrEqual(t, w.Span, w.Reserved, w.Role)
					assert.LessOrEqual(t, w.Fragmentation(), .10, w.Role)
				}
				assert.LessOrEqual(t, r.Total.Packed, r.Apart)
				assert.LessOrEqual(t, r.Roles[0].Overhead(), c.device)
				assert.LessOrEqual(t, r.Overhead(), c.reserve)
			})
		}
	}
}

// A layout that wastes memory shows: every slice has a page with room for ten.
func TestWasteShows(t *testing.T) {
	tr := recorded(t, "train")
	r, err := poolbench.Fragmentation(tr, pool.Layout{Pools: []pool.PoolSpec{{Kind: pool.Exclusive, PageSize: 4 << 20}}}, vk.DeviceInfo{})
	require.NoError(t, err)
	assert.Greater(t, r.Roles[0].Overhead(), 2.0)
	_, err = poolbench.Fragmentation(tr, pool.Layout{Pools: []pool.PoolSpec{{PageSize: 1 << 20}}}, vk.DeviceInfo{})
	require.ErrorIs(t, err, pool.ErrTooLarge)
	_, err = poolbench.Fragmentation(tr, pool.Layout{Pools: []pool.PoolSpec{{}}}, vk.DeviceInfo{})
	require.ErrorIs(t, err, pool.ErrLayout)
}

func TestWhatIsMeasuredIsWhatItSays(t *testing.T) {
	for _, live := range append([]int{1}, poolbench.Lives()...) {
		c, err := poolbench.NewCycle(live)
		require.NoError(t, err)
		require.NoError(t, c.Run(3*live))
		require.NoError(t, c.Map().Validate())
		require.NoError(t, c.Close())
	}
	for what := poolbench.Fits; what <= poolbench.Refused; what++ {
		h, err := poolbench.NewHoles(2048, what)
		require.NoError(t, err)
		require.NoError(t, h.Run(100))
		require.NoError(t, h.Close())
	}
	_, err := poolbench.NewCycle(0)
	require.Error(t, err)
	_, err = poolbench.NewHoles(0, poolbench.Fits)
	require.Error(t, err)
	_, err = poolbench.NewHoles(1, poolbench.Refused+1)
	require.Error(t, err)
}

func TestNothingIsAllocatedWhileMeasuring(t *testing.T) {
	c, err := poolbench.NewCycle(64)
	require.NoError(t, err)
	require.NoError(t, c.Run(1000))
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if err := c.Run(10); err != nil {
			t.Error(err)
		}
	}))
	require.NoError(t, c.Close())
}

func BenchmarkCycle(b *testing.B) {
	for _, live := range poolbench.Lives() {
		b.Run(fmt.Sprintf("live=%d", live), func(b *testing.B) {
			c, err := poolbench.NewCycle(live)
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Run(1); err != nil {
					b.Fatal(err)
				}
			}
			require.NoError(b, c.Close())
		})
	}
}

func BenchmarkHoles(b *testing.B) {
	for name, what := range map[string]poolbench.Request{"fits": poolbench.Fits, "nowhere": poolbench.FitsNowhere, "behind": poolbench.FitsBehind, "refused": poolbench.Refused} {
		b.Run(name, func(b *testing.B) {
			h, err := poolbench.NewHoles(2048, what)
			require.NoError(b, err)
			for b.Loop() {
				if err := h.Run(1); err != nil {
					b.Fatal(err)
				}
			}
			require.NoError(b, h.Close())
		})
	}
}
