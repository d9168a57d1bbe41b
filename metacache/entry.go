package metacache

import "unsafe"

// entry is one cached info. It is either in the table and in one of the two
// recency lists, or in the chain of the dead, whose values wait to be released,
// or free. All entries live in the slab and name one another by their slots.
//
// With a value of two machine words it fills one cache line.
type entry[V any] struct {
	// stamp is the time of the last use.
	stamp uint64
	value V
	// key is the cache's own copy of the words, as a map sees them.
	key string
	// newer and older are the neighbours in a recency list. Of the dead and of
	// the free, older is the next in the chain, 0 at its end.
	newer, older uint32
	slot         uint32
	// tag is what the table keeps the entry under until it is named.
	tag uint32
	// pins counts the graphs that pin the entry, and the running capture.
	pins uint32
	// captured says that one of the pins is the running capture's.
	captured bool
	// named says that the table keeps the entry under its key.
	named bool
}

func (e *entry[V]) size() int { return len(e.key) }

// root returns the slot of the root of the list that e belongs in.
func (e *entry[V]) root() uint32 {
	if e.pins > 0 {
		return pinnedRoot
	}
	return unpinnedRoot
}

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
