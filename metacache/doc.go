// Package metacache caches the info buffers of launches by their content.
//
// A kernel reads shapes, strides and scalars from a small buffer of 64-bit
// words. Most launches of a program repeat words they used before, so the buffer
// is built once and found again by the words themselves: two kernels with the
// same words share it, and nothing else takes part in the key. What is cached is
// a handle, the value V, of which the cache holds one reference; what a value
// is, the package does not know.
//
// # The life of an entry
//
// A launch asks Lookup. On a hit it borrows the value. On a miss it builds the
// value and, if the Miss says so, hands it over with Store; from then on the
// cache gives that reference back exactly once, through the release function of
// New, when the entry leaves:
//
//	value, hit, miss := cache.Lookup(words)
//	if !hit {
//		value = build(words)
//		if miss.Wanted() {
//			value, err = miss.Store(value)
//		} // else: release value after use
//	}
//
// In Normal mode entries compete under the bounds of the Policy, and the least
// recently used one goes first. A graph, though, replays commands that name the
// buffers of its infos, so these must not go while it lives. Its capture is
// therefore a token: Begin opens it, its look-ups cache every info whatever its
// size and pin what they touch, and it ends once, with Commit under the graph's
// ID or with Discard. GraphRelease drops a graph's pins, and the entries nothing
// else pins leave with them. Pinned entries are outside the bounds: a large
// graph takes no room from ordinary launches.
//
// Before memory pools are installed anew every value that can go has to:
// ClearUnpinned releases all that no graph and no running capture pins.
//
// # Ownership
//
// Store and Insert take over one reference when they succeed. When they fail
// the caller still has it. If the key is there already, the value that is there
// stays (a graph may have recorded it), the new one is released, and the kept
// one is returned: use that. Values that Lookup, Store and Insert return are
// lent until the next call that may remove entries; a caller that needs one for
// longer takes a reference of its own.
//
// Words are borrowed from look-up to store and copied once, at the store. To
// change them in between is an error that the store reports.
//
// # Concurrency
//
// A cache has no lock and belongs to one goroutine at a time. Each stream has
// its own: the reuse of an info is ordered by the submissions of one queue, a
// shared cache would have to wait for another stream's graphs and make a
// 10-nanosecond hit pay for a lock, and infos are so small that sharing them
// saves nothing.
//
// # Errors
//
// All errors match one of the package's Err values with errors.Is, and an
// operation that returns one has changed nothing. The package does not panic.
// The release function may call back: see New.
//
// # Cost
//
// Every operation takes constant time for each entry it adds, removes, pins or
// unpins; none scans the others, and nothing is put off for a later one to do. A
// discarded capture also steps past what was used since it began, to put its
// entries in their places among the rest.
// That is amortised where room grows: Go's map moves up to a thousand entries of
// twelve bytes at once when one of its tables is full, and the list of a capture's
// pins is copied when it doubles. A hit moves nothing but its own entry.
//
// A hit allocates nothing, but that the first one of an entry may make a map grow;
// nor does a miss before its store, nor a store that evicts an info of the same
// size. What a large cache costs is memory that the processor does not have at
// hand. So entries are one cache line each, name one another by 32 bits, take the
// place of the one evicted last, and are found by 32 bits of their hash until they
// are hit. A program that repeats its launches in order does not even ask a map:
// the order of recency foretells them, and a hit takes half the time of a look-up
// in a plain map of strings. What comes in another order than the time before
// takes up to twice as long as that.
package metacache
