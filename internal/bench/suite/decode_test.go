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
	list, err := Decode(ctx, d, short(), []DecodeModel{{Name: "tiny", Shape: shape}})
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

// A model that a device is too small for is unsupported, and the others are measured.
func TestDecodeOnASmallDevice(t *testing.T) {
	d, _ := vktest.OpenProfile(t, "tiny")
	small := llm.Shape{Dim: 8, Layers: 1, Heads: 2, Groups: 1, Hidden: 8, Vocab: 9, Context: 4}
	large := llm.Shape{Dim: 256, Layers: 1, Heads: 2, Groups: 1, Hidden: 8, Vocab: 900, Context: 4}
	o := short()
	var lacking []bench.Unsupported
	o.Unsupported = func(u bench.Unsupported) { lacking = append(lacking, u) }
	list, err := Decode(ctx, d, o, []DecodeModel{{Name: "large", Shape: large}, {Name: "small", Shape: small}})
	r := check(t, list, err)
	require.NotNil(t, r.Find("decode", "small/replay", "tokens/s"))
	require.Nil(t, r.Find("decode", "large/replay", "tokens/s"))
	require.Len(t, lacking, 1)
	require.Equal(t, "large", lacking[0].Case)
	require.Contains(t, lacking[0].Reason, "the device allows 65536")
	r.Unsupported = lacking
	require.NoError(t, r.Validate())
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
