package trace

import (
	"errors"
	"fmt"
	"slices"

	"vkcompute/internal/metaport"
)

// ErrDiffers is what the errors of Replay match when the target answered
// otherwise than the recorded cache.
var ErrDiffers = errors.New("trace: target differs")

// Target is a cache of numbered values that traces can be replayed against. A
// capture opens with the first look-up in Capture mode, commit or discard while
// none is open.
type Target interface {
	Lookup(mode metaport.Mode, words []uint64) (value uint64, answer Answer, err error)
	// Store stores the value for the look-up before it.
	Store(words []uint64, value uint64) error
	CaptureCommit(graph uint64) error
	CaptureDiscard() error
	// GraphRelease does nothing for a graph that was not committed.
	GraphRelease(graph uint64)
	ClearUnpinned()
	Len() int
	// TakeReleased returns the values released since it was called last.
	TakeReleased() []uint64
}

// Replay makes the recorded calls on target and returns an error matching
// ErrDiffers for the first whose outcome is not the recorded one.
func (t *Trace) Replay(target Target) error {
	for _, s := range t.Steps {
		if err := s.replay(target); err != nil {
			return fmt.Errorf("line %d: %s: %w", s.Line, s.Op, err)
		}
	}
	return nil
}

func (s *Step) replay(target Target) error {
	var err error
	switch s.Op {
	case Lookup:
		var (
			value  uint64
			answer Answer
		)
		value, answer, err = target.Lookup(s.Mode, s.Words)
		if err == nil && (answer != s.Answer || answer == Hit && value != s.Value) {
			return fmt.Errorf("%w: want %s (value %d), got %s (value %d)", ErrDiffers, s.Answer, s.Value, answer, value)
		}
	case Store:
		err = target.Store(s.Words, s.Value)
	case CaptureCommit:
		err = target.CaptureCommit(s.Graph)
	case CaptureDiscard:
		err = target.CaptureDiscard()
	case GraphRelease:
		target.GraphRelease(s.Graph)
	case ClearUnpinned:
		target.ClearUnpinned()
	default:
		return fmt.Errorf("%w: no such op", ErrFormat)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDiffers, err)
	}
	if n := target.Len(); n != s.Len {
		return fmt.Errorf("%w: want %d entries, got %d", ErrDiffers, s.Len, n)
	}
	released := target.TakeReleased()
	slices.Sort(released)
	if !slices.Equal(released, s.Released) {
		return fmt.Errorf("%w: want %v released, got %v", ErrDiffers, s.Released, released)
	}
	return nil
}
