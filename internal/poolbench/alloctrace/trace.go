package alloctrace

import (
	"fmt"

	"vkcompute/vk"
)

// Kind is what happened.
type Kind uint8

const (
	// Alloc is an allocation.
	Alloc Kind = iota
	// Free is the release of one. Its memory may be in use until its serial is done.
	Free
	// Done is the moment at which work up to a serial is known to have run.
	Done
)

// Event is one line of a trace.
type Event struct {
	Kind   Kind
	ID     uint32 // of Alloc and Free
	Size   uint64 // of Alloc, bytes
	Role   vk.MemoryRole
	Serial uint64 // of Free and Done
}

// Trace is a sequence of events.
type Trace struct {
	// Comment tells where the trace comes from, without marks at the lines' beginnings.
	Comment string
	Events  []Event
}

// Bounds that keep arithmetic on traces from wrapping, and files from filling the memory.
const (
	MaxSize   = 1 << 50
	MaxID     = 1 << 24
	MaxSerial = 1 << 50
	MaxEvents = 1 << 22
)

// Validate says whether the events make sense: sizes and IDs within bounds, no ID allocated
// while it is alive, none released that is not, and what is done stays done.
func (t *Trace) Validate() error {
	if len(t.Events) > MaxEvents {
		return fmt.Errorf("alloctrace: %d events; want at most %d", len(t.Events), MaxEvents)
	}
	c := checker{}
	for i, e := range t.Events {
		if err := c.add(e); err != nil {
			return fmt.Errorf("alloctrace: event %d: %w", i, err)
		}
	}
	return nil
}

// checker knows which IDs are alive.
type checker struct {
	alive map[uint32]struct{}
	done  uint64
}

func (c *checker) add(e Event) error {
	switch e.Kind {
	case Alloc:
		if _, ok := c.alive[e.ID]; ok {
			return fmt.Errorf("ID %d is allocated and alive", e.ID)
		}
		if e.Size > MaxSize || e.ID > MaxID || e.Role > vk.InfoMemory {
			return fmt.Errorf("allocation %d of %d bytes for %v; want an ID up to %d, a size up to %d and a role", e.ID, e.Size, e.Role, MaxID, uint64(MaxSize))
		}
		if c.alive == nil {
			c.alive = make(map[uint32]struct{})
		}
		c.alive[e.ID] = struct{}{}
	case Free:
		if _, ok := c.alive[e.ID]; !ok {
			return fmt.Errorf("ID %d is released and not alive", e.ID)
		}
		if e.Serial > MaxSerial {
			return fmt.Errorf("ID %d is in use until %d; want a serial up to %d", e.ID, e.Serial, uint64(MaxSerial))
		}
		delete(c.alive, e.ID)
	case Done:
		if e.Serial < c.done || e.Serial > MaxSerial {
			return fmt.Errorf("done up to %d after %d; want it to grow, up to %d", e.Serial, c.done, uint64(MaxSerial))
		}
		c.done = e.Serial
	default:
		return fmt.Errorf("kind %d; want one of the constants", e.Kind)
	}
	return nil
}

// Life is one allocation from beginning to end, as positions in Events. Its memory is needed in
// [Begin, End).
type Life struct {
	Size       uint64
	Role       vk.MemoryRole
	Begin, End int
}

// Lives returns the life of every allocation, in the order of their beginnings. Device memory can be used again
// as soon as it is released, by the next command; other memory when its serial is done. What is never released, or never done,
// ends with the trace.
func (t *Trace) Lives() []Life {
	var lives []Life
	open := make(map[uint32]int)
	type waiting struct {
		life   int
		serial uint64
	}
	var flying []waiting
	done := uint64(0)
	for i, e := range t.Events {
		switch e.Kind {
		case Alloc:
			open[e.ID] = len(lives)
			lives = append(lives, Life{Size: e.Size, Role: e.Role, Begin: i, End: len(t.Events)})
		case Free:
			k := open[e.ID]
			delete(open, e.ID)
			if lives[k].Role == vk.DeviceMemory || e.Serial <= done {
				lives[k].End = i
			} else {
				flying = append(flying, waiting{k, e.Serial})
			}
		case Done:
			done = e.Serial
			kept := flying[:0]
			for _, w := range flying {
				if w.serial <= done {
					lives[w.life].End = i
				} else {
					kept = append(kept, w)
				}
			}
			flying = kept
		}
	}
	return lives
}
