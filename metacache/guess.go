package metacache

// guess foresees the next look-up. A program that repeats its launches uses
// entries in the order in which it used them before, and that order is in the
// recency list already: the newer neighbour of an entry that is hit is the one
// that was hit after it the last time. If the words are its key, the look-up
// needs no hash, which costs more than all the rest of a hit.
//
// A wrong guess costs a comparison and the processor a wrong branch. So after
// one the guesses are only made silently, until one is right.
type guess[V any] struct {
	// next is the entry foreseen, nil before there is any. It is in the table.
	next *entry[V]
	// sure says that the guess before was right.
	sure bool
}

// learn compares the guess with what the table found.
func (g *guess[V]) learn(found *entry[V]) { g.sure = found != nil && found == g.next }

// forget drops the guess if it is e, which is leaving the table.
func (g *guess[V]) forget(e *entry[V]) {
	if g.next == e {
		*g = guess[V]{}
	}
}
