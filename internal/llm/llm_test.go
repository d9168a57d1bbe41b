package llm_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/llm"
	"vkcompute/internal/testenv"
	"vkcompute/internal/vktest"
	"vkcompute/metacache"
)

func TestMain(m *testing.M) { testenv.Main(m) }

var ctx = context.Background()

// tiny has everything a real model has: groups that heads share, a hidden dimension and
// a vocabulary that are no round numbers, a context that a test can fill.
var tiny = llm.Shape{Dim: 24, Layers: 2, Heads: 6, Groups: 3, Hidden: 37, Vocab: 101, Context: 12}

func seeded(t testing.TB, s llm.Shape) *llm.Model {
	t.Helper()
	m, err := llm.Seeded(s, 7)
	require.NoError(t, err)
	require.NoError(t, m.Validate())
	return m
}

// decoder makes a decoder with weights and stream of its own, closed with the test.
func decoder(t testing.TB, m *llm.Model, o cmdbuf.Options, mode llm.Mode) *llm.Decoder {
	t.Helper()
	s, err := cmdbuf.NewStream(vktest.Open(t), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(ctx)) })
	w, err := llm.Upload(ctx, s, m)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	d, err := llm.NewDecoder(ctx, s, w, mode)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func TestDecoderMatchesReference(t *testing.T) {
	m := seeded(t, tiny)
	var replayed []int
	rebuild := metacache.DefaultPolicy()
	rebuild.MaxEntries = 0
	for _, c := range []struct {
		name string
		o    cmdbuf.Options
		mode llm.Mode
	}{
		{"replayed", cmdbuf.Options{}, llm.Replayed},
		{"cached", cmdbuf.Options{}, llm.Eager},
		{"rebuilt", cmdbuf.Options{Cache: &rebuild, Sets: cmdbuf.RebuildSets}, llm.Eager},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := decoder(t, m, c.o, c.mode)
			a, err := llm.Check(ctx, d, m, tiny.Context)
			require.NoError(t, err)
			require.Equal(t, tiny.Context, a.Steps)
			if c.mode == llm.Replayed {
				replayed = a.Tokens
				again, err := llm.Check(ctx, d, m, tiny.Context/2)
				require.NoError(t, err)
				require.Equal(t, a.Tokens[:tiny.Context/2], again.Tokens, "what the first sequence left is not seen")
				return
			}
			require.Equal(t, replayed, a.Tokens, "the modes differ in how launches get to the device, not in what they do")
		})
	}
}
