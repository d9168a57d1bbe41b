package bench_test

import (
	"bytes"
	"encoding/csv"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/bench"
)

var update = flag.Bool("update", false, "write the golden files anew")

// fixed is a report whose every figure is given.
func fixed() *bench.Report {
	replay := bench.NewResult("launch", "replay/n=256", "wall", "ns/launch", []float64{1800, 1850, 1790, 1820}, 1)
	replay.Against("c", bench.NewResult("launch", "", "wall", "ns/launch", []float64{1700, 1700, 1710, 1690}, 1))
	replay.Against("port", bench.NewResult("launch", "", "wall", "ns/launch", []float64{3600, 3600, 3600, 3600}, 1))
	shaky := bench.NewResult("launch", "empty-submit", "wall", "ns/submit", []float64{14e3, 28e3}, 1)
	fma := bench.NewFigure("peak", "fma", "arithmetic", "GFLOP/s", []float64{61.25, 60.5, 62})
	fma.Note = `"float | ×8", <unrolled>`
	hits := bench.NewFigure("scalar", "in key-2", "hits", "%", []float64{75})
	return &bench.Report{Schema: bench.Schema,
		Environment: bench.Environment{Device: `A "device" \ one`, Driver: "Mesa 22.3.6", API: "1.3.230", Go: "go1.26", CPU: "A CPU", OS: "linux/amd64", Commit: "abcdef", Setup: "alone,\nLP_NUM_THREADS=0"},
		Warnings:    []string{"a CPU | <device>"},
		Results:     []bench.Result{replay, shaky, fma, bench.NewFigure("transfer", "copy/size=1MiB", "bandwidth", "GB/s", []float64{12.5, 13}), hits}}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func written(t *testing.T, r *bench.Report, f bench.Format) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, r.Write(&b, f))
	return b.String()
}

func TestFormats(t *testing.T) {
	for f, name := range map[bench.Format]string{bench.JSON: "report.json", bench.CSV: "report.csv", bench.Markdown: "report.md", bench.Bench: "report.bench", bench.Prom: "report.prom"} {
		golden(t, name, written(t, fixed(), f))
	}
	require.ErrorContains(t, fixed().Write(&bytes.Buffer{}, "xml"), `format "xml": want json`)
	bad := fixed()
	bad.Results[0].Samples = nil
	require.ErrorIs(t, bad.Write(&bytes.Buffer{}, bench.CSV), bench.ErrReport)
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, bench.WriteTable(&b, "What this is.", fixed().Results))
	golden(t, "table.txt", b.String())
}

func TestCSVIsRectangular(t *testing.T) {
	lines, err := csv.NewReader(strings.NewReader(written(t, fixed(), bench.CSV))).ReadAll()
	require.NoError(t, err)
	require.Len(t, lines, 1+2+4, "a line for each reference")
}

// Every sample line is name, iterations, value, unit, with no space inside a part.
func TestBenchLines(t *testing.T) {
	n := 0
	for _, line := range strings.Split(written(t, fixed(), bench.Bench), "\n") {
		if !strings.HasPrefix(line, "Benchmark") {
			continue
		}
		n++
		fields := strings.Fields(line)
		require.Len(t, fields, 4, line)
		_, err := strconv.ParseFloat(fields[2], 64)
		require.NoError(t, err)
		require.NotRegexp(t, `-[0-9]+$`, fields[0])
	}
	require.Equal(t, 4+2+3+2+1, n)
}

func TestScale(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit string
		by   float64
		name string
	}{{9999, "ns/op", 1, "ns/op"}, {1e4, "ns/op", 1e3, "µs/op"}, {1e7, "ns", 1e6, "ms"}, {1e9, "nsec", 1, "nsec"}, {1e9, "GB/s", 1, "GB/s"}} {
		by, name := bench.Scale(c.v, c.unit)
		require.Equal(t, c.by, by, c)
		require.Equal(t, c.name, name)
	}
	require.Equal(t, "0", bench.Number(0))
	require.Equal(t, "0.00035", bench.Number(0.000351))
	require.Equal(t, "0.50", bench.Number(0.5))
	require.Equal(t, "1.23", bench.Number(1.234))
	require.Equal(t, "12.3", bench.Number(12.34))
	require.Equal(t, "1234", bench.Number(1234.4))
}

func TestFigureKeepsFiveDigits(t *testing.T) {
	require.Equal(t, []float64{0.012346, 123460, 0}, bench.NewFigure("w", "c", "m", "GB/s", []float64{0.0123456, 123456, 0}).Samples)
}
