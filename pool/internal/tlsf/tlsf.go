package tlsf

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Block names a range that is in use. The zero Block names none.
type Block uint32

// Region names a region. The zero Region names none.
type Region uint32

const (
	// maxGranules bounds a region and a request. It leaves the arithmetic on
	// sizes (rounding up to a class, adding an alignment) a factor of four before it could wrap.
	maxGranules = 1 << 61
	// maxIndex bounds the number of nodes and regions. A larger array
	// would make indices wrap and link strangers to each other.
	maxIndex = math.MaxUint32
	// ownClassTries bounds how many ranges of the request's own class are looked at.
	ownClassTries = 4
)

var (
	// ErrNotInUse reports a Block that is not in use: freed twice, or never allocated.
	ErrNotInUse = errors.New("tlsf: block is not in use")
	// ErrRegionInUse reports a region that still holds blocks in use.
	ErrRegionInUse = errors.New("tlsf: region holds blocks in use")
	// ErrNoRegion reports a Region that does not exist.
	ErrNoRegion = errors.New("tlsf: no such region")
	// ErrTooLarge reports a size, or a number of blocks, beyond what indices can name.
	ErrTooLarge = errors.New("tlsf: too large")
)

type nodeState uint32

const (
	nodeUnused nodeState = iota
	nodeFree
	nodeUsed
)

// node is one range of a region, free or in use. Index 0 is reserved for "none".
type node struct {
	off, size uint64 // in granules
	stamp     uint64
	prev      uint32 // the range before it in the region
	next      uint32 // the range after it in the region
	freePrev  uint32 // the list of its class; freeNext also links unused nodes
	freeNext  uint32
	region    uint32
	state     nodeState
}

// chunkNodes is how many nodes are made at a time, a power of two. Nodes stay where they are made: an array that
// grew by copying would stall one request, and all who wait for the caller's lock, for as long as it takes to
// copy every range there is.
const chunkNodes = 256

type nodeChunk [chunkNodes]node

type region struct {
	first uint32 // its first range; 0 when the region does not exist
	used  uint32 // blocks in use; also links unused regions
	size  uint64 // in granules
}

// Allocator hands out ranges of the regions added to it. Create it with [New].
type Allocator struct {
	rowMap   uint64
	subMap   [rows]uint32
	heads    [rows][subCount]uint32
	granule  uint64
	shift    uint32
	chunks   []*nodeChunk // of all nodes, by index
	made     uint32       // indices given out so far, that of "none" included
	unused   uint32       // list of unused nodes
	regions  []region
	unusedR  uint32
	freeSize uint64 // in granules, over all regions
}

// New returns an allocator without regions. Offsets and sizes of its blocks are
// multiples of granule, a power of two.
func New(granule uint64) (*Allocator, error) {
	if granule == 0 || granule&(granule-1) != 0 {
		return nil, fmt.Errorf("tlsf: granule %d: want a power of two", granule)
	}
	return &Allocator{
		granule: granule,
		shift:   uint32(bits.TrailingZeros64(granule)),
		chunks:  []*nodeChunk{new(nodeChunk)},
		made:    1,
		regions: make([]region, 1, 4),
	}, nil
}

// AddRegion adds a region of size bytes, rounded down to whole granules. All of it
// is free, with stamp zero.
func (a *Allocator) AddRegion(size uint64) (Region, error) {
	n := size >> a.shift
	if n == 0 {
		return 0, fmt.Errorf("tlsf: region of %d bytes: want at least a granule of %d", size, a.granule)
	}
	if n > maxGranules {
		return 0, fmt.Errorf("%w: region of %d bytes, at most %d granules of %d", ErrTooLarge, size, uint64(maxGranules), a.granule)
	}
	var r uint32
	if a.unusedR == 0 && uint64(len(a.regions)) >= maxIndex {
		return 0, fmt.Errorf("%w: %d regions", ErrTooLarge, len(a.regions))
	}
	i, ok := a.newNode()
	if !ok {
		return 0, fmt.Errorf("%w: %d blocks", ErrTooLarge, a.made)
	}
	if a.unusedR != 0 {
		r = a.unusedR
		a.unusedR = a.regions[r].used
	} else {
		r = uint32(len(a.regions))
		a.regions = append(a.regions, region{})
	}
	a.regions[r] = region{first: i, size: n}
	nd := a.at(i)
	*nd = node{size: n, region: r}
	a.link(i, nd)
	return Region(r), nil
}

// RemoveRegion takes a region away. A region with blocks in use stays, and the
// error is [ErrRegionInUse].
func (a *Allocator) RemoveRegion(r Region) error {
	if !a.exists(r) {
		return ErrNoRegion
	}
	g := &a.regions[r]
	if g.used != 0 {
		return fmt.Errorf("%w: %d", ErrRegionInUse, g.used)
	}
	nd := a.at(g.first)
	a.unlink(nd)
	a.dropNode(g.first, nd)
	*g = region{used: a.unusedR}
	a.unusedR = uint32(r)
	return nil
}

func (a *Allocator) exists(r Region) bool {
	return r != 0 && uint64(r) < uint64(len(a.regions)) && a.regions[r].first != 0
}

// Alloc takes size bytes whose offset is a multiple of align, a power of two.
// The size is rounded up to granules, a size of zero to one. It returns false
// when no range is large enough, in the same time as it would take to find one.
func (a *Allocator) Alloc(size, align uint64) (Block, bool) {
	n := size >> a.shift
	if size&(a.granule-1) != 0 || n == 0 {
		n++
	}
	al := align >> a.shift
	if al <= 1 {
		al = 1
	}
	if n > maxGranules || al > maxGranules || align&(align-1) != 0 {
		return 0, false
	}
	i := a.find(n, al)
	if i == 0 {
		return 0, false
	}
	nd := a.at(i)
	// Making nodes is the only thing that can still fail, so it
	// comes before anything is changed.
	pad := -nd.off & (al - 1)
	var before, after uint32
	if pad != 0 {
		ok := false
		if before, ok = a.newNode(); !ok {
			return 0, false
		}
	}
	if nd.size-pad > n {
		ok := false
		if after, ok = a.newNode(); !ok {
			if before != 0 {
				a.dropNode(before, a.at(before))
			}
			return 0, false
		}
	}
	a.unlink(nd)
	if before != 0 {
		b := a.at(before)
		*b = node{off: nd.off, size: pad, stamp: nd.stamp, prev: nd.prev, next: i, region: nd.region}
		if b.prev != 0 {
			a.at(b.prev).next = before
		} else {
			a.regions[b.region].first = before
		}
		nd.prev = before
		nd.off += pad
		nd.size -= pad
		a.link(before, b)
	}
	if after != 0 {
		f := a.at(after)
		*f = node{off: nd.off + n, size: nd.size - n, stamp: nd.stamp, prev: i, next: nd.next, region: nd.region}
		if f.next != 0 {
			a.at(f.next).prev = after
		}
		nd.next = after
		nd.size = n
		a.link(after, f)
	}
	nd.state = nodeUsed
	a.regions[nd.region].used++
	return Block(i), true
}

// find returns a free node that holds n granules at a multiple of al, or 0.
func (a *Allocator) find(n, al uint64) uint32 {
	row, sub := class(n)
	if i := a.look(a.heads[row][sub], n, al); i != 0 {
		return i
	}
	if i := a.first(classAbove(n)); i != 0 {
		if al == 1 || fits(a.at(i), n, al) {
			return i
		}
		return a.first(classAbove(n + al - 1))
	}
	return 0
}

// look tries the first ranges of a list whose ranges may be too small.
func (a *Allocator) look(i uint32, n, al uint64) uint32 {
	for tries := 0; i != 0 && tries < ownClassTries; tries++ {
		nd := a.at(i)
		if fits(nd, n, al) {
			return i
		}
		i = nd.freeNext
	}
	return 0
}

func fits(nd *node, n, al uint64) bool {
	return nd.size >= n+(-nd.off&(al-1))
}

// first returns the head of the first list that is not empty at or after the class, or 0.
func (a *Allocator) first(row, sub uint32) uint32 {
	if m := a.subMap[row] &^ (1<<sub - 1); m != 0 {
		return a.heads[row][bits.TrailingZeros32(m)]
	}
	m := a.rowMap &^ (2<<row - 1)
	if m == 0 {
		return 0
	}
	r := bits.TrailingZeros64(m)
	return a.heads[r][bits.TrailingZeros32(a.subMap[r])]
}

// at returns a node that was made.
func (a *Allocator) at(i uint32) *node { return &a.chunks[i/chunkNodes][i%chunkNodes] }

// Free gives a block back, marked with stamp. The merged range carries the
// largest stamp of its pieces. A block that is not in use is left alone, and the error is
// [ErrNotInUse].
func (a *Allocator) Free(b Block, stamp uint64) error {
	nd := a.inUse(b)
	if nd == nil {
		return ErrNotInUse
	}
	i := uint32(b)
	a.regions[nd.region].used--
	if p, prev := nd.prev, a.at(nd.prev); prev.state == nodeFree {
		a.unlink(prev)
		nd.off, nd.size, nd.prev = prev.off, nd.size+prev.size, prev.prev
		stamp = max(stamp, prev.stamp)
		if nd.prev != 0 {
			a.at(nd.prev).next = i
		} else {
			a.regions[nd.region].first = i
		}
		a.dropNode(p, prev)
	}
	if x, next := nd.next, a.at(nd.next); next.state == nodeFree {
		a.unlink(next)
		nd.size, nd.next = nd.size+next.size, next.next
		stamp = max(stamp, next.stamp)
		if nd.next != 0 {
			a.at(nd.next).prev = i
		}
		a.dropNode(x, next)
	}
	nd.stamp = stamp
	a.link(i, nd)
	return nil
}

// inUse returns the node of a block, or nil. Node 0, which stands for "none", is never in use.
func (a *Allocator) inUse(b Block) *node {
	if uint32(b) < a.made {
		if nd := a.at(uint32(b)); nd.state == nodeUsed {
			return nd
		}
	}
	return nil
}

// Range tells where a block lies: region, offset and size in bytes, and the stamp of the
// free range that it was cut from. For a block that is not in use all are zero.
func (a *Allocator) Range(b Block) (r Region, off, size, stamp uint64) {
	nd := a.inUse(b)
	if nd == nil {
		return 0, 0, 0, 0
	}
	return Region(nd.region), nd.off << a.shift, nd.size << a.shift, nd.stamp
}

// Used returns the number of blocks in use in a region.
func (a *Allocator) Used(r Region) int {
	if !a.exists(r) {
		return 0
	}
	return int(a.regions[r].used)
}

// FreeBytes returns the sum of the free ranges of all regions.
func (a *Allocator) FreeBytes() uint64 { return a.freeSize << a.shift }

// LargestFree returns a lower bound of the largest free range, exact to the
// width of a class (1/32).
func (a *Allocator) LargestFree() uint64 {
	if a.rowMap == 0 {
		return 0
	}
	row := uint32(63 - bits.LeadingZeros64(a.rowMap))
	sub := uint64(31 - bits.LeadingZeros32(a.subMap[row]))
	if row == 0 {
		return sub << a.shift
	}
	return (sub | subCount) << (row - 1) << a.shift
}

// Granule returns the granule that the allocator was created with.
func (a *Allocator) Granule() uint64 { return a.granule }

// Walk calls f for each range of a region, in order of offset, until f returns false. The stamp is
// that of [Allocator.Range].
func (a *Allocator) Walk(r Region, f func(off, size uint64, used bool, stamp uint64) bool) {
	if !a.exists(r) {
		return
	}
	for i := a.regions[r].first; i != 0; i = a.at(i).next {
		nd := a.at(i)
		if !f(nd.off<<a.shift, nd.size<<a.shift, nd.state == nodeUsed, nd.stamp) {
			return
		}
	}
}

// link puts a range, i at nd, into the list of its class. A node is looked up once and handed on, here and in what
// follows: its chunk is another load, and those would cost a cycle a tenth of its speed.
func (a *Allocator) link(i uint32, nd *node) {
	row, sub := class(nd.size)
	head := a.heads[row][sub]
	nd.state, nd.freePrev, nd.freeNext = nodeFree, 0, head
	if head != 0 {
		a.at(head).freePrev = i
	} else {
		a.subMap[row] |= 1 << sub
		a.rowMap |= 1 << row
	}
	a.heads[row][sub] = i
	a.freeSize += nd.size
}

func (a *Allocator) unlink(nd *node) {
	a.freeSize -= nd.size
	if nd.freeNext != 0 {
		a.at(nd.freeNext).freePrev = nd.freePrev
	}
	if nd.freePrev != 0 {
		a.at(nd.freePrev).freeNext = nd.freeNext
		return
	}
	row, sub := class(nd.size)
	a.heads[row][sub] = nd.freeNext
	if nd.freeNext == 0 {
		a.subMap[row] &^= 1 << sub
		if a.subMap[row] == 0 {
			a.rowMap &^= 1 << row
		}
	}
}

func (a *Allocator) newNode() (uint32, bool) {
	if i := a.unused; i != 0 {
		a.unused = a.at(i).freeNext
		return i, true
	}
	if a.made == maxIndex {
		return 0, false
	}
	if a.made%chunkNodes == 0 {
		a.chunks = append(a.chunks, new(nodeChunk))
	}
	a.made++
	return a.made - 1, true
}

func (a *Allocator) dropNode(i uint32, nd *node) {
	*nd = node{freeNext: a.unused}
	a.unused = i
}
