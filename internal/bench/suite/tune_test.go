package suite

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/bench"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// checkTuned checks what must hold of any search, whatever the times were.
func checkTuned(t *testing.T, d *vk.Device, found Tuned) {
	t.Helper()
	require.NoError(t, cmdbuf.CheckTuning(d.Info(), found.Chosen))
	taken := found.Default
	seen := map[string]bool{}
	for _, x := range found.Tried {
		seen[x.Knob] = true
		require.NoError(t, cmdbuf.CheckTuning(d.Info(), x.Tuning), "%s %s", x.Knob, x.Value)
		require.NoError(t, x.Wrong, "%s %s", x.Knob, x.Value)
		require.Equal(t, x.Why == "", x.Taken, "%s %s: %s", x.Knob, x.Value, x.Why)
		require.Positive(t, x.Time, "%s %s", x.Knob, x.Value)
		if x.Taken {
			require.Less(t, x.Time, 1-tuneGain)
			taken = x.Tuning
		}
	}
	require.Subset(t, seen, map[string]bool{"reads": true, "groups": true, "workgroup": true, "tile": true})
	if found.Chosen != found.Default {
		require.Equal(t, taken, found.Chosen)
		require.Greater(t, found.Gain, 1.0)
	} else {
		require.Equal(t, 1.0, found.Gain)
	}
	require.Len(t, found.Kernels, 4)
	for _, k := range found.Kernels {
		require.Positive(t, k.Default.Median, k.Name)
		require.Positive(t, k.Chosen.Median, k.Name)
	}
}

func TestTune(t *testing.T) {
	d := vktest.Open(t)
	// From a poor beginning, so that something may be found.
	base := shaders.Tuning{Groups: 1, Reads: cmdbuf.DefaultTuning(d.Info()).Reads, Workgroup: 1}
	found, err := tune(ctx, d, short(), base, tuneSizes{1 << 12, 32})
	require.NoError(t, err)
	require.Equal(t, base, found.Default)
	checkTuned(t, d, found)
	t.Logf("%+v, %.2f times as fast", found.Chosen, found.Gain)
}

// On the smallest device every candidate is one that it allows, and the operands fit.
func TestTuneOnASmallDevice(t *testing.T) {
	d, _ := vktest.OpenProfile(t, "tiny")
	found, err := tune(ctx, d, short(), cmdbuf.DefaultTuning(d.Info()), tuneSizes{1 << 20, 64})
	require.NoError(t, err)
	checkTuned(t, d, found)
}

func TestTuneIsInterrupted(t *testing.T) {
	d := vktest.Open(t)
	ended, end := context.WithCancel(ctx)
	end()
	_, err := tune(ended, d, short(), shaders.Tuning{}, tuneSizes{1 << 10, 16})
	require.ErrorIs(t, err, context.Canceled)
	_, err = tune(ctx, d, short(), shaders.Tuning{Workgroup: 3}, tuneSizes{1 << 10, 16})
	require.ErrorIs(t, err, cmdbuf.ErrTuning)
}

// A candidate that computes something else is not measured, however fast it may be; a
// default that does is an error.
func TestTuneRejectsWhatIsWrong(t *testing.T) {
	d := vktest.Open(t)
	err := stream(d, cmdbuf.Options{}, func(s *cmdbuf.Stream) (err error) {
		b := &tuneBench{ctx: ctx, d: d, o: short(), operands: operands{s: s}}
		defer closing(&err, b)
		_, err = b.setUp(tuneSizes{1 << 10, 16})
		require.NoError(t, err)
		calls, wrongAt := 0, 1
		check := b.cases[0].check
		b.cases[0].check = func(ctx context.Context) error {
			calls++
			if calls-1 == wrongAt {
				return fmt.Errorf("%w: as if", ErrWrong)
			}
			return check(ctx)
		}
		trials := func() []Trial {
			return []Trial{{}, {Tuning: shaders.Tuning{Workgroup: 32}}, {Tuning: shaders.Tuning{Workgroup: 64}}}
		}
		list := trials()
		times, err := b.compare(list, b.cases, "a test", 0, 1)
		require.NoError(t, err)
		require.Contains(t, list[1].Why, "wrong result")
		require.ErrorIs(t, list[1].Wrong, ErrWrong)
		require.NoError(t, list[2].Wrong)
		require.ErrorIs(t, (&Tuned{Tried: list}).Wrong(), ErrWrong)
		require.NoError(t, (&Tuned{Tried: list[2:]}).Wrong())
		require.NotContains(t, list[2].Why, "wrong result")
		for c := range b.cases {
			require.Len(t, times[c][0], tuneRounds)
			require.Empty(t, times[c][1])
			require.Len(t, times[c][2], tuneRounds)
		}
		require.NotEqual(t, 1, take(list))
		calls, wrongAt = 0, 0
		_, err = b.compare(trials(), b.cases, "a test", 0, 1)
		require.ErrorIs(t, err, ErrWrong)
		// What does not write its output is found out too: the former one is gone.
		wrongAt = -1
		b.cases[0].kernel, b.cases[0].args = shaders.Copy, b.cases[0].args[:2]
		_, err = b.compare(trials(), b.cases, "a test", 0, 1)
		require.ErrorIs(t, err, ErrWrong)
		return nil
	})
	require.NoError(t, err)
}

// The default is kept unless a candidate is faster by more than the noise, and takes no
// kernel with it.
func TestJudge(t *testing.T) {
	cases := []tuneCase{{name: "add"}, {name: "sum"}}
	const n = 15
	steady := func(v float64) bench.Samples {
		s := make(bench.Samples, n)
		for i := range s {
			s[i] = v
		}
		return s
	}
	// shaken is v times as long in the middle, and anything in single rounds.
	shaken := func(v float64, rounds int) bench.Samples {
		s := steady(v)
		for i := range rounds {
			s[i] = 3 * v
		}
		return s
	}
	for name, c := range map[string]struct {
		add, sum bench.Samples
		why      string
	}{
		"faster":              {steady(80), steady(160), ""},
		"the same":            {steady(100), steady(200), "not faster"},
		"hardly faster":       {steady(98), steady(196), "not faster"},
		"slower":              {steady(120), steady(210), "not faster"},
		"one kernel slower":   {steady(50), steady(220), "sum takes 1.10 times as long"},
		"one kernel alone":    {steady(80), steady(200), ""},
		"two slow moments":    {shaken(80, 2), shaken(160, 2), ""},
		"shaken all the time": {shaken(80, 6), shaken(160, 6), "within the noise"},
	} {
		times := [][]bench.Samples{{steady(100), c.add}, {steady(200), c.sum}}
		trial := Trial{}
		judge(&trial, cases, times, 1)
		require.Equal(t, c.why, trial.Why, "%s: %+v", name, trial)
	}
	trial := Trial{}
	judge(&trial, cases, [][]bench.Samples{{steady(100), steady(50)}, {steady(200), steady(200)}}, 1)
	require.InDelta(t, math.Sqrt(0.5), trial.Time, 1e-9, "a slow kernel counts no more than a quick one")

	list := []Trial{{}, {Time: 0.9}, {Time: 0.5, Why: "within the noise"}, {Time: 0.8}, {Time: 0.95}}
	require.Equal(t, 3, take(list))
	require.True(t, list[3].Taken)
	require.Equal(t, "another was faster", list[1].Why)
	require.Equal(t, 0, take([]Trial{{}, {Time: 0.5, Why: "within the noise"}}))
}

// Candidates are different from each other and from what is there.
func TestCandidates(t *testing.T) {
	d := vktest.Open(t).Info()
	for _, base := range []shaders.Tuning{{}, shaders.CPUTuning(2), {Groups: shaders.MaxTunedGroups, Workgroup: 512}} {
		for _, k := range knobs() {
			list := k.candidates(base, d)
			if k.name == "vector rows" && base.Reads == shaders.Coalesced {
				require.Empty(t, list, "it would change nothing")
				continue
			}
			require.NotEmpty(t, list, k.name)
			seen := map[shaders.Tuning]bool{base: true}
			names := map[string]bool{}
			for _, c := range list {
				require.False(t, seen[c.tuning], "%s %s", k.name, c.name)
				require.False(t, names[c.name], "%s %s", k.name, c.name)
				require.NoError(t, c.tuning.Validate())
				seen[c.tuning], names[c.name] = true, true
			}
		}
	}
}
