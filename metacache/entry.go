package metacache

import "unsafe"

// entry is one cached info. It is either in the map and in one of the two
// recency lists, or in the chain of the dead, whose values wait to be released,
// or the spare one, which is empty.
//
// With a value of two machine words it fills one cache line.
type entry[V any] struct {
	// stamp is the time of the last use.
	stamp      uint64
	value      V
	prev, next *entry[V]
	// key is the cache's own copy of the words, as the map sees them.
	key string
	// pins counts the graphs that pin the entry, and the running capture.
	pins uint32
	// captured says that one of the pins is the running capture's.
	captured bool
	// late says that the entry was hit since the lists were last in order.
	late bool
}

func (e *entry[V]) size() int { return len(e.key) }

// setKey copies words into the entry, into the memory of the key before it if
// that has their size.
func (e *entry[V]) setKey(words []uint64) {
	own := wordsOf(e.key)
	if len(own) != len(words) {
		own = make([]uint64, len(words))
	}
	copy(own, words)
	e.key = keyOf(own)
}

// keyOf is words as a map key that shares their memory: good for a look-up,
// and for as long as nobody changes the words.
func keyOf(words []uint64) string {
	return unsafe.String((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
}

// wordsOf is the reverse of keyOf. Only a key that is in no map may be written.
func wordsOf(key string) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.StringData(key))), len(key)/8)
}

// recency is a list of entries, the most recently used first, with the sums
// that bounds and statistics need. The list is a ring through root, which is no
// entry. It is apart from the struct so that nothing on the heap points into a
// cache: the compiler could no longer tell that Store lets go of its words.
type recency[V any] struct {
	root  *entry[V]
	len   int
	bytes int64
}

func (l *recency[V]) init() {
	l.root = &entry[V]{}
	l.root.prev, l.root.next = l.root, l.root
}

// oldest returns the least recently used entry, nil if there is none.
func (l *recency[V]) oldest() *entry[V] {
	if l.len == 0 {
		return nil
	}
	return l.root.prev
}

// before returns the entry used next after e, nil if e is the newest.
func (l *recency[V]) before(e *entry[V]) *entry[V] {
	if e.prev == l.root {
		return nil
	}
	return e.prev
}

func (l *recency[V]) pushFront(e *entry[V]) { l.insertBefore(e, l.root.next) }

// insertByStamp puts e in front of the first entry from at on that is older,
// and returns that entry.
func (l *recency[V]) insertByStamp(e, at *entry[V]) *entry[V] {
	for at != l.root && at.stamp > e.stamp {
		at = at.next
	}
	l.insertBefore(e, at)
	return at
}

func (l *recency[V]) insertBefore(e, at *entry[V]) {
	e.prev, e.next = at.prev, at
	e.prev.next, at.prev = e, e
	l.len++
	l.bytes += int64(e.size())
}

func (l *recency[V]) remove(e *entry[V]) {
	e.prev.next, e.next.prev = e.next, e.prev
	e.prev, e.next = nil, nil
	l.len--
	l.bytes -= int64(e.size())
}

// moveToFront makes e, which is in the list, its most recently used entry.
func (l *recency[V]) moveToFront(e *entry[V]) {
	front := l.root.next
	if front == e {
		return
	}
	e.prev.next, e.next.prev = e.next, e.prev
	e.prev, e.next = l.root, front
	front.prev, l.root.next = e, e
}
