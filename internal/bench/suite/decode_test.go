package suite

import (
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/bench"
	"vkcompute/internal/llm"
	"vkcompute/internal/vktest"
)

func TestDecode(t *testing.T) {
	d := vktest.Open(t)
	shape := llm.Shape{Dim: 16, Layers: 2, Heads: 4, Groups: 2, Hidden: 20, Vocab: 40, Context: 4}
	list, warnings, err := Decode(ctx, d, short(), []DecodeModel{{Name: "tiny", Shape: shape}})
	require.Empty(t, warnings)
	r := check(t, list, err)
	for _, way := range []string{"rebuild", "cached", "replay"} {
		x := r.Find("decode", "tiny/"+way, "tokens/s")
		require.NotNil(t, x, way)
		require.Equal(t, bench.Higher, x.Better())
		require.Equal(t, 25, x.Launches)
		require.Positive(t, x.Barriers)
		host := r.Find("decode", "tiny/"+way, "host")
		require.NotNil(t, host, way)
		require.Greater(t, host.Median, 0.0)
		require.LessOrEqual(t, host.Median, 100.0)
	}
	m, err := llm.Seeded(shape, 1)
	require.NoError(t, err)
	tokens, err := Generate(ctx, d, m)
	require.NoError(t, err)
	require.LessOrEqual(t, len(tokens), shape.Context)
}

// A model that a device has no memory for is left out if it may be, and an error if it
// was asked for.
func TestDecodeLeavesOut(t *testing.T) {
	d, _ := vktest.OpenProfile(t, "tiny")
	small := llm.Shape{Dim: 8, Layers: 1, Heads: 2, Groups: 1, Hidden: 8, Vocab: 9, Context: 4}
	large := llm.Shape{Dim: 256, Layers: 1, Heads: 2, Groups: 1, Hidden: 8, Vocab: 900, Context: 4}
	list, warnings, err := Decode(ctx, d, short(), []DecodeModel{{Name: "small", Shape: small}, {Name: "large", Shape: large, Optional: true}})
	r := check(t, list, err)
	require.NotNil(t, r.Find("decode", "small/replay", "tokens/s"))
	require.Nil(t, r.Find("decode", "large/replay", "tokens/s"))
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0], "decode: large left out: ")
	_, _, err = Decode(ctx, d, short(), []DecodeModel{{Name: "large", Shape: large}})
	require.ErrorContains(t, err, "large")
}

func TestRecordDecode(t *testing.T) {
	err := stream(vktest.Open(t), cmdbuf.Options{}, func(s *cmdbuf.Stream) error {
		g, err := RecordDecode(ctx, s)
		require.NoError(t, err)
		require.Equal(t, 55, g.Stats().Launches)
		require.NoError(t, g.Replay())
		return g.Close()
	})
	require.NoError(t, err)
}
