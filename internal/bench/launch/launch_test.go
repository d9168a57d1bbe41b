package launch

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/bench"
	"vkcompute/internal/shim"
	"vkcompute/internal/testenv"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { testenv.Main(m) }

func short(sizes ...int) Options {
	return Options{Sizes: sizes, Measure: bench.Options{Rounds: 2, Shot: time.Nanosecond}}
}

func TestRunGivesEveryFigure(t *testing.T) {
	d := vktest.Open(t)
	results, err := Run(context.Background(), d, short(1, 5))
	require.NoError(t, err)
	r := &bench.Report{Schema: bench.Schema, Results: results}
	require.NoError(t, r.Validate())
	for _, name := range []string{"rebuild/n=1", "cached/n=1", "replay/n=1", "nop/n=1", "rebuild/n=5", "cached/n=5", "replay/n=5", "nop/n=5", "empty-submit"} {
		x := r.Find(Name, name, "wall")
		require.NotNil(t, x, name)
		require.Len(t, x.Samples, 2, name)
		require.Positive(t, x.Reference["c"], name)
		require.Equal(t, strings.HasPrefix(name, "rebuild/"), x.Reference["c.buffer"] > 0, name)
	}
	require.Equal(t, 5, r.Find(Name, "replay/n=5", "wall").Launches)
	require.Equal(t, 6, r.Find(Name, "replay/n=5", "wall").Barriers, "one between two launches, and one at each end")
	require.Equal(t, 2, r.Find(Name, "nop/n=5", "wall").Barriers, "what binds nothing conflicts with nothing")
	for _, name := range []string{"first", "capture/n=1", "capture/n=5"} {
		require.NotNil(t, r.Find(Name, name, "wall"), name)
	}
	for _, name := range []string{"host/n=1", "host/n=5", "set/n=1", "set/n=5"} {
		require.NotNil(t, r.Find(Name, name, "host"), name)
	}
	modes := modesOf(d)
	for _, m := range modes {
		require.NotNil(t, r.Find(Name, "line/"+m.String(), "per-submit"), m)
		require.NotNil(t, r.Find(Name, "line/"+m.String(), "per-launch"), m)
	}
	require.Len(t, results, 2*(len(modes)+1)+1+2*len(modes)+3+4)
}

func TestModesAlone(t *testing.T) {
	d := vktest.Open(t)
	o := short(3)
	o.Scope, o.Prefix = Modes, "x/"
	results, err := Run(context.Background(), d, o)
	require.NoError(t, err)
	require.Len(t, results, len(modesOf(d)))
	for _, r := range results {
		require.True(t, strings.HasPrefix(r.Case, "x/"), r.Case)
	}
}

// What the device has no memory for is unsupported, and the rest is measured.
func TestWhatDoesNotFit(t *testing.T) {
	const kib, large = 1 << 10, 100
	order := []string{"rebuild in plain C with buffers", fmt.Sprintf("n=%d", large), "n=1"}
	const most = 32 << 10
	left, some := 0, false
	for _, heap := range []uint64{most, 2 << 10, 1536, 1 << 10, 64} {
		t.Run(fmt.Sprintf("%dKiB", heap), func(t *testing.T) {
			require.NoError(t, shim.Install())
			profile, err := shim.ProfileNamed(shim.Tiny)
			require.NoError(t, err)
			profile.Heaps = slices.Clone(profile.Heaps)
			profile.Heaps[1].Size = heap * kib
			driver, err := shim.NewProfile(profile)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, driver.Close()) })
			o := short(large, 1)
			var lacking []bench.Unsupported
			o.Unsupported = func(u bench.Unsupported) { lacking = append(lacking, u) }
			results, err := Run(context.Background(), vktest.OpenOn(t, driver), o)
			require.NoError(t, err)
			r := &bench.Report{Schema: bench.Schema, Results: results, Unsupported: lacking}
			require.NoError(t, r.Validate())
			for i, u := range lacking {
				require.Equal(t, order[i], u.Case)
				require.Contains(t, u.Reason, "out of device memory")
			}
			// How much fits near the edge depends on what is freed when.
			if heap == most {
				require.Empty(t, lacking)
			}
			left = 3 - len(lacking)
			some = some || left == 1
			for i, n := range []int{large, 1} {
				x := r.Find(Name, fmt.Sprintf("rebuild/n=%d", n), "wall")
				require.Equal(t, len(lacking) < i+2, x != nil)
				if x != nil {
					require.Equal(t, len(lacking) == 0, x.Reference["c.buffer"] > 0)
				}
			}
			require.Equal(t, len(lacking) < 2, r.Find(Name, "line/replay", "per-launch") != nil, "one size makes no line")
		})
	}
	require.Zero(t, left, "nothing fits into a few pages")
	require.True(t, some, "one launch fits where a hundred do not")
}

// newRig is a rig set up for one size.
func newRig(t *testing.T, kernel *shaders.Kernel) *rig {
	t.Helper()
	d := vktest.Open(t)
	o := short(4)
	o.Scope = Modes
	r := &rig{ctx: context.Background(), d: d, o: o, buffers: true}
	t.Cleanup(func() { require.NoError(t, r.close()) })
	var err error
	r.add, err = oneGroup(kernel)
	require.NoError(t, err)
	require.NoError(t, r.setUp())
	return r
}

func TestVerifyAcceptsWhatIsRight(t *testing.T) {
	r := newRig(t, shaders.Add)
	require.NoError(t, r.verify())
	require.NoError(t, r.verify(), "and again")
}

// A wrong result is an error, not a fast time.
func TestVerifySeesAWrongKernel(t *testing.T) {
	r := newRig(t, shaders.Mul)
	require.ErrorIs(t, r.verify(), ErrWrong)
}

func TestVerifySeesUnequalBarriers(t *testing.T) {
	r := newRig(t, shaders.Add)
	s := r.sizes[0]
	var err error
	s.recorded, err = r.plain.chain(s.n, graphBegin, batchEnd)
	require.NoError(t, err)
	require.NoError(t, r.verify(), "as many barriers, so the test below is about their number")
	none := graphBegin
	none.From.Stages = 0
	s.recorded, err = r.plain.chain(s.n, none, graphEnd)
	require.NoError(t, err)
	require.ErrorIs(t, r.verify(), ErrUnequal)
}

func TestCompare(t *testing.T) {
	for name, change := range map[string]func(s *state){
		"an element":           func(s *state) { s[tensorC][2]++ },
		"a gap":                func(s *state) { s[tensorA][3] = 0 },
		"not a number":         func(s *state) { s[tensorA][0] = float32(math.NaN()) },
		"one launch too many":  func(s *state) { s.advance(1, 1) },
		"the order of two":     func(s *state) { s[tensorA], s[tensorC] = s[tensorC], s[tensorA] },
		"the same, in a shot":  func(s *state) { s.advance(2, 1) },
		"the untouched addend": func(s *state) { s[tensorB][4]-- },
	} {
		t.Run(name, func(t *testing.T) {
			want, found := start(), start()
			want.advance(4, 2)
			found.advance(4, 2)
			require.NoError(t, want.compare("same", found))
			change(found)
			require.ErrorIs(t, want.compare("other", found), ErrWrong)
		})
	}
}

func TestInterrupt(t *testing.T) {
	d := vktest.Open(t)
	ctx, cancel := context.WithCancel(context.Background())
	o := short(2)
	o.Measure.Rounds = bench.MaxRounds
	o.Progress = func(s string, _ float64) {
		if strings.Contains(s, "round 1") {
			cancel()
		}
	}
	_, err := Run(ctx, d, o)
	require.ErrorIs(t, err, context.Canceled)
}

func TestBadSizes(t *testing.T) {
	for _, sizes := range [][]int{{0}, {-1}, {4, 4}, {1 << 20}} {
		_, err := Run(context.Background(), nil, short(sizes...))
		require.ErrorContains(t, err, "sizes", "%v", sizes)
	}
}

func TestTable(t *testing.T) {
	figure := func(name, metric, unit string, ours, c float64) bench.Result {
		r := bench.NewResult(Name, name, metric, unit, []float64{ours, ours}, 1)
		r.Against("c", bench.NewResult(Name, name, metric, unit, []float64{c, c}, 1))
		return r
	}
	rebuilt := figure("rebuild/n=256", "wall", unitLaunch, 3000, 2200)
	rebuilt.Reference["c.buffer"] = 2900
	shaky := figure("cached/n=256", "wall", unitLaunch, 2500, 2000)
	shaky.Unstable = true
	results := []bench.Result{
		rebuilt, shaky, figure("replay/n=256", "wall", unitLaunch, 1500, 1450), figure("nop/n=256", "wall", unitLaunch, 120, 96.5),
		figure("empty-submit", "wall", unitSubmit, 14000, 12000),
		bench.NewResult(Name, "first", "wall", "ns", []float64{1.2e6}, 1), bench.NewResult(Name, "capture/n=256", "wall", unitLaunch, []float64{800}, 1),
		figure("addressed/n=256", "wall", unitLaunch, 1300, 1450),
		bench.NewResult(Name, "host/n=256", "host", "ns/replay", []float64{420}, 1), bench.NewResult(Name, "set/n=256", "host", "ns", []float64{810}, 1),
		figure("default/replay/n=256", "wall", unitLaunch, 25000, 25000),
	}
	for m := range modeCount {
		results = append(results, figure("line/"+m.String(), "per-submit", unitSubmit, 20000, 10000), figure("line/"+m.String(), "per-launch", unitLaunch, 2000, 1600))
	}
	var b strings.Builder
	require.NoError(t, WriteTable(&b, results, []Section{{Title: "Launches"}, {Title: "Default", Prefix: "default/"}, {Title: "Empty", Prefix: "nowhere/"}}))
	const golden = "testdata/table.txt"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}
