package suite

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/bench"
	"vkcompute/internal/bench/suite/probes"
	"vkcompute/internal/bench/suite/probes/variant"
	"vkcompute/internal/testenv"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
	"vkcompute/shaders/ref"
)

var ctx = context.Background()

func TestMain(m *testing.M) { testenv.Main(m) }

// short is the least that gives every figure.
func short() Options {
	return Options{Measure: bench.Options{Rounds: 1, Shot: time.Nanosecond}}
}

// check finds results valid and returns them as a report.
func check(t *testing.T, list []bench.Result, err error) *bench.Report {
	t.Helper()
	require.NoError(t, err)
	r := &bench.Report{Schema: bench.Schema, Results: list}
	require.NoError(t, r.Validate())
	return r
}

func TestMetacache(t *testing.T) {
	if testing.Short() {
		t.Skip("captures of 100,000 infos take minutes where the collector runs all the time")
	}
	list, err := Metacache(ctx, short())
	r := check(t, list, err)
	for _, name := range []string{"hit/words=4", "hit/words=16", "hit/words=64", "hit/words=256", "miss/entries=64", "miss/entries=512", "miss/entries=4096", "miss/entries=32768", "capture/infos=100000"} {
		x := r.Find("metacache", name, "wall")
		require.NotNil(t, x, name)
		require.Positive(t, x.Reference["port"], name)
	}
	share := func(name string) float64 { return r.Find("metacache", "scalar/"+name, "hits").Median }
	require.Less(t, share("in-key"), share("in-key-admission"))
	require.Less(t, share("in-key-admission"), share("push-constant"))
}

func TestPool(t *testing.T) {
	var picture bytes.Buffer
	list, err := Pool(ctx, short(), func(draw func(io.Writer) error) error { return draw(&picture) })
	r := check(t, list, err)
	for _, name := range []string{"cycle/live=64", "cycle/live=1024", "cycle/live=16384", "succeed/holes=2048", "fail/holes=2048",
		"pass-over/holes=2048", "behind/holes=2048", "refused/holes=2048"} {
		require.NotNil(t, r.Find("pool", name, "wall"), name)
	}
	require.Contains(t, r.Find("pool", "fail/holes=2048", "wall").Reference, "succeed")
	require.Contains(t, picture.String(), "<svg")
	require.Contains(t, picture.String(), "</svg>")
}

func TestScalar(t *testing.T) {
	list, err := Scalar(ctx, vktest.Open(t), short())
	r := check(t, list, err)
	for _, name := range []string{"in-key", "in-key-admission", "push-constant", "graph-info", "graph-push"} {
		require.NotNil(t, r.Find("scalar", name, "wall"), name)
	}
	share := func(name string) float64 { return r.Find("scalar", name, "hits").Median }
	require.Less(t, share("in-key"), 10.0)
	require.Greater(t, share("in-key-admission"), 50.0)
	require.Equal(t, 100.0, share("push-constant"))
}

func TestTransfer(t *testing.T) {
	list, err := Transfer(ctx, vktest.Open(t), short())
	r := check(t, list, err)
	for _, size := range []string{"4KiB", "1MiB", "32MiB"} {
		for _, name := range []string{"upload", "download", "copy", "fill"} {
			name += "/size=" + size
			wall, band := r.Find("transfer", name, "wall"), r.Find("transfer", name, "bandwidth")
			require.NotNil(t, wall, name)
			require.NotNil(t, band, name)
			require.Equal(t, bench.Higher, band.Better())
			bytes := map[string]float64{"4KiB": 4 << 10, "1MiB": 1 << 20, "32MiB": 32 << 20}[size]
			if !strings.HasPrefix(name, "fill") {
				bytes *= 2
			}
			require.InEpsilon(t, bytes/wall.Samples[0], band.Samples[0], 1e-2, "bytes read plus written")
		}
	}
	for _, name := range []string{"reserve", "first-touch", "reuse"} {
		require.NotNil(t, r.Find("transfer", name+"/size=1MiB", "wall"), name)
	}
}

func TestPeak(t *testing.T) {
	d := vktest.Open(t)
	var list []bench.Result
	err := stream(d, cmdbuf.Options{}, func(s *cmdbuf.Stream) (err error) {
		list, err = peak(ctx, s, short(), probeSizes{1 << 10, 1 << 20}, []variant.FMA{{Width: 1, Accumulators: 12, Unroll: 4}, {Width: 1, Accumulators: 1, Unroll: 1}, {Width: 4, Accumulators: 4, Unroll: 16}})
		return err
	})
	r := check(t, list, err)
	best := r.Find("peak", "fma", "arithmetic")
	require.NotNil(t, best)
	require.Contains(t, best.Note, "best of the sweep, at ")
	for _, name := range []string{"fma/float×12/unroll=4", "fma/float×1/unroll=1", "fma/vec4×4/unroll=16"} {
		x := r.Find("peak", name, "arithmetic")
		require.NotNil(t, x, name)
		require.LessOrEqual(t, x.Median, best.Median)
	}
	require.NotNil(t, r.Find("peak", "read", "bandwidth"))
	require.NotNil(t, r.Find("peak", "copy", "bandwidth"))
}

// A probe whose shares do not come out even would touch memory that is not its own.
func TestProbesRefuseWhatDoesNotComeOutEven(t *testing.T) {
	err := stream(vktest.Open(t), cmdbuf.Options{}, func(s *cmdbuf.Stream) error {
		k, err := probes.Copy(probes.Runs, probeGroup)
		require.NoError(t, err)
		x, err := cmdbuf.New[float32](s, 1024)
		require.NoError(t, err)
		y, err := cmdbuf.New[float32](s, 1024)
		require.NoError(t, err)
		require.ErrorIs(t, s.Launch(k, cmdbuf.Uint32(3), x, y), shaders.ErrOperand)
		require.ErrorIs(t, s.Launch(k, cmdbuf.Uint32(0), x, y), shaders.ErrOperand)
		require.NoError(t, s.Launch(k, cmdbuf.Uint32(2), x, y))
		return errors.Join(x.Close(), y.Close())
	})
	require.NoError(t, err)
}

func TestKernels(t *testing.T) {
	d := vktest.Open(t)
	var list []bench.Result
	err := stream(d, cmdbuf.Options{}, func(s *cmdbuf.Stream) (err error) {
		list, err = kernels(ctx, s, short(), kernelSizes{1 << 12, 32, []int{32}})
		return err
	})
	r := check(t, list, err)
	for _, x := range r.Results {
		if x.Metric == "wall" {
			require.Positive(t, x.Reference["roof"], x.Case)
			require.Positive(t, x.Reference["go"], x.Case)
			require.Regexp(t, "^[0-9]+ % of what ((memory|arithmetic) allows$|arithmetic and loads allow; tile [0-9]+x[0-9]+ at [0-9]+ % of the best, [0-9]+x[0-9]+$)", x.Note)
		}
	}
	require.NotNil(t, r.Find("kernels", "matmul/32", "wall"))
	require.NotNil(t, r.Find("kernels", "matmul/32/tile=8x8", "arithmetic"))
	// Each kernel that package shaders declares is measured, but the one that does nothing.
	sources, err := filepath.Glob("../../../shaders/*.go")
	require.NoError(t, err)
	declared := regexp.MustCompile(`(?m)= (?:builtin|operation)\("([a-z0-9]+)"`)
	n := 0
	for _, f := range sources {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			n++
			if name := string(m[1]); name != "nop" {
				require.NotNil(t, r.Find("kernels", name, "wall"), "%s of %s is not measured", name, f)
			}
		}
	}
	require.Greater(t, n, 50)
}

// Operands are shared by what fills them, and inputs are never outputs.
func TestSharedOperands(t *testing.T) {
	err := stream(vktest.Open(t), cmdbuf.Options{}, func(s *cmdbuf.Stream) error {
		b := &operands{s: s}
		x, _ := common(b, wave, 8)
		same, _ := common(b, wave, 8)
		require.Same(t, x, same)
		other, _ := common(b, positive, 8)
		require.NotSame(t, x, other)
		longer, _ := common(b, wave, 9)
		require.NotSame(t, x, longer)
		out, _ := common(b, zero[float32], 8)
		require.NotSame(t, x, out)
		whole, _ := common(b, zero[int32], 8)
		require.NotNil(t, whole)
		require.Len(t, b.closers, 5)
		return b.close()
	})
	require.NoError(t, err)
}

// A kernel that does something else than plain Go is an error.
func TestVerifySeesAWrongKernel(t *testing.T) {
	err := stream(vktest.Open(t), cmdbuf.Options{}, func(s *cmdbuf.Stream) error {
		b := &operands{s: s}
		map2(b, shaders.Add, 256, wave, positive, 0, func(out, x, y []float32) {
			for i := range out {
				out[i] = x[i] + y[i]
			}
		})
		require.NoError(t, b.err)
		c := b.list[0]
		require.NoError(t, c.verify(ctx, s))
		c.kernel = shaders.Sub
		require.ErrorIs(t, c.verify(ctx, s), ErrWrong)
		return b.close()
	})
	require.NoError(t, err)
}

// A wrong result is an error, not a fast time.
func TestSameSeesAWrongElement(t *testing.T) {
	d := vktest.Open(t)
	err := stream(d, cmdbuf.Options{}, func(s *cmdbuf.Stream) error {
		x, err := cmdbuf.New[float32](s, 8)
		require.NoError(t, err)
		require.NoError(t, s.Launch(shaders.RandomUniform, cmdbuf.Uint32(1), cmdbuf.Uint32(0), cmdbuf.Float32(0), cmdbuf.Float32(1), x))
		require.NoError(t, same(ctx, x, ref.RandomUniform(1, 0, 0, 1, []int{8})))
		require.ErrorIs(t, same(ctx, x, ref.RandomUniform(2, 0, 0, 1, []int{8})), ErrWrong)
		return x.Close()
	})
	require.NoError(t, err)
}

func TestInterrupt(t *testing.T) {
	gone, cancel := context.WithCancel(ctx)
	cancel()
	d := vktest.Open(t)
	for name, run := range map[string]func() error{
		"metacache": func() error { _, err := Metacache(gone, short()); return err },
		"pool":      func() error { _, err := Pool(gone, short(), nil); return err },
		"scalar":    func() error { _, err := Scalar(gone, d, short()); return err },
		"peak":      func() error { _, err := Peak(gone, d, short()); return err },
		"kernels":   func() error { _, err := Kernels(gone, d, short()); return err },
		"transfer":  func() error { _, err := Transfer(gone, d, short()); return err },
	} {
		require.ErrorIs(t, run(), context.Canceled, name)
	}
}
