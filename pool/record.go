package pool

import (
	"slices"

	"vkcompute/vk"
)

// EventKind is what happened to a manager.
type EventKind uint8

const (
	// EventAlloc is an allocation.
	EventAlloc EventKind = iota
	// EventRelease is the release of a slice's last reference.
	EventRelease
	// EventDone is the moment at which the manager learned that a serial of its timeline had completed.
	EventDone
)

// Event is one thing that happened while [Manager.Record] recorded.
type Event struct {
	Kind EventKind
	ID   uint64        // of EventAlloc and EventRelease: numbers the allocations, from 1
	Size uint64        // of EventAlloc: bytes asked for
	Role vk.MemoryRole // of EventAlloc
	Next Access        // of EventAlloc
	// Serial is the last use of what EventRelease releases, and what EventDone says has completed.
	Serial uint64
}

// recording is the events so far.
type recording struct {
	events []Event
	ids    map[*slot]uint64 // of slices alive that the recording has seen
	last   uint64           // ID
	done   uint64           // serial
}

// Record notes from now on what is allocated, released and completed, in order, so that another layout can be tried on it:
// see [NewVirtual]. The function that it returns ends this and gives the events, of which the first says what had
// completed before. Releases of slices that were alive before are left out, and stamps of other timelines ([Slice.UseOn]) are not told. The events take some 50 bytes each until the end.
func (m *Manager) Record() (stop func() []Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := &recording{ids: make(map[*slot]uint64), done: m.wheel.drained, events: []Event{{Kind: EventDone, Serial: m.wheel.drained}}}
	m.recordings = append(m.recordings, r)
	return func() []Event {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.recordings = slices.DeleteFunc(m.recordings, func(x *recording) bool { return x == r })
		return r.events
	}
}

// recordAlloc notes a slice that was placed just now. The lock is held.
func (m *Manager) recordAlloc(sl *slot) {
	for _, r := range m.recordings {
		r.complete(m.wheel.drained)
		r.last++
		r.ids[sl] = r.last
		e := Event{Kind: EventAlloc, ID: r.last, Size: sl.size, Role: sl.page.class.role()}
		if sl.page.class == classHost {
			e.Next = NextHost
		}
		r.events = append(r.events, e)
	}
}

// recordRelease notes a slice that is about to be retired. The lock is held.
func (m *Manager) recordRelease(sl *slot) {
	for _, r := range m.recordings {
		id, ok := r.ids[sl]
		if !ok {
			continue
		}
		delete(r.ids, sl)
		r.complete(m.wheel.drained)
		r.events = append(r.events, Event{Kind: EventRelease, ID: id, Serial: sl.lastUse.Load()})
	}
}

func (r *recording) complete(done uint64) {
	if done > r.done {
		r.done = done
		r.events = append(r.events, Event{Kind: EventDone, Serial: done})
	}
}
