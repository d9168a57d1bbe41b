// Package tlsf cuts ranges out of regions with a two-level segregated fit, in
// constant time in the worst case.
//
// The algorithm is that of M. Masmano, I. Ripoll, A. Crespo and J. Real, "TLSF:
// a New Dynamic Memory Allocator for Real-Time Systems", ECRTS 2004. Free ranges
// hang in lists; a list holds the sizes of one class; two levels of bitmaps say
// which lists are not empty. Finding a list that certainly fits is two
// find-first-set instructions, so a request costs the same on a full, an empty
// and a badly fragmented region, and the same again when it fails.
//
// What differs from the paper, and why:
//
//   - Nothing is stored inside the managed memory, because the managed memory
//     is on a GPU and often not mapped. Headers are nodes in
//     chunks, linked by 32-bit indices. Nodes hold no pointers, so the garbage collector
//     never looks at them however many ranges are alive, and a chunk stays where it is: no request
//     ever waits for the nodes of all others to be copied.
//   - One [Allocator] manages many regions through the same lists. A pool
//     of a hundred thousand pages searches no longer than a pool of one.
//   - Sizes count granules, not bytes. With a granule equal to the alignment
//     that everybody asks for, every range is aligned by construction and small sizes have
//     a list each.
//   - A request looks at a few ranges of its own class before it goes to
//     the next larger one. This is what makes the fit good rather than merely
//     fast; the number of ranges looked at is a constant.
//   - Free ranges carry a stamp, the maximum of the stamps that their pieces
//     were freed with. The caller uses it to remember until when a range that was
//     handed back early may still be in use.
//
// # Life of a range
//
// [Allocator.AddRegion] creates one free range that spans the region.
// [Allocator.Alloc] splits the front of a free range off (after returning front
// padding that a larger alignment made necessary), and [Allocator.Free] merges the range with its
// free neighbours at once: two free ranges are never adjacent.
// [Allocator.RemoveRegion] takes a region away that is free from end to end.
//
// An Allocator is not safe for concurrent use. Errors tell misuse by the
// caller; a request that does not fit is not an error, it is a false.
package tlsf
