package tlsf

import "fmt"

// Validate checks every invariant and returns the first that does not hold. It visits
// every node; it is meant for tests and for a damage report.
func (a *Allocator) Validate() error {
	var free, nodes, total uint64
	live := uint64(0)
	for r := 1; r < len(a.regions); r++ {
		if a.regions[r].first == 0 {
			continue
		}
		n, f, err := a.validateRegion(uint32(r))
		if err != nil {
			return err
		}
		nodes += n
		free += f
		total += a.regions[r].size
		live += uint64(a.regions[r].used)
	}
	if free+live != nodes {
		return fmt.Errorf("tlsf: %d free and %d used nodes, regions hold %d", free, live, nodes)
	}
	inLists, bytes, err := a.validateLists()
	if err != nil {
		return err
	}
	if inLists != free {
		return fmt.Errorf("tlsf: lists hold %d free ranges, regions %d", inLists, free)
	}
	if bytes != a.freeSize {
		return fmt.Errorf("tlsf: lists hold %d free granules, counter says %d", bytes, a.freeSize)
	}
	if a.freeSize > total {
		return fmt.Errorf("tlsf: %d granules free of %d", a.freeSize, total)
	}
	unused := uint64(0)
	for i := a.unused; i != 0; i = a.at(i).freeNext {
		if a.at(i).state != nodeUnused {
			return fmt.Errorf("tlsf: node %d is on the unused list with state %d", i, a.at(i).state)
		}
		if unused++; unused > uint64(a.made) {
			return fmt.Errorf("tlsf: unused list has a cycle")
		}
	}
	if unused+nodes+1 != uint64(a.made) {
		return fmt.Errorf("tlsf: %d unused and %d placed nodes of %d", unused, nodes, a.made-1)
	}
	return nil
}

func (a *Allocator) validateRegion(r uint32) (nodes, free uint64, err error) {
	g := a.regions[r]
	end, prev, used := uint64(0), uint32(0), uint32(0)
	wasFree := false
	for i := g.first; i != 0; i = a.at(i).next {
		nd := a.at(i)
		switch {
		case nd.off != end:
			return 0, 0, fmt.Errorf("tlsf: region %d node %d at %d, want %d", r, i, nd.off, end)
		case nd.size == 0:
			return 0, 0, fmt.Errorf("tlsf: region %d node %d is empty", r, i)
		case nd.prev != prev:
			return 0, 0, fmt.Errorf("tlsf: region %d node %d links back to %d, want %d", r, i, nd.prev, prev)
		case nd.region != r:
			return 0, 0, fmt.Errorf("tlsf: region %d node %d says region %d", r, i, nd.region)
		}
		switch nd.state {
		case nodeFree:
			if wasFree {
				return 0, 0, fmt.Errorf("tlsf: region %d: free ranges %d and %d are adjacent", r, prev, i)
			}
			free++
			wasFree = true
		case nodeUsed:
			used++
			wasFree = false
		default:
			return 0, 0, fmt.Errorf("tlsf: region %d node %d is unused", r, i)
		}
		end += nd.size
		prev = i
		if nodes++; nodes > uint64(a.made) {
			return 0, 0, fmt.Errorf("tlsf: region %d has a cycle", r)
		}
	}
	if end != g.size {
		return 0, 0, fmt.Errorf("tlsf: region %d covers %d granules of %d", r, end, g.size)
	}
	if used != g.used {
		return 0, 0, fmt.Errorf("tlsf: region %d has %d blocks in use, counter says %d", r, used, g.used)
	}
	return nodes, free, nil
}

func (a *Allocator) validateLists() (count, granules uint64, err error) {
	for row := range a.heads {
		if (a.rowMap>>row&1 == 1) != (a.subMap[row] != 0) {
			return 0, 0, fmt.Errorf("tlsf: row %d: bitmaps disagree", row)
		}
		for sub, head := range a.heads[row] {
			if (a.subMap[row]>>sub&1 == 1) != (head != 0) {
				return 0, 0, fmt.Errorf("tlsf: class %d/%d: bitmap and list disagree", row, sub)
			}
			prev := uint32(0)
			for i := head; i != 0; i = a.at(i).freeNext {
				nd := a.at(i)
				if nd.state != nodeFree || nd.freePrev != prev {
					return 0, 0, fmt.Errorf("tlsf: class %d/%d: node %d state %d, back link %d, want %d", row, sub, i, nd.state, nd.freePrev, prev)
				}
				if r, s := class(nd.size); int(r) != row || int(s) != sub {
					return 0, 0, fmt.Errorf("tlsf: node %d of %d granules is in class %d/%d, want %d/%d", i, nd.size, row, sub, r, s)
				}
				granules += nd.size
				prev = i
				if count++; count > uint64(a.made) {
					return 0, 0, fmt.Errorf("tlsf: class %d/%d has a cycle", row, sub)
				}
			}
		}
	}
	return count, granules, nil
}
