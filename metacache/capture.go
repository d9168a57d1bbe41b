package metacache

import "fmt"

// GraphID names a committed capture for as long as its entries are pinned. The
// caller chooses it; any number that is not in use will do.
type GraphID uint64

// Capture is the one capture a cache can have open. Every entry its look-ups
// touch is pinned until the capture is discarded or the graph it became is
// released. It ends with Commit or Discard, once; afterwards, or if Begin did
// not make it, it finds nothing and wants nothing.
type Capture[V any] struct {
	cache  *Cache[V]
	serial uint64
	// began is the cache's clock at Begin: what the capture touched is newer.
	began   uint64
	entries []*entry[V]
}

// Begin opens a capture. While one is open it returns an error matching
// ErrCaptureOpen; end that one first.
func (c *Cache[V]) Begin() (*Capture[V], error) {
	if err := c.refuse("begin"); err != nil {
		return nil, err
	}
	if c.capture != nil {
		return nil, fmt.Errorf("%w: want none, found capture %d with %d entries; commit or discard it first",
			ErrCaptureOpen, c.capture.serial, len(c.capture.entries))
	}
	c.captures++
	c.capture = &Capture[V]{cache: c, serial: c.captures, began: c.clock}
	return c.capture, nil
}

// Lookup finds the value stored under words in Capture mode, makes its entry
// the most recently used and pins it, once in a capture. A miss always wants a
// store, whatever the size, and the store evicts nothing.
func (k *Capture[V]) Lookup(words []uint64) (v V, hit bool, miss Miss[V]) {
	if !k.isOpen() {
		return v, false, miss
	}
	c := k.cache
	sum := c.table.sum(keyOf(words))
	if e, _ := c.table.find(&c.slab, keyOf(words), sum); e != nil {
		c.use(e)
		k.pin(e)
		return e.value, true, miss
	}
	return c.missed(words, sum, Capturing)
}

// Commit seals the pins under graph and ends the capture. If the ID is in use
// it returns an error matching ErrGraphInUse and the capture stays open. A
// capture that touched nothing commits like any other.
func (k *Capture[V]) Commit(graph GraphID) error {
	if err := k.refuse("commit"); err != nil {
		return err
	}
	c := k.cache
	if pins, used := c.graphs[graph]; used {
		return fmt.Errorf("%w: commit wants a free ID, found graph %d with %d pins; release that graph or take another ID",
			ErrGraphInUse, graph, len(pins))
	}
	for _, e := range k.entries {
		e.captured = false
	}
	c.graphs[graph] = k.entries
	k.entries = nil
	c.capture = nil
	return nil
}

// Discard drops the pins and ends the capture. Entries that nothing else pins
// become ordinary ones, as recent as their last use; those that Normal mode
// could never hit are released.
func (k *Capture[V]) Discard() error {
	if err := k.refuse("discard"); err != nil {
		return err
	}
	c := k.cache
	k.entries = nil
	c.capture = nil
	// Both lists are in order of use, so walking them side by side puts every
	// entry in its place. The walk ends at the capture's beginning: it is no
	// longer than the number of look-ups and stores since.
	at := c.slab.newest(&c.unpinned)
	for e := c.slab.newest(&c.pinned); e.slot != pinnedRoot && e.stamp > k.began; {
		older := c.slab.at(e.older)
		if e.captured {
			e.captured = false
			e.pins--
			if e.pins == 0 {
				c.slab.remove(&c.pinned, e)
				if c.policy.ShouldCache(e.size(), Normal) {
					at = c.slab.insertByStamp(&c.unpinned, e, at)
				} else {
					c.kill(e)
				}
			}
		}
		e = older
	}
	c.drain(nil)
	return nil
}

// GraphRelease drops the pins of graph. An entry that neither another graph nor
// the running capture pins is removed and released. For an ID that is not in
// use it returns false and changes nothing.
func (c *Cache[V]) GraphRelease(graph GraphID) bool {
	pins, used := c.graphs[graph]
	if !used {
		return false
	}
	delete(c.graphs, graph)
	for _, e := range pins {
		e.pins--
		if e.pins > 0 {
			continue
		}
		c.slab.remove(&c.pinned, e)
		if e == c.keep {
			// A store further up the call stack is about to return this value.
			c.slab.insertByStamp(&c.unpinned, e, c.slab.newest(&c.unpinned))
			continue
		}
		c.kill(e)
	}
	c.drain(nil)
	return true
}

// pin pins e for the capture unless it did so before.
func (k *Capture[V]) pin(e *entry[V]) {
	if e.captured {
		return
	}
	e.captured = true
	k.entries = append(k.entries, e)
	e.pins++
	if e.pins == 1 {
		k.cache.slab.remove(&k.cache.unpinned, e)
		k.cache.slab.pushFront(&k.cache.pinned, e)
	}
}

func (k *Capture[V]) isOpen() bool {
	return k != nil && k.cache != nil && k.cache.capture == k
}

func (k *Capture[V]) refuse(what string) error {
	if k == nil || k.cache == nil {
		return fmt.Errorf("%w: %s wants a capture that Begin returned", ErrCaptureOver, what)
	}
	if k.cache.open && k.cache.capture != k {
		return fmt.Errorf("%w: %s wants an open capture, found capture %d ended; begin another", ErrCaptureOver, what, k.serial)
	}
	return k.cache.refuse(what)
}

func (c *Cache[V]) openCaptures() int {
	if c.capture == nil {
		return 0
	}
	return 1
}
