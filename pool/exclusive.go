package pool

// Exclusive reports whether the slice has its page, one buffer, to itself. What a shader
// does beyond the end of a binding of such a slice meets nobody else's bytes.
func (s Slice) Exclusive() bool {
	if s.s == nil {
		return false
	}
	pool := s.s.page.pool
	return s.s.gen.Load() == s.gen && s.Size() > 0 && pool.spec.Kind == Exclusive
}

// linkFree puts an empty exclusive page first among those of its size, for the next slice that fits it exactly.
func linkFree(pg *page) {
	free := pg.pool.free[pg.class][pg.lot]
	next := free[pg.usable]
	if next != nil {
		next.prevFree = pg
	}
	pg.prevFree, pg.nextFree = nil, next
	free[pg.usable] = pg
}

// unlinkFree takes a page out from wherever it is in its list: a cleanup that returns thousands of pages of one
// size, last to first, must not look for each of them from the first.
func unlinkFree(pg *page) {
	free := pg.pool.free[pg.class][pg.lot]
	if pg.nextFree != nil {
		pg.nextFree.prevFree = pg.prevFree
	}
	if pg.prevFree != nil {
		pg.prevFree.nextFree = pg.nextFree
	} else {
		// The key stays when this was the last: it comes back soon, or removePage deletes it.
		free[pg.usable] = pg.nextFree
	}
	pg.nextFree, pg.prevFree = nil, nil
}
