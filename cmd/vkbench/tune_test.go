package main

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/bench/suite"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// A wrong candidate is told and is an error, beside what was found without it.
func TestWrongCandidatesFailTheSearch(t *testing.T) {
	for _, format := range []string{"table", "json"} {
		found := suite.Tuned{Gain: 1, Tried: []suite.Trial{
			{Knob: "tile", Value: "good", Why: "not faster"},
			{Knob: "tile", Value: "bad", Wrong: fmt.Errorf("matmul: %w: as if", suite.ErrWrong)},
		}}
		var out bytes.Buffer
		c := tuneCommand{Format: format}
		err := c.report(output{out: &out}, newTuneReport(&vk.DeviceInfo{}, &found), &found)
		require.ErrorIs(t, err, suite.ErrWrong)
		require.ErrorContains(t, err, "tile bad")
		require.NotContains(t, err.Error(), "good")
		require.Contains(t, out.String(), "chosen")
		found.Tried = found.Tried[:1]
		require.NoError(t, c.report(output{out: &out}, newTuneReport(&vk.DeviceInfo{}, &found), &found))
	}
}

// Every value of a tuning that counts is in its line.
func TestTuningText(t *testing.T) {
	text := tuningText(shaders.Tuning{})
	require.Contains(t, text, "1024 groups of the size that suits each kernel")
	require.NotContains(t, text, "vectors")
	text = tuningText(shaders.Tuning{Reads: shaders.Scattered, Groups: 6, Workgroup: 256, VectorRows: 4, MatMul: shaders.Tile{Down: 2, Across: 32, Rows: 8, Cols: 16}})
	require.Equal(t, "reads scattered, 6 groups of 256, vectors with 4 rows at a time, matrix product direct in groups of 2×32 with 8×16 results each", text)
	require.Contains(t, tuningText(shaders.CPUTuning(2)), "vectors with 8 rows at a time")
}

// Of the trials of one value the most telling is shown.
func TestTrialsInOrder(t *testing.T) {
	list := []tuneTrial{{Time: 0.9, Rounds: 9, Taken: true}, {Time: 0.8, Rounds: 9}, {Time: 1.2, Rounds: 9}, {Time: 0.5}, {Time: 0.7}, {}}
	for i := range list {
		require.False(t, list[i].before(&list[i]))
		for j := i + 1; j < len(list); j++ {
			require.True(t, list[i].before(&list[j]), "%d before %d", i, j)
			require.False(t, list[j].before(&list[i]), "%d before %d", j, i)
		}
	}
}
