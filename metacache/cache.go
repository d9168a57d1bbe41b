package metacache

import "fmt"

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

	table table[V]
	slab  slab[V]
	// clock counts the uses of entries: hits and stores.
	clock uint64
	// Every entry is in exactly one of the two lists. Eviction takes the tail
	// of unpinned, however much is pinned.
	unpinned, pinned recency
	guess            guess[V]

	capture  *Capture[V]
	captures uint64
	graphs   map[GraphID][]*entry[V]

	sketch  *sketch
	tickets ticketRing

	// Values are released only when everything else about an operation is
	// done: the entries that died wait in this chain of slots, 0 if it is empty.
	deadHead, deadTail uint32
	releasing          bool
	// keep is the entry whose value the store that is releasing will return.
	keep *entry[V]

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
		graphs:  map[GraphID][]*entry[V]{},
	}
	c.table.init()
	c.slab.init()
	c.unpinned.root, c.pinned.root = unpinnedRoot, pinnedRoot
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
	if c.guess.sure {
		if e := c.guess.next; e.key == keyOf(words) {
			c.hit(e)
			return e.value, true, miss
		}
	}
	return c.lookupNamed(words)
}

// lookupNamed is a Lookup that was not guessed.
func (c *Cache[V]) lookupNamed(words []uint64) (v V, hit bool, miss Miss[V]) {
	e, found := c.table.named[keyOf(words)]
	if !found {
		return c.lookupTagged(words, c.table.sum(keyOf(words)))
	}
	c.guess.learn(e)
	c.hit(e)
	return e.value, true, miss
}

// lookupTagged is a Lookup of words that no entry is named by.
func (c *Cache[V]) lookupTagged(words []uint64, sum uint64) (v V, hit bool, miss Miss[V]) {
	e, _ := c.table.tagged(&c.slab, keyOf(words), sum)
	c.guess.learn(e)
	if e == nil {
		return c.missed(words, sum, Normal)
	}
	c.table.promote(e)
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
	// Without the rule, what Normal mode caches does not come here.
	sum := c.table.sum(keyOf(words))
	c.sketch.add(sum)
	e, found := c.table.named[keyOf(words)]
	if !found {
		return c.lookupTagged(words, sum)
	}
	c.hit(e)
	return e.value, true, miss
}

// hit records a hit in Normal mode. What it foresees is an entry, never a root,
// which would be taken for that of the empty key.
func (c *Cache[V]) hit(e *entry[V]) {
	if e.newer < roots {
		c.guess.next = e
	} else {
		c.guess.next = c.slab.at(e.newer)
		c.slab.moveToFront(e.root(), e)
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
	return c.store(words, c.table.sum(keyOf(words)), v, Normal), nil
}

// ClearUnpinned removes and releases every entry that no graph and no running
// capture pins.
func (c *Cache[V]) ClearUnpinned() {
	for e := c.slab.oldest(&c.unpinned); e != nil; {
		newer := c.slab.before(&c.unpinned, e)
		// A store further up the call stack is about to return this value.
		if e != c.keep {
			c.slab.remove(&c.unpinned, e)
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
		c.removeAll(&c.unpinned)
		c.removeAll(&c.pinned)
		c.table, c.graphs = table[V]{}, nil
		c.sketch = nil
		c.capture = nil
	}
	c.drain(nil)
	c.slab = slab[V]{}
	return nil
}

// Len returns the number of entries.
func (c *Cache[V]) Len() int { return c.table.len() }

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
	if e.newer >= roots {
		c.slab.moveToFront(e.root(), e)
	}
	c.stamp(e)
}

// stamp gives e, which is at the front of its list, the time.
func (c *Cache[V]) stamp(e *entry[V]) {
	c.clock++
	e.stamp = c.clock
}

// store puts v under words, which have this sum, by the rules of mode, or keeps
// what is there, and returns what the cache holds now. The caller has checked
// that mode caches the size.
func (c *Cache[V]) store(words []uint64, sum uint64, v V, mode Mode) V {
	e, taken := c.table.find(&c.slab, keyOf(words), sum)
	if e != nil {
		// A graph may have recorded the value that is there, so the new one goes.
		c.use(e)
		c.counts.kept++
		c.evict(0, 0, mode)
		c.killValue(v)
	} else {
		c.evict(1, int64(8*len(words)), mode)
		c.counts.stores++
		e = c.slab.take()
		e.setKey(words)
		e.value = v
		c.table.add(e, sum, taken)
		c.slab.pushFront(&c.unpinned, e)
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
	for e := c.slab.oldest(&c.unpinned); e != nil; e = c.slab.oldest(&c.unpinned) {
		if c.policy.fits(c.unpinned.len+entries, c.unpinned.bytes+bytes, mode) {
			return
		}
		c.counts.evictions++
		c.counts.visited++
		c.slab.remove(&c.unpinned, e)
		c.kill(e)
	}
}

// comparedVictims is how many entries at most the admission rule compares a key
// with: more than that only go at once when a large info meets many small ones.
const comparedVictims = 8

// admits says whether the key with this sum and size is worth storing: always
// while there is room, else if it was looked up more often than each of the
// first comparedVictims entries that would go for it.
func (c *Cache[V]) admits(sum uint64, size int) bool {
	entries, bytes := c.unpinned.len+1, c.unpinned.bytes+int64(size)
	frequency := c.sketch.estimate(sum)
	victim := c.slab.oldest(&c.unpinned)
	for range comparedVictims {
		if victim == nil || c.policy.fits(entries, bytes, Normal) {
			break
		}
		c.counts.visited++
		if c.sketch.estimate(c.table.sum(victim.key)) >= frequency {
			return false
		}
		entries--
		bytes -= int64(victim.size())
		victim = c.slab.before(&c.unpinned, victim)
	}
	return true
}

// removeAll kills every entry of l.
func (c *Cache[V]) removeAll(l *recency) {
	for e := c.slab.oldest(l); e != nil; e = c.slab.oldest(l) {
		c.slab.remove(l, e)
		c.kill(e)
	}
}

// kill takes e, which is in no list, out of the table and lets its value wait
// for release.
func (c *Cache[V]) kill(e *entry[V]) {
	c.table.remove(e)
	c.guess.forget(e)
	c.bury(e)
}

// killValue lets a value that never got into the table wait for release.
func (c *Cache[V]) killValue(v V) {
	e := c.slab.take()
	e.value = v
	c.bury(e)
}

func (c *Cache[V]) bury(e *entry[V]) {
	if c.deadTail == 0 {
		c.deadHead = e.slot
	} else {
		c.slab.at(c.deadTail).older = e.slot
	}
	c.deadTail = e.slot
}

// drain releases the values of all dead entries. It runs last in an operation,
// when the cache is consistent again, because release may call back. A call
// made from inside release leaves its dead to the drain that is running.
func (c *Cache[V]) drain(keep *entry[V]) {
	if c.deadHead == 0 || c.releasing {
		return
	}
	c.releasing, c.keep = true, keep
	defer func() { c.releasing, c.keep = false, nil }()
	for c.deadHead != 0 {
		e := c.slab.at(c.deadHead)
		c.deadHead = e.older
		if c.deadHead == 0 {
			c.deadTail = 0
		}
		v := e.value
		c.slab.give(e)
		c.release(v)
	}
}
