package pool

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInstallRefusesWhileAnythingIsAliveAndChangesNothing(t *testing.T) {
	m, src, _ := newFake(t, Options{})
	a, err := m.Alloc(1000)
	require.NoError(t, err)
	i, err := m.AllocInfo(24)
	require.NoError(t, err)
	require.NoError(t, i.RetainAs(Graph))
	require.NoError(t, i.HandOver(User, Cache))
	_, err = m.Alloc(0)
	require.NoError(t, err)
	before := m.Stats()
	err = m.Install(ExclusivePages())
	require.ErrorIs(t, err, ErrInUse)
	var inUse *InUseError
	require.ErrorAs(t, err, &inUse)
	assert.Equal(t, InUseError{Slices: 3, Bytes: 1024, HeldByGraph: 1, HeldByCache: 1}, *inUse)
	assert.Contains(t, err.Error(), "3 slices of 1024 bytes are alive, 1 of them held by graphs and 1 by the metadata cache")
	assert.Equal(t, before, m.Stats())
	assert.Zero(t, src.closed)
	assert.True(t, a.Valid())
	valid(t, m)
}

func TestInstallReturnsEveryPageAndRebuilds(t *testing.T) {
	m, src, tl := newFake(t, Options{})
	for _, size := range []uint64{10, 100_000, 1 << 22, 1 << 26} {
		s, err := m.Alloc(size)
		require.NoError(t, err)
		require.NoError(t, s.Use(1))
		require.NoError(t, s.Release())
	}
	tl.driver.Store(1)
	require.NoError(t, m.Install(ExclusivePages()))
	assert.Empty(t, src.open)
	assert.Equal(t, 4, src.closed)
	s, err := m.Alloc(10)
	require.NoError(t, err)
	assert.Equal(t, Exclusive, s.s.page.pool.spec.Kind)
	valid(t, m)
}

func TestInstallAroundKeepsWhatGraphsHold(t *testing.T) {
	m, src, tl := newFake(t, Options{})
	a, err := m.Alloc(1000)
	require.NoError(t, err)
	i, err := m.AllocInfo(24)
	require.NoError(t, err)
	other, err := m.Alloc(1 << 22)
	require.NoError(t, err)
	require.NoError(t, a.HandOver(User, Graph))
	require.NoError(t, i.HandOver(User, Graph))
	require.ErrorIs(t, m.InstallAround(ExclusivePages()), ErrInUse, "nobody but its user holds the third")
	require.NoError(t, other.Release())
	require.NoError(t, m.InstallAround(ExclusivePages()))
	valid(t, m)
	assert.Len(t, src.open, 2)
	assert.True(t, a.Valid())
	n, err := m.Alloc(1000)
	require.NoError(t, err)
	assert.NotSame(t, a.s.page, n.s.page, "replaced pages take nothing new")
	// The second replacement keeps the first one's pages too.
	require.NoError(t, n.Release())
	require.NoError(t, m.InstallAround(SubSlices()))
	valid(t, m)
	require.NoError(t, a.Use(2))
	require.NoError(t, i.Use(2))
	require.NoError(t, a.ReleaseAs(Graph))
	require.NoError(t, i.ReleaseAs(Graph))
	assert.Len(t, src.open, 2, "serial 2 has not completed")
	tl.complete(2)
	m.Drain()
	assert.Empty(t, src.open)
	assert.Empty(t, m.orphans)
	valid(t, m)
	require.NoError(t, m.Close())
}

func TestTheLastReleaseReturnsAReplacedPage(t *testing.T) {
	m, src, _ := newFake(t, Options{})
	a, err := m.Alloc(1000)
	require.NoError(t, err)
	require.NoError(t, a.HandOver(User, Graph))
	require.NoError(t, m.InstallAround(SubSlices()))
	require.NoError(t, a.ReleaseAs(Graph))
	assert.Empty(t, src.open)
}

func TestCloseReportsWhatIsAliveAndCanBeRepeated(t *testing.T) {
	m, src, tl := newFake(t, Options{})
	a, err := m.Alloc(1000)
	require.NoError(t, err)
	i, err := m.AllocInfo(24)
	require.NoError(t, err)
	gone, err := m.Alloc(1 << 22)
	require.NoError(t, err)
	require.NoError(t, gone.Release())
	require.NoError(t, i.Use(3))
	require.NoError(t, i.Release())
	err = m.Close()
	require.ErrorIs(t, err, ErrLeak)
	var leak *LeakError
	require.ErrorAs(t, err, &leak)
	leak.Stacks = nil
	assert.Equal(t, LeakError{Slices: 1, Bytes: 1000, Waiting: 1, Serial: 3, Pages: 2}, *leak)
	assert.Len(t, src.open, 2, "what is alive keeps its memory, and so does what is busy")
	_, err = m.Alloc(1)
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, m.Install(Layout{}), ErrClosed)
	require.True(t, a.Valid())
	require.NoError(t, a.Release())
	assert.Len(t, src.open, 1)
	tl.driver.Store(3)
	require.NoError(t, m.Close())
	assert.Empty(t, src.open)
	require.NoError(t, m.Close())
	valid(t, m)
}

// The layout changes between the plan for a page and the page: the slice must
// come from the new one, and no page may end up where nobody looks for it.
func TestReplacingTheLayoutWhileAPageIsPlanned(t *testing.T) {
	m, src, tl := newFake(t, Options{})
	src.limit = 1
	tl.onRefresh = func() { // of the cleanup after the first refusal
		src.limit = 0
		require.NoError(t, m.Install(ExclusivePages()))
	}
	s, err := m.Alloc(100)
	require.NoError(t, err)
	assert.Equal(t, Exclusive, s.s.page.pool.spec.Kind)
	valid(t, m)
	require.NoError(t, s.Release())
	require.NoError(t, m.Close())
	assert.Empty(t, src.open)
}

func TestClosingWhileAPageIsMadeReturnsIt(t *testing.T) {
	m, src, _ := newFake(t, Options{})
	src.beforeMake = func() {
		var inUse *InUseError
		require.ErrorAs(t, m.Install(Layout{}), &inUse)
		assert.Equal(t, 1, inUse.Creating)
		assert.NoError(t, m.Close())
	}
	_, err := m.Alloc(100)
	require.ErrorIs(t, err, ErrClosed)
	assert.Empty(t, src.open)
	valid(t, m)
}
