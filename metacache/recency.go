package metacache

// recency is a list of entries, the most recently used first, with the sums
// that bounds and statistics need. The list is a ring through its root, which
// is no entry: its older neighbour is the newest entry, its newer one the oldest.
type recency struct {
	root  uint32
	len   int
	bytes int64
}

// oldest returns the least recently used entry of l, nil if there is none.
func (s *slab[V]) oldest(l *recency) *entry[V] {
	if l.len == 0 {
		return nil
	}
	return s.at(s.at(l.root).newer)
}

// before returns the entry of l used next after e, nil if e is the newest.
func (s *slab[V]) before(l *recency, e *entry[V]) *entry[V] {
	if e.newer == l.root {
		return nil
	}
	return s.at(e.newer)
}

// newest returns the most recently used entry of l, its root if there is none.
func (s *slab[V]) newest(l *recency) *entry[V] { return s.at(s.at(l.root).older) }

func (s *slab[V]) pushFront(l *recency, e *entry[V]) { s.insertBefore(l, e, s.newest(l)) }

// insertByStamp puts e in front of the first entry from at on that is older,
// and returns that entry.
func (s *slab[V]) insertByStamp(l *recency, e, at *entry[V]) *entry[V] {
	for at.slot != l.root && at.stamp > e.stamp {
		at = s.at(at.older)
	}
	s.insertBefore(l, e, at)
	return at
}

func (s *slab[V]) insertBefore(l *recency, e, at *entry[V]) {
	e.newer, e.older = at.newer, at.slot
	s.at(e.newer).older, at.newer = e.slot, e.slot
	l.len++
	l.bytes += int64(e.size())
}

func (s *slab[V]) remove(l *recency, e *entry[V]) {
	s.at(e.newer).older, s.at(e.older).newer = e.older, e.newer
	e.newer, e.older = 0, 0
	l.len--
	l.bytes -= int64(e.size())
}

// moveToFront makes e, which is in the list of root and not at its front, the
// most recently used entry there.
func (s *slab[V]) moveToFront(root uint32, e *entry[V]) {
	s.at(e.newer).older, s.at(e.older).newer = e.older, e.newer
	r := s.at(root)
	e.newer, e.older = root, r.older
	s.at(r.older).newer, r.older = e.slot, e.slot
}
