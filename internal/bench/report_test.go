package bench_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/bench"
)

func report() *bench.Report {
	r := bench.NewResult("launch", "replay/n=4", "wall", "ns/launch", []float64{4000, 4400, 4200}, 4)
	r.Against("c", bench.NewResult("launch", "", "wall", "ns/launch", []float64{4000, 4000, 4000}, 4))
	r.Launches, r.Barriers = 4, 5
	return &bench.Report{Schema: bench.Schema, Environment: bench.Host(), Warnings: []string{"<loud> & clear"},
		Results: []bench.Result{r, bench.NewResult("launch", "first", "wall", "ns", []float64{1, 9}, 1)}}
}

func TestNewResult(t *testing.T) {
	r := report().Results[0]
	require.Equal(t, []float64{1000, 1100, 1050}, r.Samples)
	require.Equal(t, 1050.0, r.Median)
	require.False(t, r.Unstable)
	require.Equal(t, 1000.0, r.Reference["c"])
	require.Equal(t, 1.05, r.Ratio["c"].Median)
	require.True(t, report().Results[1].Unstable)
}

func TestJSONHasTheDocumentedForm(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, report().WriteJSON(&b))
	var form map[string]any
	require.NoError(t, json.Unmarshal(b.Bytes(), &form))
	require.Equal(t, 1.0, form["schema"])
	environment := form["environment"].(map[string]any)
	for _, key := range []string{"device", "driver", "api", "go", "cpu", "profile", "commit"} {
		require.IsType(t, "", environment[key], key)
	}
	result := form["results"].([]any)[0].(map[string]any)
	require.Equal(t, "launch", result["workload"])
	require.Equal(t, "replay/n=4", result["case"])
	require.Equal(t, "wall", result["metric"])
	require.Equal(t, "ns/launch", result["unit"])
	require.Equal(t, []any{1000.0, 1100.0, 1050.0}, result["samples"])
	require.Equal(t, 1050.0, result["median"])
	require.Equal(t, map[string]any{"c": 1000.0}, result["reference"])
	require.Contains(t, b.String(), "<loud> & clear")
	require.Equal(t, 2, strings.Count(b.String(), "\n{\"workload\""), "one result a line")
}

func TestJSONRoundTrip(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, report().WriteJSON(&b))
	back, err := bench.ReadJSON(&b)
	require.NoError(t, err)
	require.Equal(t, report(), back)
	require.NotNil(t, back.Find("launch", "first", "wall"))
	require.Nil(t, back.Find("launch", "first", "device"))
}

func TestReportValidate(t *testing.T) {
	require.NoError(t, report().Validate())
	for name, change := range map[string]func(*bench.Report){
		"schema":          func(r *bench.Report) { r.Schema++ },
		"unnamed":         func(r *bench.Report) { r.Results[0].Unit = "" },
		"twice":           func(r *bench.Report) { r.Results[1] = r.Results[0] },
		"no samples":      func(r *bench.Report) { r.Results[0].Samples = nil },
		"not a number":    func(r *bench.Report) { r.Results[0].Samples[1] = math.NaN() },
		"infinite":        func(r *bench.Report) { r.Results[0].P90 = math.Inf(1) },
		"out of order":    func(r *bench.Report) { r.Results[0].P10 = 2000 },
		"empty reference": func(r *bench.Report) { r.Results[0].Reference["c"] = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			r := report()
			change(r)
			require.ErrorIs(t, r.Validate(), bench.ErrReport)
			require.Error(t, r.WriteJSON(&bytes.Buffer{}))
		})
	}
	_, err := bench.ReadJSON(strings.NewReader("{"))
	require.ErrorIs(t, err, bench.ErrReport)
}

func TestHost(t *testing.T) {
	h := bench.Host()
	require.NotEmpty(t, h.Go)
	require.NotEmpty(t, h.CPU)
	require.NotEmpty(t, h.Commit)
}

// What a device cannot do is kept beside the figures, in every form that people read.
func TestUnsupported(t *testing.T) {
	r := report()
	r.Unsupported = []bench.Unsupported{{Workload: "decode", Case: "110M", Reason: "want much | found little"}}
	var b bytes.Buffer
	require.NoError(t, r.WriteJSON(&b))
	back, err := bench.ReadJSON(&b)
	require.NoError(t, err)
	require.Equal(t, r, back)
	for _, f := range []bench.Format{bench.Markdown, bench.CSV, bench.Bench, bench.Prom} {
		var b bytes.Buffer
		require.NoError(t, r.Write(&b, f))
		require.Equal(t, f == bench.Markdown, strings.Contains(b.String(), "110M"), "%s: programs read figures only", f)
	}
	b.Reset()
	require.NoError(t, bench.WriteUnsupported(&b, r.Unsupported))
	require.Equal(t, "unsupported: decode 110M: want much | found little\n\n", b.String())
	b.Reset()
	require.NoError(t, bench.WriteUnsupported(&b, nil))
	require.Empty(t, b.String())
	for _, u := range []bench.Unsupported{{Case: "a", Reason: "b"}, {Workload: "a", Reason: "b"}, {Workload: "a", Case: "b"}} {
		r.Unsupported = []bench.Unsupported{u}
		require.ErrorIs(t, r.Validate(), bench.ErrReport)
	}
}
