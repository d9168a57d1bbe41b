package bench_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/bench"
)

// spin takes at least d a shot.
func spin(d time.Duration, note func(shots int)) func(int) error {
	return func(shots int) error {
		if note != nil {
			note(shots)
		}
		for end := time.Now().Add(time.Duration(shots) * d); time.Now().Before(end); {
		}
		return nil
	}
}

func TestMeasureTakesOneSampleOfEachCaseARound(t *testing.T) {
	var order []string
	record := func(name string) func(int) { return func(int) { order = append(order, name) } }
	groups := []bench.Group{
		{Cases: []bench.Case{{Name: "a", Run: spin(0, record("a"))}, {Name: "b", Run: spin(0, record("b"))}}},
		{Cases: []bench.Case{{Name: "c", Run: spin(0, record("c"))}}},
	}
	const rounds = 12
	warm := -1
	samples, err := bench.Measure(context.Background(), groups, bench.Options{Rounds: rounds, Shot: time.Nanosecond, Progress: func(bench.Progress) {
		if warm < 0 {
			warm = len(order)
		}
	}})
	require.NoError(t, err)
	require.Len(t, samples, 2)
	for g := range samples {
		for c := range samples[g] {
			require.Len(t, samples[g][c], rounds)
		}
	}
	rest := order[warm:]
	require.Len(t, rest, rounds*3*2, "each sample is one shot to settle and one that counts")
	orders := map[string]bool{}
	for i := 0; i < len(rest); i += 6 {
		seen := map[string]int{}
		key := ""
		for _, name := range rest[i : i+6] {
			seen[name]++
			key += name
		}
		require.Equal(t, map[string]int{"a": 2, "b": 2, "c": 2}, seen)
		orders[key] = true
	}
	require.Greater(t, len(orders), 1, "the order never changed")
}

func TestMeasureChoosesShotsByTheFastestOfAGroup(t *testing.T) {
	var fast, slow, alone int
	most := func(n *int) func(int) { return func(shots int) { *n = max(*n, shots) } }
	groups := []bench.Group{
		{Cases: []bench.Case{{Run: spin(50*time.Microsecond, most(&fast))}, {Run: spin(200*time.Microsecond, most(&slow))}}},
		{Cases: []bench.Case{{Run: spin(3*time.Millisecond, most(&alone))}}},
	}
	samples, err := bench.Measure(context.Background(), groups, bench.Options{Rounds: 3, Shot: time.Millisecond})
	require.NoError(t, err)
	require.Equal(t, fast, slow, "what is compared has samples of one size")
	require.Greater(t, fast, 1)
	require.LessOrEqual(t, fast, 20)
	require.Equal(t, 1, alone)
	require.GreaterOrEqual(t, bench.Median(samples[0][1]), float64(200*time.Microsecond), "per shot")
}

func TestMeasureGoesOnForItsTime(t *testing.T) {
	groups := []bench.Group{{Cases: []bench.Case{{Run: spin(time.Millisecond, nil)}}}}
	samples, err := bench.Measure(context.Background(), groups, bench.Options{Rounds: 2, Time: 500 * time.Millisecond, Shot: time.Nanosecond})
	require.NoError(t, err)
	require.Greater(t, len(samples[0][0]), 2)
	require.LessOrEqual(t, len(samples[0][0]), 501)
}

func TestMeasureStopsAtAnError(t *testing.T) {
	boom := errors.New("boom")
	runs := 0
	groups := []bench.Group{{Cases: []bench.Case{{Name: "breaks", Run: func(int) error {
		if runs++; runs > 8 {
			return boom
		}
		return nil
	}}}}}
	samples, err := bench.Measure(context.Background(), groups, bench.Options{Rounds: 100})
	require.ErrorIs(t, err, boom)
	require.ErrorContains(t, err, "breaks")
	require.Nil(t, samples)
	require.Equal(t, 9, runs)
}

func TestMeasureStopsBetweenSamples(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	runs := 0
	groups := []bench.Group{{Cases: []bench.Case{{Run: func(int) error {
		if runs++; runs == 20 {
			cancel()
		}
		return nil
	}}}}}
	_, err := bench.Measure(ctx, groups, bench.Options{Rounds: 1000})
	require.ErrorIs(t, err, bench.ErrInterrupted)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 20, runs)
}

func TestMeasureRefusesTooMany(t *testing.T) {
	_, err := bench.Measure(context.Background(), nil, bench.Options{Rounds: bench.MaxRounds + 1})
	require.Error(t, err)
}

func TestMeasureKeepsToItsLimit(t *testing.T) {
	groups := []bench.Group{{Cases: []bench.Case{{Run: spin(4*time.Millisecond, nil)}}}}
	o := bench.Options{Rounds: 500, Time: time.Hour, Limit: time.Millisecond, Shot: time.Nanosecond}
	samples, err := bench.Measure(context.Background(), groups, o)
	require.NoError(t, err)
	require.Len(t, samples[0][0], bench.FewRounds)
	o.Rounds, o.Limit = 2, time.Hour
	o.Time = 0
	samples, err = bench.Measure(context.Background(), groups, o)
	require.NoError(t, err)
	require.Len(t, samples[0][0], 2)
}

// Each sample is preceded by the shots that the case asks for.
func TestWarm(t *testing.T) {
	calls := map[string][]int{}
	run := func(name string) func(int) error {
		return func(shots int) error { calls[name] = append(calls[name], shots); return nil }
	}
	groups := []bench.Group{{Cases: []bench.Case{{Name: "cold", Run: run("cold")}, {Name: "warm", Run: run("warm"), Warm: 7}}}}
	samples, err := bench.Measure(context.Background(), groups, bench.Options{Rounds: 3, Shot: time.Nanosecond})
	require.NoError(t, err)
	require.Len(t, samples[0][1], 3)
	for name, first := range map[string]int{"cold": 1, "warm": 7} {
		require.Len(t, calls[name], 2*(3+3), "three to warm up, and three rounds")
		for i, n := range calls[name] {
			if i%2 == 0 {
				require.Equal(t, first, n, name)
			}
		}
	}
}

// A shot that takes long is run no more often than it takes.
func TestLongShots(t *testing.T) {
	calls := 0
	groups := []bench.Group{{Cases: []bench.Case{{Name: "long", Run: spin(30*time.Millisecond, func(shots int) { calls += shots })}}}}
	samples, err := bench.Measure(context.Background(), groups, bench.Options{Rounds: 4})
	require.NoError(t, err)
	require.Len(t, samples[0][0], 4)
	require.Equal(t, 2+4, calls, "two to know it, and a round each")
}
