package metacache

import (
	"fmt"
	"math"
)

// Mode says which of the two rule sets of a Policy a look-up follows. A cache
// knows it from who was asked, the Cache or its Capture; only the questions to a
// Policy name it.
type Mode uint8

const (
	// Normal is the mode of ordinary launches: small infos, a bound, no pins.
	Normal Mode = iota
	// Capturing is the mode of launches recorded into a graph: every info,
	// without a bound, pinned until the graph goes.
	Capturing
)

// String names the mode.
func (m Mode) String() string {
	switch m {
	case Normal:
		return "normal"
	case Capturing:
		return "capturing"
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// Admission chooses the rule by which a full cache decides, at the look-up that
// missed, whether the new key is worth the entry it would push out.
type Admission uint8

const (
	// AdmitAll stores every cacheable key: plain least recently used.
	AdmitAll Admission = iota
	// AdmitFrequent stores a key in a full cache only if it was looked up more
	// often than what would be evicted for it. It keeps a stream of keys that
	// never come back (a step counter among the scalars) from flushing the
	// useful ones, and makes every look-up pay for one more hash.
	AdmitFrequent
)

// String names the rule.
func (a Admission) String() string {
	switch a {
	case AdmitAll:
		return "admit-all"
	case AdmitFrequent:
		return "admit-frequent"
	}
	return fmt.Sprintf("Admission(%d)", uint8(a))
}

// unbounded is the capacity of a mode without a bound.
const unbounded = math.MaxInt

// Largest values a Policy may hold. They are far beyond any use; what exceeds
// them is a mistake of units or of sign.
const (
	maxPolicyEntries    = 1 << 30
	maxPolicyCachedSize = 1 << 30
	maxPolicyBytes      = 1 << 50
)

// Policy owns every decision of a cache, each as a pure function of a size and
// a Mode; the Cache carries them out. The zero Policy caches nothing in Normal
// mode; DefaultPolicy is what most callers want.
//
// Sizes are bytes of info: eight for each word.
type Policy struct {
	// MaxEntries bounds the unpinned entries. 0 caches nothing in Normal mode.
	MaxEntries int
	// MaxCachedSize is the size in bytes of the largest info that Normal mode
	// caches.
	MaxCachedSize int
	// MaxBytes bounds the bytes of all unpinned entries together; 0 is no bound.
	MaxBytes int64
	// Admission is the rule for a full cache.
	Admission Admission
}

// DefaultPolicy returns 4096 entries of at most 2048 bytes, no bound on their
// sum, and every key admitted.
func DefaultPolicy() Policy {
	return Policy{MaxEntries: 4096, MaxCachedSize: 2048}
}

// Validate returns an error matching ErrPolicy that names the field and its
// range if the policy cannot be carried out.
func (p Policy) Validate() error {
	switch {
	case p.MaxEntries < 0 || p.MaxEntries > maxPolicyEntries:
		return fmt.Errorf("%w: MaxEntries must be in [0, %d], is %d", ErrPolicy, maxPolicyEntries, p.MaxEntries)
	case p.MaxCachedSize < 0 || p.MaxCachedSize > maxPolicyCachedSize:
		return fmt.Errorf("%w: MaxCachedSize must be in [0, %d] bytes, is %d", ErrPolicy, maxPolicyCachedSize, p.MaxCachedSize)
	case p.MaxBytes < 0 || p.MaxBytes > maxPolicyBytes:
		return fmt.Errorf("%w: MaxBytes must be in [0, %d] (0 is no bound), is %d", ErrPolicy, int64(maxPolicyBytes), p.MaxBytes)
	case p.Admission > AdmitFrequent:
		return fmt.Errorf("%w: Admission must be AdmitAll or AdmitFrequent, is %s", ErrPolicy, p.Admission)
	}
	return nil
}

// MaxSize returns the size of the largest info that mode m caches, -1 if it
// caches none, math.MaxInt if it caches all. In Normal mode that is no more than
// MaxBytes: a larger info would push out everything and still not fit.
func (p Policy) MaxSize(m Mode) int {
	switch {
	case m == Capturing:
		return unbounded
	case p.MaxEntries <= 0:
		return -1
	case p.MaxBytes > 0 && p.MaxBytes < int64(p.MaxCachedSize):
		return int(p.MaxBytes)
	}
	return p.MaxCachedSize
}

// ShouldCache says whether an info of size bytes is cached in mode m.
func (p Policy) ShouldCache(size int, m Mode) bool { return size <= p.MaxSize(m) }

// Capacity returns how many entries mode m keeps: MaxEntries unpinned ones in
// Normal mode, math.MaxInt while capturing.
func (p Policy) Capacity(m Mode) int {
	if m == Capturing {
		return unbounded
	}
	return p.MaxEntries
}

// PinsEntries says whether the entries that a look-up in mode m touches are
// pinned.
func (p Policy) PinsEntries(m Mode) bool { return m == Capturing }

// fits says whether entries unpinned entries of bytes bytes in all are within
// what mode m keeps.
func (p Policy) fits(entries int, bytes int64, m Mode) bool {
	return m == Capturing || entries <= p.MaxEntries && (p.MaxBytes == 0 || bytes <= p.MaxBytes)
}
