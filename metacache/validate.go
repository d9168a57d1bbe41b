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
	late, err := c.lateEntries()
	if err != nil {
		return err
	}
	if err := c.validateList("unpinned", &c.unpinned, pins, late); err != nil {
		return err
	}
	if err := c.validateList("pinned", &c.pinned, pins, late); err != nil {
		return err
	}
	if n := c.unpinned.len + c.pinned.len; n != len(c.entries) {
		return fmt.Errorf("%w: want the lists to hold the map's %d entries, found %d", errInvalid, len(c.entries), n)
	}
	if len(pins) != c.pinned.len {
		return fmt.Errorf("%w: want %d pinned entries in their list, found %d", errInvalid, len(pins), c.pinned.len)
	}
	if c.sketch != nil {
		if err := c.sketch.validate(); err != nil {
			return fmt.Errorf("%w: %w", errInvalid, err)
		}
	}
	return c.validateDead()
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

// lateEntries returns the entries whose place in their list is not their last
// use's.
func (c *Cache[V]) lateEntries() (map[*entry[V]]bool, error) {
	late := map[*entry[V]]bool{}
	for i, u := range c.late.uses {
		if i >= c.late.len {
			if u.entry != nil || c.late.again[i].entry != nil {
				return nil, fmt.Errorf("%w: entries linger in the room for late uses", errInvalid)
			}
			continue
		}
		if late[u.entry] || !u.entry.late || c.entries[u.entry.key] != u.entry || u.entry.stamp < u.stamp {
			return nil, fmt.Errorf("%w: want %v in the map, late, noted once and used no earlier, found late %t, noted at %d, last used at %d",
				errInvalid, wordsOf(u.entry.key), u.entry.late, u.stamp, u.entry.stamp)
		}
		late[u.entry] = true
	}
	return late, nil
}

func (c *Cache[V]) validateList(name string, l *recency[V], pins map[*entry[V]]int, late map[*entry[V]]bool) error {
	n, bytes, stamp := 0, int64(0), c.clock+1
	for e := l.root.next; e != l.root; e = e.next {
		switch {
		case n == len(c.entries):
			return fmt.Errorf("%w: %s list is longer than the map", errInvalid, name)
		case e.next.prev != e || e.prev.next != e:
			return fmt.Errorf("%w: %s list is torn at %v", errInvalid, name, wordsOf(e.key))
		case c.entries[e.key] != e:
			return fmt.Errorf("%w: %s list holds %v, which the map does not", errInvalid, name, wordsOf(e.key))
		case e.late != late[e]:
			return fmt.Errorf("%w: want late %t of %v, found %t", errInvalid, late[e], wordsOf(e.key), e.late)
		case e.stamp > c.clock:
			return fmt.Errorf("%w: %v was used at %d, after now, %d", errInvalid, wordsOf(e.key), e.stamp, c.clock)
		case !e.late && e.stamp >= stamp:
			return fmt.Errorf("%w: %s list is out of order at %v: time %d is not before %d", errInvalid, name, wordsOf(e.key), e.stamp, stamp)
		case int(e.pins) != pins[e]:
			return fmt.Errorf("%w: want %d pins on %v, found %d", errInvalid, pins[e], wordsOf(e.key), e.pins)
		case (e.pins > 0) != (l == &c.pinned):
			return fmt.Errorf("%w: %v has %d pins and is in the %s list", errInvalid, wordsOf(e.key), e.pins, name)
		case e.pins == 0 && !c.policy.ShouldCache(e.size(), Normal):
			return fmt.Errorf("%w: unpinned entry of %d bytes can never be hit", errInvalid, e.size())
		}
		n, bytes = n+1, bytes+int64(e.size())
		if !e.late {
			stamp = e.stamp
		}
	}
	if n != l.len || bytes != l.bytes {
		return fmt.Errorf("%w: want %d entries of %d bytes counted in the %s list, found %d and %d", errInvalid, n, bytes, name, l.len, l.bytes)
	}
	return nil
}

func (c *Cache[V]) validateDead() error {
	var last *entry[V]
	for e := c.deadHead; e != nil; e = e.next {
		if c.entries[e.key] == e {
			return fmt.Errorf("%w: the dead entry %v is in the map", errInvalid, wordsOf(e.key))
		}
		last = e
	}
	if last != c.deadTail {
		return fmt.Errorf("%w: the chain of the dead does not end at its tail", errInvalid)
	}
	if s := c.spare; s != nil && (s.pins != 0 || s.captured || s.late || s.next != nil || s.prev != nil) {
		return fmt.Errorf("%w: the spare entry is in use", errInvalid)
	}
	return nil
}

func (c *Cache[V]) validateClosed() error {
	if n := len(c.entries) + len(c.graphs) + c.unpinned.len + c.pinned.len; n > 0 || c.capture != nil || c.policy != (Policy{}) || c.plain != 0 {
		return fmt.Errorf("%w: a closed cache holds entries, graphs or a capture", errInvalid)
	}
	return c.validateDead()
}
