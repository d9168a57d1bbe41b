package metacache

import (
	"errors"
	"fmt"
)

// errInvalid marks what Validate finds: a fault of this package, not of its
// caller.
var errInvalid = errors.New("metacache: invariant broken")

// Validate checks every invariant of the cache and returns the first violation.
// It is for tests: its time grows with the number of entries and pins.
func (c *Cache[V]) Validate() error {
	if !c.open {
		return c.validateClosed()
	}
	if err := c.policy.Validate(); err != nil {
		return fmt.Errorf("%w: %w", errInvalid, err)
	}
	if c.plain != c.policy.MaxSize(Normal)+1 && !(c.plain == 0 && c.sketch != nil) {
		return fmt.Errorf("%w: want look-ups of up to %d bytes to ask nothing, found below %d", errInvalid, c.policy.MaxSize(Normal), c.plain)
	}
	pins, err := c.countPins()
	if err != nil {
		return err
	}
	if err := c.validateList("unpinned", &c.unpinned, pins); err != nil {
		return err
	}
	if err := c.validateList("pinned", &c.pinned, pins); err != nil {
		return err
	}
	if n := c.unpinned.len + c.pinned.len; n != c.table.len() {
		return fmt.Errorf("%w: want the lists to hold the table's %d entries, found %d", errInvalid, c.table.len(), n)
	}
	if len(pins) != c.pinned.len {
		return fmt.Errorf("%w: want %d pinned entries in their list, found %d", errInvalid, len(pins), c.pinned.len)
	}
	if c.sketch != nil {
		if err := c.sketch.validate(); err != nil {
			return fmt.Errorf("%w: %w", errInvalid, err)
		}
	}
	if err := c.validateGuess(); err != nil {
		return err
	}
	dead, err := c.validateDead()
	if err != nil {
		return err
	}
	return c.validateSlab(dead)
}

// countPins counts for each entry the graphs that pin it and the capture.
func (c *Cache[V]) countPins() (map[*entry[V]]int, error) {
	pins := map[*entry[V]]int{}
	for graph, entries := range c.graphs {
		seen := map[*entry[V]]bool{}
		for _, e := range entries {
			if seen[e] {
				return nil, fmt.Errorf("%w: graph %d pins %v twice", errInvalid, graph, wordsOf(e.key))
			}
			seen[e] = true
			pins[e]++
		}
	}
	if c.capture == nil {
		return pins, nil
	}
	seen := map[*entry[V]]bool{}
	for _, e := range c.capture.entries {
		if seen[e] || !e.captured || e.stamp <= c.capture.began {
			return nil, fmt.Errorf("%w: want %v pinned once by the capture begun at %d, found captured %t, last use %d, seen before %t",
				errInvalid, wordsOf(e.key), c.capture.began, e.captured, e.stamp, seen[e])
		}
		seen[e] = true
		pins[e]++
	}
	return pins, nil
}

func (c *Cache[V]) validateList(name string, l *recency, pins map[*entry[V]]int) error {
	n, bytes, stamp := 0, int64(0), c.clock+1
	root := c.slab.at(l.root)
	if root.slot != l.root || root.key != "" {
		return fmt.Errorf("%w: the root of the %s list has the slot %d and the key %v", errInvalid, name, root.slot, wordsOf(root.key))
	}
	for e := c.slab.at(root.older); e != root; e = c.slab.at(e.older) {
		switch {
		case n == c.table.len():
			return fmt.Errorf("%w: %s list is longer than the table", errInvalid, name)
		case c.slab.at(e.older).newer != e.slot || c.slab.at(e.newer).older != e.slot:
			return fmt.Errorf("%w: %s list is torn at %v", errInvalid, name, wordsOf(e.key))
		case !c.holds(e):
			return fmt.Errorf("%w: %s list holds %v, which the table does not", errInvalid, name, wordsOf(e.key))
		case e.stamp > c.clock:
			return fmt.Errorf("%w: %v was used at %d, after now, %d", errInvalid, wordsOf(e.key), e.stamp, c.clock)
		case e.stamp >= stamp:
			return fmt.Errorf("%w: %s list is out of order at %v: time %d is not before %d", errInvalid, name, wordsOf(e.key), e.stamp, stamp)
		case int(e.pins) != pins[e]:
			return fmt.Errorf("%w: want %d pins on %v, found %d", errInvalid, pins[e], wordsOf(e.key), e.pins)
		case e.root() != l.root:
			return fmt.Errorf("%w: %v has %d pins and is in the %s list", errInvalid, wordsOf(e.key), e.pins, name)
		case e.pins == 0 && !c.policy.ShouldCache(e.size(), Normal):
			return fmt.Errorf("%w: unpinned entry of %d bytes can never be hit", errInvalid, e.size())
		}
		n, bytes, stamp = n+1, bytes+int64(e.size()), e.stamp
	}
	if n != l.len || bytes != l.bytes {
		return fmt.Errorf("%w: want %d entries of %d bytes counted in the %s list, found %d and %d", errInvalid, n, bytes, name, l.len, l.bytes)
	}
	return nil
}

// holds says whether a look-up of e's words would find e.
func (c *Cache[V]) holds(e *entry[V]) bool {
	found, _ := c.table.find(&c.slab, e.key, c.table.sum(e.key))
	return found == e
}

func (c *Cache[V]) validateGuess() error {
	switch e := c.guess.next; {
	case e == nil && c.guess.sure:
		return fmt.Errorf("%w: sure of no guess", errInvalid)
	case e != nil && !c.holds(e):
		return fmt.Errorf("%w: the guess is %v, which the table does not hold", errInvalid, wordsOf(e.key))
	}
	return nil
}

// validateDead returns how many entries wait for the release of their value.
func (c *Cache[V]) validateDead() (int, error) {
	n, last := 0, uint32(0)
	for slot := c.deadHead; slot != 0; {
		e := c.slab.at(slot)
		if c.holds(e) {
			return 0, fmt.Errorf("%w: the dead entry %v is in the table", errInvalid, wordsOf(e.key))
		}
		n, last, slot = n+1, slot, e.older
	}
	if last != c.deadTail {
		return 0, fmt.Errorf("%w: the chain of the dead does not end at its tail", errInvalid)
	}
	return n, nil
}

// validateSlab checks that every slot is a root, an entry, dead or free.
func (c *Cache[V]) validateSlab(dead int) error {
	free := 0
	for slot := c.slab.free; slot != 0; free++ {
		e := c.slab.at(slot)
		if slot != c.slab.free && e.key != "" {
			return fmt.Errorf("%w: more than one free entry keeps the memory of a key", errInvalid)
		}
		if e.slot != slot || e.pins != 0 || e.captured || e.named || e.stamp != 0 || e.newer != 0 {
			return fmt.Errorf("%w: the free entry %d is in use", errInvalid, slot)
		}
		slot = e.older
	}
	if n := roots + c.table.len() + dead + free; n != int(c.slab.made) {
		return fmt.Errorf("%w: want the %d slots made in use, dead or free, found %d that are", errInvalid, c.slab.made, n)
	}
	return nil
}

func (c *Cache[V]) validateClosed() error {
	if n := c.table.len() + len(c.graphs) + c.unpinned.len + c.pinned.len; n > 0 || c.capture != nil || c.policy != (Policy{}) || c.plain != 0 {
		return fmt.Errorf("%w: a closed cache holds entries, graphs or a capture", errInvalid)
	}
	_, err := c.validateDead()
	return err
}
