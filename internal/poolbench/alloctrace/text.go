package alloctrace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"vkcompute/vk"
)

// header is the first line that is no comment.
const header = "allocations 2"

// maxLine is more than any line of a trace needs.
const maxLine = 4096

// SyntaxError is a line that Parse does not understand.
type SyntaxError struct {
	Line int
	Err  error
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("alloctrace: line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong with the line.
func (e *SyntaxError) Unwrap() error { return e.Err }

var errEnd = errors.New("the file ends; want \"" + header + "\"")

// Parse reads a trace. Errors of the text are [*SyntaxError], others those of r.
func Parse(r io.Reader) (*Trace, error) {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, maxLine), maxLine)
	t := &Trace{}
	var comment strings.Builder
	var c checker
	line, begun := 0, false
	for s.Scan() {
		line++
		text := strings.TrimSpace(s.Text())
		if text == "" {
			continue
		}
		if rest, ok := strings.CutPrefix(text, "#"); ok {
			if !begun {
				comment.WriteString(strings.TrimPrefix(rest, " ") + "\n")
			}
			continue
		}
		if !begun {
			if text != header {
				return nil, &SyntaxError{line, fmt.Errorf("%.40q; want %q", text, header)}
			}
			begun = true
			continue
		}
		e, err := parseEvent(text)
		if err == nil {
			err = c.add(e)
		}
		if err == nil && len(t.Events) == MaxEvents {
			err = fmt.Errorf("more than %d events", MaxEvents)
		}
		if err != nil {
			return nil, &SyntaxError{line, err}
		}
		t.Events = append(t.Events, e)
	}
	if err := s.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, &SyntaxError{line + 1, err}
	} else if err != nil {
		return nil, fmt.Errorf("alloctrace: %w", err)
	}
	if !begun {
		return nil, &SyntaxError{line + 1, errEnd}
	}
	t.Comment = comment.String()
	return t, nil
}

func parseEvent(text string) (Event, error) {
	f := strings.Fields(text)
	switch {
	case f[0] == "+" && len(f) == 4:
		id, err := strconv.ParseUint(f[1], 10, 32)
		if err != nil {
			return Event{}, fmt.Errorf("ID: %w", err)
		}
		size, err := strconv.ParseUint(f[2], 10, 64)
		if err != nil {
			return Event{}, fmt.Errorf("size: %w", err)
		}
		for role := vk.DeviceMemory; role <= vk.InfoMemory; role++ {
			if f[3] == role.String() {
				return Event{Kind: Alloc, ID: uint32(id), Size: size, Role: role}, nil
			}
		}
		return Event{}, fmt.Errorf("role %q; want device, upload, read-back or info", f[3])
	case f[0] == "-" && len(f) == 3:
		id, err := strconv.ParseUint(f[1], 10, 32)
		if err != nil {
			return Event{}, fmt.Errorf("ID: %w", err)
		}
		serial, err := strconv.ParseUint(f[2], 10, 64)
		if err != nil {
			return Event{}, fmt.Errorf("serial: %w", err)
		}
		return Event{Kind: Free, ID: uint32(id), Serial: serial}, nil
	case f[0] == "done" && len(f) == 2:
		serial, err := strconv.ParseUint(f[1], 10, 64)
		if err != nil {
			return Event{}, fmt.Errorf("serial: %w", err)
		}
		return Event{Kind: Done, Serial: serial}, nil
	}
	return Event{}, fmt.Errorf("%.40q; want \"+ ID SIZE ROLE\", \"- ID SERIAL\" or \"done SERIAL\"", text)
}

// WriteTo writes the trace so that Parse reads it back.
func (t *Trace) WriteTo(w io.Writer) (int64, error) {
	if err := t.Validate(); err != nil {
		return 0, err
	}
	var b bytes.Buffer
	for line := range strings.Lines(t.Comment) {
		fmt.Fprintf(&b, "# %s\n", strings.TrimRight(line, "\r\n"))
	}
	b.WriteString(header + "\n")
	for _, e := range t.Events {
		switch e.Kind {
		case Alloc:
			fmt.Fprintf(&b, "+ %d %d %v\n", e.ID, e.Size, e.Role)
		case Free:
			fmt.Fprintf(&b, "- %d %d\n", e.ID, e.Serial)
		case Done:
			fmt.Fprintf(&b, "done %d\n", e.Serial)
		}
	}
	return b.WriteTo(w)
}
