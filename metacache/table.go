package metacache

import "hash/maphash"

// table finds entries by their words. It is Go's map, but keyed by 32 bits of
// the words' hash and with the entry's slot for its value: that takes eight bytes
// instead of the 24 of a string and a pointer, so a miss with its store and its
// eviction finds a third of the memory to touch, and an entry leaves without its
// key being read again. Little else makes such a miss dearer in a large cache
// than in a small one.
//
// Two infos with the same 32 bits are told apart by their words. Among 4096
// entries there are two such in one program of five hundred; the later one just
// goes into a map keyed by all of its words.
type table[V any] struct {
	seed maphash.Seed
	// mask cuts the tags down in tests, where crowds must not be rare.
	mask uint32
	// slots is by tag. crowded holds the entries that found their tag taken.
	slots   map[uint32]uint32
	crowded map[string]*entry[V]
}

func (t *table[V]) init() {
	*t = table[V]{
		seed:    maphash.MakeSeed(),
		mask:    1<<32 - 1,
		slots:   map[uint32]uint32{},
		crowded: map[string]*entry[V]{},
	}
}

// sum is the hash of a key, made in one go as Go's map of strings would make it:
// maphash.String takes long keys in pieces, and up to three times as long.
func (t *table[V]) sum(key string) uint64 { return maphash.Comparable(t.seed, key) }

func (t *table[V]) tag(sum uint64) uint32 { return uint32(sum) & t.mask }

func (t *table[V]) len() int { return len(t.slots) + len(t.crowded) }

// find returns the entry of key, which has this sum, nil if there is none, and
// whether any entry has its tag.
func (t *table[V]) find(s *slab[V], key string, sum uint64) (e *entry[V], crowd bool) {
	slot, crowd := t.slots[t.tag(sum)]
	if crowd {
		if e := s.at(slot); e.key == key {
			return e, true
		}
	}
	if len(t.crowded) == 0 {
		return nil, crowd
	}
	return t.crowded[key], crowd
}

// add puts e, whose key is set and not there, under this sum. crowd is what find
// said; if the entry it meant has left since, e is none the worse for it.
func (t *table[V]) add(e *entry[V], sum uint64, crowd bool) {
	e.tag, e.crowded = t.tag(sum), crowd
	if crowd {
		t.crowded[e.key] = e
		return
	}
	t.slots[e.tag] = e.slot
}

func (t *table[V]) remove(e *entry[V]) {
	if e.crowded {
		delete(t.crowded, e.key)
		return
	}
	delete(t.slots, e.tag)
}
