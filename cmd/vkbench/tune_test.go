package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
