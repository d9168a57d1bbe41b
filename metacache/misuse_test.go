package metacache_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/metacache"
)

func TestNewRefusesABadPolicy(t *testing.T) {
	good := metacache.DefaultPolicy()
	for name, change := range map[string]func(*metacache.Policy){
		"MaxEntries must be in [0, 1073741824], is -1":                           func(p *metacache.Policy) { p.MaxEntries = -1 },
		"MaxEntries must be in [0, 1073741824], is 9223372036854775807":          func(p *metacache.Policy) { p.MaxEntries = math.MaxInt64 },
		"MaxCachedSize must be in [0, 1073741824] bytes, is -8":                  func(p *metacache.Policy) { p.MaxCachedSize = -8 },
		"MaxCachedSize must be in [0, 1073741824] bytes, is 9223372036854775807": func(p *metacache.Policy) { p.MaxCachedSize = math.MaxInt64 },
		"MaxBytes must be in [0, 1125899906842624] (0 is no bound), is -1":       func(p *metacache.Policy) { p.MaxBytes = -1 },
		"is 9223372036854775807":                                                 func(p *metacache.Policy) { p.MaxBytes = math.MaxInt64 },
		"Admission must be AdmitAll or AdmitFrequent, is Admission(9)":           func(p *metacache.Policy) { p.Admission = 9 },
	} {
		bad := good
		change(&bad)
		c, err := metacache.New(bad, func(int) {})
		require.ErrorIs(t, err, metacache.ErrPolicy)
		assert.ErrorContains(t, err, name)
		assert.Nil(t, c)
	}
}

func TestNewRefusesANilRelease(t *testing.T) {
	c, err := metacache.New[int](metacache.DefaultPolicy(), nil)
	require.ErrorIs(t, err, metacache.ErrNoRelease)
	assert.Nil(t, c)
}

func TestDefaultPolicy(t *testing.T) {
	assert.Equal(t, metacache.Policy{MaxEntries: 4096, MaxCachedSize: 2048}, metacache.DefaultPolicy())
	assert.NoError(t, metacache.DefaultPolicy().Validate())
	assert.NoError(t, metacache.Policy{}.Validate())
}

func TestPolicyDecides(t *testing.T) {
	p := metacache.Policy{MaxEntries: 3, MaxCachedSize: 16, MaxBytes: 40}
	assert.True(t, p.ShouldCache(0, metacache.Normal))
	assert.True(t, p.ShouldCache(16, metacache.Normal))
	assert.False(t, p.ShouldCache(24, metacache.Normal))
	assert.True(t, p.ShouldCache(1<<20, metacache.Capturing))
	assert.False(t, metacache.Policy{MaxCachedSize: 16}.ShouldCache(0, metacache.Normal))
	assert.True(t, metacache.Policy{}.ShouldCache(8, metacache.Capturing))
	assert.Equal(t, 16, p.MaxSize(metacache.Normal))
	assert.Equal(t, 8, metacache.Policy{MaxEntries: 1, MaxCachedSize: 16, MaxBytes: 8}.MaxSize(metacache.Normal))
	assert.Equal(t, -1, metacache.Policy{MaxCachedSize: 16}.MaxSize(metacache.Normal))
	assert.Equal(t, math.MaxInt, p.MaxSize(metacache.Capturing))
	assert.Equal(t, 3, p.Capacity(metacache.Normal))
	assert.Equal(t, math.MaxInt, p.Capacity(metacache.Capturing))
	assert.False(t, p.PinsEntries(metacache.Normal))
	assert.True(t, p.PinsEntries(metacache.Capturing))
}

func TestNames(t *testing.T) {
	assert.Equal(t, "normal", metacache.Normal.String())
	assert.Equal(t, "capturing", metacache.Capturing.String())
	assert.Equal(t, "Mode(7)", metacache.Mode(7).String())
	assert.Equal(t, "admit-all", metacache.AdmitAll.String())
	assert.Equal(t, "admit-frequent", metacache.AdmitFrequent.String())
}

func TestTheEmptyKeyIsValid(t *testing.T) {
	c, _ := newCache(t, policy(4))
	put(t, c.Lookup, nil, 1)
	v, hit, _ := c.Lookup([]uint64{})
	assert.True(t, hit)
	assert.Equal(t, 1, v)
	_, hit, _ = c.Lookup([]uint64{0})
	assert.False(t, hit)
}

func TestAMissIsStoredOnce(t *testing.T) {
	c, released := newCache(t, policy(4))
	_, _, miss := c.Lookup(words(1))
	_, err := miss.Store(1)
	require.NoError(t, err)
	_, err = miss.Store(1)
	require.ErrorIs(t, err, metacache.ErrMissUsed)
	c.ClearUnpinned()
	assert.Equal(t, []int{1}, *released, "the refused store neither kept nor released anything")
	_, err = miss.Store(2)
	require.ErrorIs(t, err, metacache.ErrMissUsed, "also when the entry is gone")
	assert.Zero(t, c.Len())
}

func TestAMissThatWantsNoStoreTakesNone(t *testing.T) {
	c, released := newCache(t, policy(4))
	_, _, miss := c.Lookup(make([]uint64, 3))
	require.False(t, miss.Wanted())
	_, err := miss.Store(1)
	require.ErrorIs(t, err, metacache.ErrNotWanted)

	var zero metacache.Miss[int]
	assert.False(t, zero.Wanted())
	_, err = zero.Store(1)
	require.ErrorIs(t, err, metacache.ErrNotWanted)
	assert.Empty(t, *released)
	assert.Zero(t, c.Len())
}

func TestAMissExpires(t *testing.T) {
	c, _ := newCache(t, policy(4))
	_, _, first := c.Lookup(words(0))
	var last metacache.Miss[int]
	for n := range uint64(metacache.OpenMisses - 1) {
		_, _, last = c.Lookup(words(n + 1))
	}
	_, err := first.Store(1)
	require.NoError(t, err, "the oldest that is still open")
	_, _, first = c.Lookup(words(100))
	for n := range uint64(metacache.OpenMisses) {
		c.Lookup(words(n + 101))
	}
	_, err = first.Store(1)
	require.ErrorIs(t, err, metacache.ErrMissUsed)
	_, err = last.Store(1)
	require.ErrorIs(t, err, metacache.ErrMissUsed)
	assert.Equal(t, 1, c.Len())
}

func TestWordsMustNotChangeBeforeTheStore(t *testing.T) {
	c, _ := newCache(t, policy(4))
	key := words(1)
	_, _, miss := c.Lookup(key)
	key[0] = 2
	_, err := miss.Store(1)
	require.ErrorIs(t, err, metacache.ErrKeyChanged)
	key[0] = 1
	_, err = miss.Store(1)
	require.NoError(t, err, "the error changed nothing")
}

func TestTheKeyIsCopiedAtTheStore(t *testing.T) {
	c, _ := newCache(t, policy(4))
	key := words(1)
	put(t, c.Lookup, key, 1)
	key[0] = 2
	_, hit, _ := c.Lookup(key)
	assert.False(t, hit)
	_, hit, _ = c.Lookup(words(1))
	assert.True(t, hit)
}

func TestAMissOutlivesOtherChanges(t *testing.T) {
	c, released := newCache(t, policy(2))
	key := words(1)
	_, _, miss := c.Lookup(key)
	put(t, c.Lookup, words(2), 2)
	c.ClearUnpinned()
	k := begin(t, c)
	put(t, k.Lookup, words(3), 3)
	require.NoError(t, k.Commit(1))
	kept, err := miss.Store(1)
	require.NoError(t, err)
	assert.Equal(t, 1, kept)
	assert.Equal(t, []int{2}, *released)
}

func TestACaptureEndsOnce(t *testing.T) {
	for name, end := range map[string]func(*metacache.Capture[int]) error{
		"commit":  func(k *metacache.Capture[int]) error { return k.Commit(1) },
		"discard": func(k *metacache.Capture[int]) error { return k.Discard() },
	} {
		t.Run(name, func(t *testing.T) {
			c, released := newCache(t, policy(4))
			k := begin(t, c)
			put(t, k.Lookup, words(1), 1)
			_, _, late := k.Lookup(words(2))
			require.NoError(t, end(k))
			before := c.Stats()

			require.ErrorIs(t, k.Commit(2), metacache.ErrCaptureOver)
			require.ErrorIs(t, k.Discard(), metacache.ErrCaptureOver)
			_, hit, miss := k.Lookup(words(1))
			assert.False(t, hit)
			assert.False(t, miss.Wanted())
			_, err := late.Store(2)
			require.ErrorIs(t, err, metacache.ErrCaptureOver)

			next := begin(t, c)
			require.ErrorIs(t, k.Discard(), metacache.ErrCaptureOver, "the next capture is not its to end")
			_, err = late.Store(2)
			require.ErrorIs(t, err, metacache.ErrCaptureOver, "nor to store in")
			require.NoError(t, next.Discard())
			assert.Equal(t, before, c.Stats())
			assert.Empty(t, *released)
		})
	}
}

func TestACaptureThatBeginDidNotMake(t *testing.T) {
	for _, k := range []*metacache.Capture[int]{nil, {}} {
		_, hit, miss := k.Lookup(words(1))
		assert.False(t, hit)
		assert.False(t, miss.Wanted())
		require.ErrorIs(t, k.Commit(1), metacache.ErrCaptureOver)
		require.ErrorIs(t, k.Discard(), metacache.ErrCaptureOver)
	}
}

func TestAFailedCommitLeavesTheCaptureOpen(t *testing.T) {
	c, _ := newCache(t, policy(4))
	require.NoError(t, begin(t, c).Commit(1))
	k := begin(t, c)
	put(t, k.Lookup, words(1), 1)
	require.ErrorIs(t, k.Commit(1), metacache.ErrGraphInUse)
	_, hit, _ := k.Lookup(words(1))
	assert.True(t, hit)
	require.True(t, c.GraphRelease(1))
	require.NoError(t, k.Commit(1), "a released ID is free again")
}

func TestACommitOfNothingIsFine(t *testing.T) {
	c, _ := newCache(t, policy(4))
	require.NoError(t, begin(t, c).Commit(0))
	assert.Equal(t, 1, c.Stats().Graphs)
	assert.NoError(t, c.Clear(), "it pins nothing")
	assert.True(t, c.GraphRelease(0))
	assert.False(t, c.GraphRelease(0))
}

func TestClearRefusesWhileACapturePins(t *testing.T) {
	c, released := newCache(t, policy(4))
	put(t, c.Lookup, words(1), 1)
	k := begin(t, c)
	require.NoError(t, c.Clear(), "the capture has touched nothing yet")
	put(t, k.Lookup, words(2), 2)
	err := c.Clear()
	require.ErrorIs(t, err, metacache.ErrPinned)
	assert.ErrorContains(t, err, "found 1 entries of 8 bytes pinned by 0 graphs and 1 running captures")
	assert.Equal(t, []int{1}, *released)
	require.NoError(t, k.Discard())
	require.NoError(t, c.Clear())
	assert.Equal(t, []int{1, 2}, *released)
}

func TestAGraphReleasedDuringACaptureThatSharesItsEntries(t *testing.T) {
	c, released := newCache(t, policy(4))
	first := begin(t, c)
	put(t, first.Lookup, words(1), 1)
	put(t, first.Lookup, words(2), 2)
	require.NoError(t, first.Commit(1))
	second := begin(t, c)
	_, hit, _ := second.Lookup(words(1))
	require.True(t, hit)
	require.True(t, c.GraphRelease(1))
	assert.Equal(t, []int{2}, *released)
	require.NoError(t, second.Discard())
	_, hit, _ = c.Lookup(words(1))
	assert.True(t, hit, "the discard left an ordinary entry")
}

func TestCloseReleasesEverythingAndEndsTheCapture(t *testing.T) {
	c, released := newCache(t, policy(4))
	put(t, c.Lookup, words(1), 1)
	k := begin(t, c)
	put(t, k.Lookup, words(2), 2)
	require.NoError(t, k.Commit(1))
	k = begin(t, c)
	put(t, k.Lookup, words(3), 3)
	_, _, late := c.Lookup(words(4))

	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	assert.ElementsMatch(t, []int{1, 2, 3}, *released)
	isClosed(t, c)
	_, err := late.Store(4)
	require.ErrorIs(t, err, metacache.ErrClosed)
	require.ErrorIs(t, k.Commit(2), metacache.ErrClosed)
	require.ErrorIs(t, k.Discard(), metacache.ErrClosed)
	_, hit, miss := k.Lookup(words(3))
	assert.False(t, hit)
	assert.False(t, miss.Wanted())
}

func TestAZeroCacheIsClosed(t *testing.T) {
	var c metacache.Cache[int]
	require.NoError(t, c.Close())
	isClosed(t, &c)
}

func isClosed(t *testing.T, c *metacache.Cache[int]) {
	t.Helper()
	for _, key := range [][]uint64{nil, words(1)} {
		_, hit, miss := c.Lookup(key)
		assert.False(t, hit)
		assert.False(t, miss.Wanted())
	}
	_, err := c.Insert(words(1), 1)
	require.ErrorIs(t, err, metacache.ErrClosed)
	_, err = c.Begin()
	require.ErrorIs(t, err, metacache.ErrClosed)
	require.ErrorIs(t, c.Clear(), metacache.ErrClosed)
	c.ClearUnpinned()
	assert.False(t, c.GraphRelease(1))
	assert.Zero(t, c.Len())
	assert.NoError(t, c.Validate())
}
