package bench_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"vkcompute/internal/bench"
)

func around(center float64, n int) []float64 {
	var list []float64
	for i := range n {
		list = append(list, center*(1+0.001*float64(i%7-3)))
	}
	return list
}

func pair(metric, unit string, before, after []float64) (*bench.Report, *bench.Report) {
	a, b := fixed(), fixed()
	a.Results = []bench.Result{bench.NewFigure("w", "case", metric, unit, before)}
	b.Results = []bench.Result{bench.NewFigure("w", "case", metric, unit, after)}
	return a, b
}

func TestCompareVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		metric, unit  string
		before, after []float64
		want          bench.Verdict
		worse         float64
	}{
		"slower":            {"wall", "ns/op", around(100, 20), around(120, 20), bench.Worsened, 20},
		"faster":            {"wall", "ns/op", around(100, 20), around(80, 20), bench.Improved, 0},
		"a lower rate":      {"bandwidth", "GB/s", around(100, 20), around(80, 20), bench.Worsened, 25},
		"half the rate":     {"bandwidth", "GB/s", around(100, 20), around(50, 20), bench.Worsened, 100},
		"a higher rate":     {"bandwidth", "GB/s", around(100, 20), around(120, 20), bench.Improved, 0},
		"a higher accuracy": {"accuracy", "1", around(0.9, 20), around(0.97, 20), bench.Improved, 0},
		"the same":          {"wall", "ns/op", around(100, 20), around(100, 20), bench.Same, 0},
		"within the noise":  {"wall", "ns/op", []float64{90, 100, 110, 95, 105}, []float64{92, 103, 109, 96, 107}, bench.Same, 0},
		"one sample each":   {"wall", "ns/op", []float64{100}, []float64{200}, bench.Undecided, 0},
		"one and the same":  {"hits", "%", []float64{75}, []float64{75}, bench.Same, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(c.metric, c.unit, c.before, c.after)
			found, err := bench.Compare(a, b)
			require.NoError(t, err)
			require.Len(t, found.Lines, 1)
			l := found.Lines[0]
			require.Equal(t, c.want, l.Verdict)
			require.InDelta(t, c.worse, l.Worse(), 0.5)
			require.Len(t, found.Above(max(0, c.worse-1)), map[bool]int{true: 1, false: 0}[c.worse > 0])
			require.Empty(t, found.Above(c.worse+1))
			require.Equal(t, len(c.before) > 5, l.OldCI != nil)
			if l.OldCI != nil {
				require.LessOrEqual(t, l.OldCI[0], l.Old)
				require.GreaterOrEqual(t, l.OldCI[1], l.Old)
			}
		})
	}
}

// The p of two samples of four that do not overlap is 2 of the 70 ways to mix them.
func TestCompareIsMannWhitney(t *testing.T) {
	a, b := pair("wall", "ns/op", []float64{1, 2, 3, 4}, []float64{5, 6, 7, 8})
	found, err := bench.Compare(a, b)
	require.NoError(t, err)
	require.InDelta(t, 2.0/70, found.Lines[0].P, 1e-9)
	require.Equal(t, bench.Worsened, found.Lines[0].Verdict)
}

func TestCompareTable(t *testing.T) {
	a, b := fixed(), fixed()
	b.Environment.Commit, b.Environment.Driver = "123456", "Mesa 25"
	b.Results[0] = bench.NewResult("launch", "replay/n=256", "wall", "ns/launch", []float64{1500, 1510, 1490, 1505}, 1)
	b.Results[4].Case = "another"
	found, err := bench.Compare(a, b)
	require.NoError(t, err)
	require.Equal(t, []string{"scalar/in key-2 hits"}, found.OnlyOld)
	require.Equal(t, []string{"scalar/another hits"}, found.OnlyNew)
	require.Equal(t, []string{`driver differs: "Mesa 22.3.6" and "Mesa 25"`}, found.Notes)
	var out bytes.Buffer
	require.NoError(t, found.WriteTable(&out))
	golden(t, "compare.txt", out.String())
}

func TestCompareNeedsSomethingInCommon(t *testing.T) {
	a, b := fixed(), fixed()
	a.Results, b.Results = a.Results[:1], b.Results[1:]
	_, err := bench.Compare(a, b)
	require.ErrorIs(t, err, bench.ErrNothing)
}

// What --format bench writes is what benchstat reads, with the units it knows.
func TestBenchFormatIsReadable(t *testing.T) {
	r := benchfmt.NewReader(strings.NewReader(written(t, fixed(), bench.Bench)), "report")
	values := map[string][]float64{}
	units := map[string]string{}
	for r.Scan() {
		switch x := r.Result().(type) {
		case *benchfmt.Result:
			require.Equal(t, "Mesa 22.3.6", x.GetConfig("driver"))
			for _, v := range x.Values {
				values[string(x.Name.Full())] = append(values[string(x.Name.Full())], v.Value)
				units[string(x.Name.Full())] = v.Unit
			}
		case *benchfmt.SyntaxError:
			t.Fatal(x)
		}
	}
	require.NoError(t, r.Err())
	require.InDeltaSlice(t, []float64{1.8e-6, 1.85e-6, 1.79e-6, 1.82e-6}, values["Launch/replay/n=256"], 1e-12)
	require.Equal(t, "sec/launch", units["Launch/replay/n=256"])
	require.Equal(t, "B/s", units["Transfer/copy/size=1MiB/metric=bandwidth"])
	require.Len(t, values, 5)
}
