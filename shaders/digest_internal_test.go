package shaders

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A word of any kernel's code that is another makes another digest.
func TestTheDigestIsOfAllCode(t *testing.T) {
	want := digest(Builtins())
	require.Equal(t, want, BuiltinsDigest())
	for _, shared := range Builtins() {
		list := Builtins()
		m := *shared.Module
		m.Words = slices.Clone(m.Words)
		m.Words[len(m.Words)-1]++
		for i, k := range list {
			if k.Module == shared.Module {
				changed := *k
				changed.Module = &m
				list[i] = &changed
			}
		}
		require.NotEqual(t, want, digest(list), shared.Name)
	}
}
