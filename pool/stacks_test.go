//go:build poolstacks

package pool

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestALeakNamesTheAllocation(t *testing.T) {
	m, _, _ := newFake(t, Options{})
	kept, err := m.Alloc(100)
	require.NoError(t, err)
	gone, err := m.Alloc(100)
	require.NoError(t, err)
	require.NoError(t, gone.Release())
	var leak *LeakError
	require.ErrorAs(t, m.Close(), &leak)
	require.Len(t, leak.Stacks, 1)
	assert.Contains(t, leak.Error(), "TestALeakNamesTheAllocation")
	require.NoError(t, kept.Release())
	require.NoError(t, m.Close())
}
