package metacache

import "hash/maphash"

// table finds entries by their words, with two of Go's maps. Each entry is in one
// of them.
//
// What nobody has asked for again is in the first, keyed by 32 bits of the words'
// hash and with the entry's slot for its value. That takes eight bytes instead of
// the 24 of a string and a pointer, so a miss with its store and its eviction finds
// a third of the memory to touch, and an entry leaves without its key being read
// again. Little else makes such a miss dearer in a large cache than in a small one.
//
// What was hit moves to the second map, keyed by the words themselves, which is
// the quicker one to find things in. There too goes what finds its 32 bits taken:
// among 4096 entries there are two such in one program of five hundred.
type table[V any] struct {
	seed maphash.Seed
	// mask cuts the tags down in tests, where crowds must not be rare.
	mask  uint32
	slots map[uint32]uint32
	named map[string]*entry[V]
}

func (t *table[V]) init() {
	*t = table[V]{
		seed:  maphash.MakeSeed(),
		mask:  1<<32 - 1,
		slots: map[uint32]uint32{},
		named: map[string]*entry[V]{},
	}
}

// sum is the hash of a key, made in one go as Go's map of strings would make it:
// maphash.String takes long keys in pieces, and up to three times as long.
func (t *table[V]) sum(key string) uint64 { return maphash.Comparable(t.seed, key) }

func (t *table[V]) tag(sum uint64) uint32 { return uint32(sum) & t.mask }

func (t *table[V]) len() int { return len(t.slots) + len(t.named) }

// find returns the entry of key, which has this sum, nil if there is none, and
// whether the tag is taken.
func (t *table[V]) find(s *slab[V], key string, sum uint64) (e *entry[V], taken bool) {
	if e, taken = t.tagged(s, key, sum); e != nil || len(t.named) == 0 {
		return e, taken
	}
	return t.named[key], taken
}

// tagged is find in the first map alone.
func (t *table[V]) tagged(s *slab[V], key string, sum uint64) (e *entry[V], taken bool) {
	slot, taken := t.slots[t.tag(sum)]
	if taken {
		if e := s.at(slot); e.key == key {
			return e, true
		}
	}
	return nil, taken
}

// add puts e, whose key is set and not there, under this sum. taken is what find
// said; if the entry it meant has left since, e is none the worse for it.
func (t *table[V]) add(e *entry[V], sum uint64, taken bool) {
	if taken {
		t.name(e)
		return
	}
	e.tag = t.tag(sum)
	t.slots[e.tag] = e.slot
}

// promote moves e, which was found by its tag, to the second map.
func (t *table[V]) promote(e *entry[V]) {
	delete(t.slots, e.tag)
	t.name(e)
}

func (t *table[V]) name(e *entry[V]) {
	e.named = true
	t.named[e.key] = e
}

func (t *table[V]) remove(e *entry[V]) {
	if e.named {
		delete(t.named, e.key)
		return
	}
	delete(t.slots, e.tag)
}
