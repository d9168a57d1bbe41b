package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"vkcompute/internal/metaport"
)

// ErrFormat is what the errors of Parse match when the input is no trace.
var ErrFormat = errors.New("trace: bad format")

// Trace is one recording: the bounds of a cache and the calls made on it.
type Trace struct {
	MaxEntries    int
	MaxCachedSize int
	Steps         []Step
}

// Op is one of the recorded calls.
type Op string

// The recorded calls, by the names they have in a file.
const (
	Lookup         Op = "lookup"
	Store          Op = "store"
	CaptureCommit  Op = "capture_commit"
	CaptureDiscard Op = "capture_discard"
	GraphRelease   Op = "graph_release"
	ClearUnpinned  Op = "clear_unpinned"
)

// Answer is what a look-up answered.
type Answer uint8

// The answers of a look-up.
const (
	// Hit: the value is Step.Value.
	Hit Answer = iota
	// MissStore: build the value and store it.
	MissStore
	// MissKeep: build the value and do not store it.
	MissKeep
)

// String describes the answer.
func (a Answer) String() string {
	switch a {
	case Hit:
		return "hit"
	case MissStore:
		return "miss, store"
	case MissKeep:
		return "miss, do not store"
	}
	return fmt.Sprintf("Answer(%d)", uint8(a))
}

// Step is one call and what it did. Fields that its Op does not have are zero.
type Step struct {
	Line   int
	Op     Op
	Mode   metaport.Mode
	Words  []uint64
	Answer Answer
	// Value is the number of the value that was found or stored.
	Value uint64
	Graph uint64
	// Len is the number of entries after the call.
	Len int
	// Released holds the numbers of the values the call let go of, ascending.
	Released []uint64
}

// maxLine bounds the memory that one line of a hostile file can take.
const maxLine = 1 << 20

// line is a line of a file. Pointers tell absent fields from zero ones.
type line struct {
	Op            *string   `json:"op"`
	MaxEntries    *uint64   `json:"max_entries"`
	MaxCachedSize *uint64   `json:"max_cached_size"`
	Mode          *string   `json:"mode"`
	Words         *[]uint64 `json:"words"`
	Hit           *uint64   `json:"hit"`
	Store         *bool     `json:"store"`
	Value         *uint64   `json:"value"`
	Graph         *uint64   `json:"graph"`
	Len           *uint64   `json:"len"`
	Released      *[]uint64 `json:"released"`
}

// Parse reads a trace. Blank lines are skipped and fields it does not know are
// ignored.
func Parse(r io.Reader) (*Trace, error) {
	var t *Trace
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		n++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("%w: line %d: want one JSON object, found %.40q: %w", ErrFormat, n, text, err)
		}
		if t == nil {
			first, err := l.first()
			if err != nil {
				return nil, fmt.Errorf("%w: line %d: %w", ErrFormat, n, err)
			}
			t = first
			continue
		}
		s, err := l.step()
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrFormat, n, err)
		}
		s.Line = n
		t.Steps = append(t.Steps, s)
	}
	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("%w: line %d: want at most %d bytes a line: %w", ErrFormat, n+1, maxLine, err)
		}
		return nil, err
	}
	if t == nil {
		return nil, fmt.Errorf("%w: want a first line with op \"new\", found no line at all", ErrFormat)
	}
	return t, nil
}

// ParseFile reads the trace in a file.
func ParseFile(path string) (*Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := Parse(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func (l *line) first() (*Trace, error) {
	if l.Op == nil || *l.Op != "new" {
		return nil, fmt.Errorf("want op \"new\" first, found %s", quoted(l.Op))
	}
	if l.MaxEntries == nil || l.MaxCachedSize == nil {
		return nil, errors.New("op \"new\" wants max_entries and max_cached_size, and one is missing")
	}
	return &Trace{MaxEntries: clamp(*l.MaxEntries), MaxCachedSize: clamp(*l.MaxCachedSize)}, nil
}

// clamp makes a bound that no trace can reach one that every cache accepts.
func clamp(n uint64) int { return int(min(n, 1<<30)) }

func (l *line) step() (Step, error) {
	var s Step
	if l.Op == nil {
		return s, errors.New("want an op, found none")
	}
	s.Op = Op(*l.Op)
	switch s.Op {
	case Lookup:
		if l.Mode == nil || l.Words == nil {
			return s, errors.New("op \"lookup\" wants mode and words, and one is missing")
		}
		switch *l.Mode {
		case "normal":
			s.Mode = metaport.Normal
		case "capture":
			s.Mode = metaport.Capture
		default:
			return s, fmt.Errorf("want mode \"normal\" or \"capture\", found %q", *l.Mode)
		}
		s.Words = *l.Words
		switch {
		case (l.Hit == nil) == (l.Store == nil):
			return s, errors.New("op \"lookup\" wants either hit or store")
		case l.Hit != nil:
			s.Answer, s.Value = Hit, *l.Hit
		case *l.Store:
			s.Answer = MissStore
		default:
			s.Answer = MissKeep
		}
	case Store:
		if l.Words == nil || l.Value == nil {
			return s, errors.New("op \"store\" wants words and value, and one is missing")
		}
		s.Words, s.Value = *l.Words, *l.Value
	case CaptureCommit, GraphRelease:
		if l.Graph == nil {
			return s, fmt.Errorf("op %q wants a graph, and it is missing", s.Op)
		}
		s.Graph = *l.Graph
	case CaptureDiscard, ClearUnpinned:
	default:
		return s, fmt.Errorf("want one of the ops of the format, found %q", *l.Op)
	}
	if l.Len == nil || l.Released == nil {
		return s, fmt.Errorf("op %q wants len and released, and one is missing", s.Op)
	}
	s.Len, s.Released = clamp(*l.Len), *l.Released
	if !slices.IsSorted(s.Released) {
		return s, fmt.Errorf("want released in ascending order, found %v", s.Released)
	}
	return s, nil
}

func quoted(s *string) string {
	if s == nil {
		return "none"
	}
	return fmt.Sprintf("%q", *s)
}
