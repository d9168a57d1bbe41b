package metacache

import (
	"fmt"
	"hash/maphash"
)

// Cache maps info words to values. Make one with New; a zero Cache behaves like
// a closed one. It belongs to one goroutine at a time.
//
// The cache holds one reference to each of its values and gives it back through
// the release function, exactly once. A value that a look-up or a store returns
// is lent: it is good until the next call that may remove entries, unless the
// caller takes a reference of its own.
type Cache[V any] struct {
	// policy is the zero Policy unless the cache is open, so that a look-up in
	// a closed cache finds nothing cacheable and needs no check of its own.
	policy Policy
	// plain is the size below which a look-up in Normal mode has nothing to ask
	// of the policy; 0 if it always has.
	plain   int
	open    bool
	release func(V)

	entries map[string]*entry[V]
	// clock counts the uses of entries: hits and stores.
	clock uint64
	// Every entry is in exactly one of the two lists. Eviction takes the tail
	// of unpinned, however much is pinned.
	unpinned, pinned recency[V]
	late             lateUses[V]

	capture  *Capture[V]
	captures uint64
	graphs   map[GraphID][]*entry[V]

	sketch  *sketch
	seed    maphash.Seed
	tickets ticketRing

	// Values are released only when everything else about an operation is
	// done: the entries that died wait in this chain, linked by next.
	deadHead, deadTail *entry[V]
	releasing          bool
	// keep is the entry whose value the store that is releasing will return.
	keep  *entry[V]
	spare *entry[V]

	counts counts
}

// New returns an empty cache that carries out p and gives values back through
// release.
//
// release is called when the operation that let go of a value has otherwise
// finished. It may call Lookup, GraphRelease, ClearUnpinned and everything that
// only reads; every other call answers ErrReleasing and changes nothing. If it
// panics, the panic passes through, and values still waiting are released by
// the next call that releases any.
func New[V any](p Policy, release func(V)) (*Cache[V], error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if release == nil {
		return nil, fmt.Errorf("%w: want a function that takes back the cache's reference to a value, got nil", ErrNoRelease)
	}
	c := &Cache[V]{
		policy:  p,
		open:    true,
		release: release,
		entries: map[string]*entry[V]{},
		graphs:  map[GraphID][]*entry[V]{},
		seed:    maphash.MakeSeed(),
	}
	c.unpinned.init()
	c.pinned.init()
	c.plain = p.MaxSize(Normal) + 1
	if p.Admission == AdmitFrequent && p.MaxEntries > 0 {
		c.plain = 0
		c.sketch = newSketch(p.MaxEntries)
	}
	return c, nil
}

// Lookup finds the value stored under words in Normal mode and makes its entry
// the most recently used. Without one it returns a Miss that says whether the
// policy wants the value the caller is about to build. An info that Normal mode
// does not cache is such a miss even if a graph keeps it, and leaves recency
// alone.
//
// words is borrowed until the Miss is stored or forgotten. Lookup allocates
// nothing.
func (c *Cache[V]) Lookup(words []uint64) (v V, hit bool, miss Miss[V]) {
	if 8*len(words) >= c.plain {
		return c.lookupAsking(words)
	}
	e, found := c.entries[keyOf(words)]
	if !found {
		return c.missed(words, Normal)
	}
	c.hit(e)
	return e.value, true, miss
}

// lookupAsking is a Lookup that the policy or the admission rule has a say in.
func (c *Cache[V]) lookupAsking(words []uint64) (v V, hit bool, miss Miss[V]) {
	if !c.policy.ShouldCache(8*len(words), Normal) {
		c.counts.misses++
		c.counts.uncacheable++
		return v, false, miss
	}
	if c.sketch != nil {
		c.sketch.add(maphash.String(c.seed, keyOf(words)))
	}
	e, found := c.entries[keyOf(words)]
	if !found {
		return c.missed(words, Normal)
	}
	c.hit(e)
	return e.value, true, miss
}

// hit records a hit in Normal mode.
func (c *Cache[V]) hit(e *entry[V]) {
	if !e.late {
		c.postpone(e)
	}
	c.clock++
	e.stamp = c.clock
}

// Insert stores v under words in Normal mode without a look-up before it, and
// past the admission rule. Like a store it keeps a value already there; kept is
// what the cache holds now. On an error the caller still owns v.
func (c *Cache[V]) Insert(words []uint64, v V) (kept V, err error) {
	if err := c.refuse("insert"); err != nil {
		return kept, err
	}
	if size := 8 * len(words); !c.policy.ShouldCache(size, Normal) {
		return kept, fmt.Errorf("%w: want at most %d bytes in Normal mode with MaxEntries %d and MaxBytes %d, got %d; keep the value and release it after use",
			ErrNotCacheable, c.policy.MaxCachedSize, c.policy.MaxEntries, c.policy.MaxBytes, size)
	}
	return c.store(words, v, Normal), nil
}

// ClearUnpinned removes and releases every entry that no graph and no running
// capture pins.
func (c *Cache[V]) ClearUnpinned() {
	c.settle()
	for e := c.unpinned.oldest(); e != nil; {
		newer := c.unpinned.before(e)
		// A store further up the call stack is about to return this value.
		if e != c.keep {
			c.unpinned.remove(e)
			c.kill(e)
		}
		e = newer
	}
	c.drain(nil)
}

// Clear removes and releases every entry. While a graph or the running capture
// pins any it returns an error matching ErrPinned and removes none.
func (c *Cache[V]) Clear() error {
	if err := c.refuse("clear"); err != nil {
		return err
	}
	if n := c.pinned.len; n > 0 {
		return fmt.Errorf("%w: clear wants none, found %d entries of %d bytes pinned by %d graphs and %d running captures; release the graphs first, or use ClearUnpinned",
			ErrPinned, n, c.pinned.bytes, len(c.graphs), c.openCaptures())
	}
	c.ClearUnpinned()
	return nil
}

// Close removes and releases every entry, pinned ones too, and ends a running
// capture. It is for teardown, when nothing that was recorded can run any more.
// Closing twice is fine.
func (c *Cache[V]) Close() error {
	if c.releasing {
		return fmt.Errorf("%w: close wants the cache at rest; call it after the operation that is releasing", ErrReleasing)
	}
	if c.open {
		c.open = false
		c.policy, c.plain = Policy{}, 0
		c.settle()
		c.removeAll(&c.unpinned)
		c.removeAll(&c.pinned)
		c.entries, c.graphs = nil, nil
		c.sketch, c.spare = nil, nil
		c.capture = nil
	}
	c.drain(nil)
	return nil
}

// Len returns the number of entries.
func (c *Cache[V]) Len() int { return len(c.entries) }

// Policy returns the policy of an open cache, the zero Policy of a closed one.
func (c *Cache[V]) Policy() Policy { return c.policy }

// refuse returns why an operation that hands over or takes back values cannot
// run now.
func (c *Cache[V]) refuse(what string) error {
	if !c.open {
		return fmt.Errorf("%w: %s wants an open cache; make one with New", ErrClosed, what)
	}
	if c.releasing {
		return fmt.Errorf("%w: %s wants the cache at rest; call it after the operation that is releasing", ErrReleasing, what)
	}
	return nil
}

// use makes e, which is in a list, its most recently used entry.
func (c *Cache[V]) use(e *entry[V]) {
	c.settle()
	c.list(e).moveToFront(e)
	c.stamp(e)
}

// stamp gives e, which is at the front of its list, the time.
func (c *Cache[V]) stamp(e *entry[V]) {
	c.clock++
	e.stamp = c.clock
}

// list returns the list that e belongs in.
func (c *Cache[V]) list(e *entry[V]) *recency[V] {
	if e.pins > 0 {
		return &c.pinned
	}
	return &c.unpinned
}

// store puts v under words by the rules of mode, or keeps what is there, and
// returns what the cache holds now. The caller has checked that mode caches the
// size.
func (c *Cache[V]) store(words []uint64, v V, mode Mode) V {
	c.settle()
	e := c.entries[keyOf(words)]
	if e != nil {
		// A graph may have recorded the value that is there, so the new one goes.
		c.use(e)
		c.counts.kept++
		c.evict(0, 0, mode)
		c.killValue(v)
	} else {
		c.evict(1, int64(8*len(words)), mode)
		c.counts.stores++
		e = c.newEntry()
		e.setKey(words)
		e.value = v
		c.entries[e.key] = e
		c.unpinned.pushFront(e)
		c.stamp(e)
	}
	if c.policy.PinsEntries(mode) {
		c.capture.pin(e)
	}
	c.drain(e)
	return e.value
}

// evict removes least recently used unpinned entries until mode has room for
// so many more. It can remove many only after a capture was discarded, and then
// each of those entries once.
func (c *Cache[V]) evict(entries int, bytes int64, mode Mode) {
	for e := c.unpinned.oldest(); e != nil; e = c.unpinned.oldest() {
		if c.policy.Fits(c.unpinned.len+entries, c.unpinned.bytes+bytes, mode) {
			return
		}
		c.counts.evictions++
		c.unpinned.remove(e)
		c.kill(e)
	}
}

// admits says whether the key with this sum and size is worth storing: always
// while there is room, else if it was looked up more often than each of the
// entries that would go for it. Of those it compares a few at most: more than
// that only go at once when a large info meets many small ones.
func (c *Cache[V]) admits(sum uint64, size int) bool {
	const compared = 8
	entries, bytes := c.unpinned.len+1, c.unpinned.bytes+int64(size)
	frequency := c.sketch.estimate(sum)
	victim := c.unpinned.oldest()
	for range compared {
		if victim == nil || c.policy.Fits(entries, bytes, Normal) {
			break
		}
		if c.sketch.estimate(maphash.String(c.seed, victim.key)) >= frequency {
			return false
		}
		entries--
		bytes -= int64(victim.size())
		victim = c.unpinned.before(victim)
	}
	return true
}

// newEntry returns an entry without a value, which may have an old key.
func (c *Cache[V]) newEntry() *entry[V] {
	e := c.spare
	if e == nil {
		return &entry[V]{}
	}
	c.spare = nil
	return e
}

// removeAll kills every entry of l.
func (c *Cache[V]) removeAll(l *recency[V]) {
	for e := l.oldest(); e != nil; e = l.oldest() {
		l.remove(e)
		c.kill(e)
	}
}

// kill takes e, which is in no list, out of the map and lets its value wait for
// release.
func (c *Cache[V]) kill(e *entry[V]) {
	delete(c.entries, e.key)
	c.bury(e)
}

// killValue lets a value that never got into the map wait for release.
func (c *Cache[V]) killValue(v V) {
	e := c.newEntry()
	e.value = v
	c.bury(e)
}

func (c *Cache[V]) bury(e *entry[V]) {
	if c.deadTail == nil {
		c.deadHead = e
	} else {
		c.deadTail.next = e
	}
	c.deadTail = e
}

// drain releases the values of all dead entries. It runs last in an operation,
// when the cache is consistent again, because release may call back. A call
// made from inside release leaves its dead to the drain that is running.
func (c *Cache[V]) drain(keep *entry[V]) {
	if c.deadHead == nil || c.releasing {
		return
	}
	c.releasing, c.keep = true, keep
	defer func() { c.releasing, c.keep = false, nil }()
	for e := c.deadHead; e != nil; e = c.deadHead {
		c.deadHead = e.next
		if c.deadHead == nil {
			c.deadTail = nil
		}
		v := e.value
		*e = entry[V]{key: e.key}
		c.spare = e
		c.release(v)
	}
}
