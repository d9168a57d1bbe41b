package metacache

import "fmt"

// Miss is what a look-up that found nothing leaves for the store of the value
// the caller then builds. It carries the mode of its own look-up, so that other
// look-ups in between make no difference, and it can be stored once.
//
// A Miss expires after OpenMisses further look-ups that wanted a store, with
// its capture, and with its cache. Forgetting it is fine.
type Miss[V any] struct {
	cache *Cache[V]
	// key shares the memory of the words that were lent. A slice would make the
	// struct five machine words, one more than the compiler keeps in registers:
	// a hit, which returns a zero Miss, took up to twice as long.
	key    string
	ticket uint64
}

// OpenMisses is how many look-ups of one cache may await their stores at once;
// the next one makes the oldest expire.
const OpenMisses = 64

// ticketRing remembers the look-ups that a store may still belong to.
type ticketRing struct {
	issued uint64
	slots  [OpenMisses]ticket
}

// ticket is one look-up that wants a store.
type ticket struct {
	// number is the ticket's, 0 once it was used.
	number uint64
	// sum tells whether the caller changed the words it lent: stored, they
	// would make hits for words they never stood for.
	sum uint64
	// capture is the serial number of the look-up's capture, 0 in Normal mode.
	capture uint64
}

func (r *ticketRing) issue(sum, capture uint64) uint64 {
	r.issued++
	r.slots[r.issued%OpenMisses] = ticket{number: r.issued, sum: sum, capture: capture}
	return r.issued
}

// missed counts a look-up of words with this sum that found nothing, and opens a
// ticket if it wants a store.
func (c *Cache[V]) missed(words []uint64, sum uint64, mode Mode) (v V, hit bool, miss Miss[V]) {
	c.counts.misses++
	capture := uint64(0)
	switch {
	case mode == Capturing:
		capture = c.captures
	case c.policy.Admission == AdmitFrequent && !c.admits(sum, 8*len(words)):
		c.counts.rejected++
		return v, false, miss
	}
	return v, false, Miss[V]{cache: c, key: keyOf(words), ticket: c.tickets.issue(sum, capture)}
}

// Wanted says whether the value should be stored. If not, the caller keeps it
// for itself and releases it after use.
func (m Miss[V]) Wanted() bool { return m.cache != nil }

// Store gives v to the cache under the words of the look-up, which it copies.
// If the key was stored in the meantime, the value that is there stays, because
// a graph may have recorded it, and v is released. kept is the value the cache
// holds now, lent like that of a hit; use it instead of v.
//
// On an error nothing has changed and the caller still owns v. The errors match
// ErrNotWanted, ErrMissUsed, ErrKeyChanged, ErrCaptureOver, ErrClosed or
// ErrReleasing.
func (m Miss[V]) Store(v V) (kept V, err error) {
	c := m.cache
	if c == nil {
		return kept, fmt.Errorf("%w: keep the value and release it after use", ErrNotWanted)
	}
	if err := c.refuse("store"); err != nil {
		return kept, err
	}
	t := &c.tickets.slots[m.ticket%OpenMisses]
	if t.number != m.ticket {
		return kept, fmt.Errorf("%w: want one store for each miss and at most %d misses open at once, found look-up %d used or more than that behind %d; look the words up again",
			ErrMissUsed, OpenMisses, m.ticket, c.tickets.issued)
	}
	mode := Normal
	if t.capture != 0 {
		if c.capture == nil || c.captures != t.capture {
			return kept, fmt.Errorf("%w: the miss belongs to capture %d, which was committed or discarded; store before that", ErrCaptureOver, t.capture)
		}
		mode = Capturing
	}
	if c.table.sum(m.key) != t.sum {
		return kept, fmt.Errorf("%w: the cache borrows them from look-up to store; look the words up again", ErrKeyChanged)
	}
	t.number = 0
	return c.store(wordsOf(m.key), t.sum, v, mode), nil
}
