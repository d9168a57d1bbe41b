package workload_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/internal/metaport/workload"
)

// TestCasesRun: every case answers rightly, also when it is run in several
// goes and for less than a round.
func TestCasesRun(t *testing.T) {
	var cases []workload.Case
	add := func(c workload.Case, err error) {
		require.NoError(t, err)
		cases = append(cases, c)
	}
	for _, words := range workload.HitWords() {
		add(workload.Hit(words))
	}
	c, err := workload.HitAmong(50, 3, workload.AtRandom)
	add(c, err)
	for _, entries := range []int{1, 64, 512} {
		add(workload.Miss(entries))
	}
	for _, infos := range []int{0, 1, 1000} {
		add(workload.Capture(infos))
	}
	names := map[string]bool{}
	for _, c := range cases {
		assert.False(t, names[c.Name], c.Name)
		names[c.Name] = true
		for _, n := range []int{0, 1, 3, 10} {
			require.NoError(t, c.Cache(n), c.Name)
			require.NoError(t, c.Port(n), c.Name)
		}
	}
	assert.Contains(t, names, "hit/words=64")
	assert.Contains(t, names, "miss/entries=512")
}

func TestSizesOutOfRangeAreErrors(t *testing.T) {
	for _, infos := range []int{-1, 0, 4097} {
		_, err := workload.HitAmong(infos, 4, workload.InTurn)
		assert.Error(t, err)
	}
	for _, words := range []int{0, 257} {
		_, err := workload.Hit(words)
		assert.Error(t, err)
	}
	_, err := workload.Miss(0)
	assert.Error(t, err)
	_, err = workload.Capture(-1)
	assert.Error(t, err)
}

func TestScalars(t *testing.T) {
	for _, s := range workload.Scalars() {
		c, err := workload.NewScalar(s)
		require.NoError(t, err)
		assert.Equal(t, s.String(), c.Name)
		require.NoError(t, c.Run(1000))
		assert.Equal(t, uint64(1000), c.Stats().Lookups())
	}
	assert.Equal(t, "Scalar(9)", workload.Scalar(9).String())
}
