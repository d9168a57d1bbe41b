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

// Context, tokens and shapes out of bounds are errors, not indices.
func TestDecoderRefuses(t *testing.T) {
	m := seeded(t, tiny)
	d := decoder(t, m, cmdbuf.Options{}, llm.Replayed)
	require.Error(t, d.Start(-1))
	require.Error(t, d.Start(tiny.Vocab))
	require.NoError(t, d.Start(3))
	for range tiny.Context {
		_, err := d.Step(ctx)
		require.NoError(t, err)
	}
	_, err := d.Step(ctx)
	require.ErrorContains(t, err, "context of 12 positions is full")
	r := llm.NewReference(m)
	_, err = r.Logits(tiny.Vocab)
	require.Error(t, err)
}

// A comparison that cannot fail says nothing.
func TestCheckFindsAWrongWeight(t *testing.T) {
	m := seeded(t, tiny)
	d := decoder(t, m, cmdbuf.Options{}, llm.Replayed)
	wrong := seeded(t, tiny)
	wrong.Layers[1].Value[5] += 0.05
	_, err := llm.Check(ctx, d, wrong, 3)
	require.ErrorIs(t, err, llm.ErrDiffers)
}

// A step neither allocates per launch nor makes descriptor sets or infos.
func TestReplayedStepIsSmall(t *testing.T) {
	d := decoder(t, seeded(t, tiny), cmdbuf.Options{}, llm.Replayed)
	_, err := d.Step(ctx)
	require.NoError(t, err)
	n := testing.AllocsPerRun(5, func() {
		if err := d.Submit(); err != nil {
			t.Fatal(err)
		}
	})
	require.LessOrEqual(t, n, 8.0)
	require.Equal(t, 5+10*tiny.Layers, d.Graph().Stats().Launches)
}

func TestShapesAreThoseOfTheModels(t *testing.T) {
	want := map[string]int{"260K": 260032, "15M": 15191712, "42M": 41689600, "110M": 109529856}
	require.Len(t, llm.Shapes(), len(want))
	for _, s := range llm.Shapes() {
		require.NoError(t, s.Validate(), s.Name)
		require.Equal(t, want[s.Name], s.Parameters(), s.Name)
	}
	for _, s := range []llm.Shape{{}, {Dim: 64, Layers: 1, Heads: 7, Groups: 1, Hidden: 8, Vocab: 9, Context: 3}, {Dim: 64, Layers: 1, Heads: 8, Groups: 3, Hidden: 8, Vocab: 9, Context: 3},
		{Dim: 24, Layers: 1, Heads: 8, Groups: 8, Hidden: 8, Vocab: 9, Context: 3}, {Dim: 4, Layers: 1, Heads: 1, Groups: 1, Hidden: 8, Vocab: 1, Context: 3}, {Dim: 2048, Layers: 1, Heads: 1, Groups: 1, Hidden: 8, Vocab: 9, Context: 3}} {
		require.ErrorIs(t, s.Validate(), llm.ErrShape, "%+v", s)
	}
}
