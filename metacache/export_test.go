package metacache

// ComparedVictims is how many entries the admission rule compares a key with at
// most.
const ComparedVictims = comparedVictims

// Crowd makes an empty cache tell infos apart by so few tags that most of them
// share theirs.
func (c *Cache[V]) Crowd() { c.table.mask = 1 }

// Frequency is what the admission rule reckons the look-ups of words at.
func (c *Cache[V]) Frequency(words []uint64) uint64 {
	return c.sketch.estimate(c.table.sum(keyOf(words)))
}

// Visited is how many entries evictions and the admission rule have looked at.
func (c *Cache[V]) Visited() uint64 { return c.counts.visited }

// Foresees says whether the next look-up will try words first of all.
func (c *Cache[V]) Foresees(words []uint64) bool {
	return c.guess.sure && c.guess.next.key == keyOf(words)
}
