package metacache

import "errors"

// Errors that callers match with errors.Is. Each comes wrapped with what was
// wanted, what was found and what to do. An operation that returns one of them
// has changed nothing.
var (
	// ErrPolicy: a policy that cannot be carried out.
	ErrPolicy = errors.New("metacache: bad policy")
	// ErrNoRelease: a cache made without a function to give values back through.
	ErrNoRelease = errors.New("metacache: no release function")
	// ErrClosed: the cache was closed, or is a zero Cache that New did not make.
	ErrClosed = errors.New("metacache: cache is closed")
	// ErrReleasing: a call from inside the release function that would need the
	// cache to hand out or take back values while it is giving values back.
	ErrReleasing = errors.New("metacache: called from inside the release function")
	// ErrNotCacheable: an info that the policy does not cache in Normal mode.
	ErrNotCacheable = errors.New("metacache: info is not cacheable")
	// ErrNotWanted: a store for a look-up that wanted none.
	ErrNotWanted = errors.New("metacache: the look-up wanted no store")
	// ErrMissUsed: a Miss that was stored already, or one so old that it has
	// expired.
	ErrMissUsed = errors.New("metacache: miss was used already or has expired")
	// ErrKeyChanged: the words lent to a look-up were changed before its store.
	ErrKeyChanged = errors.New("metacache: words changed between look-up and store")
	// ErrCaptureOpen: a second capture, while the one a cache can have is open.
	ErrCaptureOpen = errors.New("metacache: a capture is open")
	// ErrCaptureOver: a capture used after its Commit, its Discard or the Close
	// of its cache.
	ErrCaptureOver = errors.New("metacache: capture is over")
	// ErrGraphInUse: a commit under the ID of a graph that was not released.
	ErrGraphInUse = errors.New("metacache: graph ID is in use")
	// ErrPinned: Clear, while a graph or the running capture pins entries.
	ErrPinned = errors.New("metacache: entries are pinned")
)
