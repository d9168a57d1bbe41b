package alloctrace

import (
	"errors"
	"fmt"

	"vkcompute/pool"
)

// Recorded makes a trace of what a manager recorded. Its serials count from what had completed before.
func Recorded(events []pool.Event) (*Trace, error) {
	t := &Trace{}
	if len(events) == 0 || events[0].Kind != pool.EventDone {
		return nil, errors.New("alloctrace: no recording; want events that begin with what had completed before")
	}
	first := events[0].Serial
	since := func(serial uint64) uint64 { return min(serial-min(serial, first), MaxSerial) }
	for i, e := range events[1:] {
		switch e.Kind {
		case pool.EventAlloc:
			if e.Next != pool.NextCommand {
				return nil, fmt.Errorf("alloctrace: event %d: device memory for the host, which a trace does not tell from other", i)
			}
			t.Events = append(t.Events, Event{Kind: Alloc, ID: uint32(min(e.ID, MaxID+1)), Size: e.Size, Role: e.Role})
		case pool.EventRelease:
			t.Events = append(t.Events, Event{Kind: Free, ID: uint32(min(e.ID, MaxID+1)), Serial: since(e.Serial)})
		case pool.EventDone:
			t.Events = append(t.Events, Event{Kind: Done, Serial: since(e.Serial)})
		}
	}
	return t, t.Validate()
}
