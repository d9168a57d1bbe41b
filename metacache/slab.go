package metacache

// slab is where the entries are: chunks that never move, so that an entry can
// be named by its address and, in half the room and without work for the garbage
// collector, by its slot. A slot that was freed last is taken first: it is what
// the processor's caches still have. The chunks are kept until the cache closes.
//
// Slots are 32 bits. With its key and its place in the table an entry takes
// about a hundred bytes, so memory ends before slots do.
type slab[V any] struct {
	chunks []*[chunkEntries]entry[V]
	// made counts the slots that were ever taken; free begins the chain of those
	// that were given back, 0 if there are none.
	made, free uint32
}

const (
	chunkEntries = 64

	// The first slots are the roots of the two lists and never entries, so that
	// slot 0 can stand for none in the chains.
	unpinnedRoot, pinnedRoot = 0, 1
	roots                    = 2
)

func (s *slab[V]) init() {
	for root := range uint32(roots) {
		r := s.take()
		r.newer, r.older = root, root
	}
}

func (s *slab[V]) at(slot uint32) *entry[V] {
	return &s.chunks[slot/chunkEntries][slot%chunkEntries]
}

// take returns an entry that is empty but for its slot and perhaps an old key.
func (s *slab[V]) take() *entry[V] {
	if s.free != 0 {
		e := s.at(s.free)
		s.free, e.older = e.older, 0
		return e
	}
	if s.made%chunkEntries == 0 {
		s.chunks = append(s.chunks, new([chunkEntries]entry[V]))
	}
	e := s.at(s.made)
	e.slot = s.made
	s.made++
	return e
}

// give takes e back. Its key's memory serves the next store, if that comes
// before another give; more of it is not kept.
func (s *slab[V]) give(e *entry[V]) {
	if s.free != 0 {
		s.at(s.free).key = ""
	}
	*e = entry[V]{slot: e.slot, key: e.key, older: s.free}
	s.free = e.slot
}
