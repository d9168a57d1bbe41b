package drawing

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
)

var update = flag.Bool("update", false, "write the golden files anew")

func example() *Graph {
	return &Graph{Title: `a "step" <of>`, Stats: cmdbuf.GraphStats{Launches: 9, Transfers: 1, Barriers: 2}, Explain: cmdbuf.Explanation{
		Operations: []string{"add", "mul", "copy", "a kernel with a <long> name", "sum", "x", "y", "z", "fill", "softmax"},
		Barriers: []cmdbuf.Barrier{
			{Before: 8, Hazards: []cmdbuf.Hazard{{Kind: cmdbuf.ReadAfterWrite, Producer: 0, Consumer: 8, Buffer: 3, Offset: 0, Size: 512}, {Kind: cmdbuf.WriteAfterRead, Producer: 0, Consumer: 8, Buffer: 4, Offset: 0, Size: 20 << 10}}},
			{Before: 9, Hazards: []cmdbuf.Hazard{{Kind: cmdbuf.WriteAfterWrite, Producer: 8, Consumer: 9, Buffer: 3, Offset: 0, Size: 64 << 20}}},
		}}}
}

func TestForms(t *testing.T) {
	g := example()
	for name, write := range map[string]func(io.Writer) error{"graph.dot": g.DOT, "graph.svg": g.SVG, "graph.json": g.JSON} {
		var b bytes.Buffer
		require.NoError(t, write(&b))
		path := filepath.Join("testdata", name)
		if *update {
			require.NoError(t, os.MkdirAll("testdata", 0o755))
			require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), b.String())
		switch name {
		case "graph.json":
			require.True(t, json.Valid(b.Bytes()))
		case "graph.svg":
			d := xml.NewDecoder(&b)
			for {
				if _, err := d.Token(); err == io.EOF {
					break
				} else {
					require.NoError(t, err)
				}
			}
		}
	}
}

func TestLevels(t *testing.T) {
	require.Equal(t, [][]int{{0, 1, 2, 3, 4, 5, 6, 7}, {8}, {9}}, example().levels())
	empty := &Graph{Title: "nothing"}
	for _, write := range []func(io.Writer) error{empty.DOT, empty.SVG, empty.JSON} {
		require.NoError(t, write(io.Discard))
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestFailingWriter(t *testing.T) {
	g := example()
	for _, write := range []func(io.Writer) error{g.DOT, g.SVG, g.JSON} {
		require.ErrorContains(t, write(full{}), "full")
	}
}
