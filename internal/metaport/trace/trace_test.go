package trace_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/internal/metaport"
	"vkcompute/internal/metaport/trace"
)

var update = flag.Bool("update", false, "write the golden file anew")

// TestBadTraces holds the error of every bad trace against a golden file: each
// names the line, what was wanted and what was found.
func TestBadTraces(t *testing.T) {
	const dir = "../../../testdata/badtraces"
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var got strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		_, err = trace.Parse(strings.NewReader(string(text)))
		require.ErrorIs(t, err, trace.ErrFormat, file)
		fmt.Fprintf(&got, "%s\n    %s\n", filepath.Base(file), ownWords(err))
	}
	golden := filepath.Join(dir, "errors.golden")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), got.String(), "run with -update if this is meant")
}

// ownWords is the message of err without that of encoding/json at its end, which
// may change with the version of Go.
func ownWords(err error) string {
	message := err.Error()
	wrapper, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return message
	}
	errs := wrapper.Unwrap()
	var syntax *json.SyntaxError
	var wrongType *json.UnmarshalTypeError
	if last := errs[len(errs)-1]; errors.As(last, &syntax) || errors.As(last, &wrongType) {
		message = strings.TrimSuffix(message, ": "+last.Error())
	}
	return message
}

func TestParseLongLine(t *testing.T) {
	_, err := trace.Parse(strings.NewReader(strings.Repeat("[", 2<<20)))
	require.ErrorIs(t, err, trace.ErrFormat)
	assert.ErrorContains(t, err, "line 1")
}

func TestParseReportsReadError(t *testing.T) {
	broken := errors.New("disk on fire")
	_, err := trace.Parse(brokenReader{broken})
	require.ErrorIs(t, err, broken)
	assert.NotErrorIs(t, err, trace.ErrFormat)

	_, err = trace.ParseFile(filepath.Join(t.TempDir(), "absent.jsonl"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

type brokenReader struct{ err error }

func (r brokenReader) Read([]byte) (int, error) { return 0, r.err }

const small = `{"op":"new","max_entries":1,"max_cached_size":18446744073709551615}

{"op":"lookup","mode":"capture","words":[1,18446744073709551615],"store":true,"len":0,"released":[],"note":"ignored"}
{"op":"store","words":[1,18446744073709551615],"value":7,"len":1,"released":[]}
{"op":"lookup","mode":"normal","words":[1,18446744073709551615],"hit":7,"len":1,"released":[]}
{"op":"lookup","mode":"normal","words":[2],"store":true,"len":1,"released":[]}
{"op":"capture_commit","graph":3,"len":1,"released":[]}
{"op":"graph_release","graph":3,"len":0,"released":[7]}
{"op":"capture_discard","len":0,"released":[]}
{"op":"clear_unpinned","len":0,"released":[]}
`

func TestParse(t *testing.T) {
	parsed, err := trace.Parse(strings.NewReader(small))
	require.NoError(t, err)
	assert.Equal(t, 1, parsed.MaxEntries)
	assert.Equal(t, 1<<30, parsed.MaxCachedSize)
	require.Len(t, parsed.Steps, 8)
	assert.Equal(t, trace.Step{
		Line: 5, Op: trace.Lookup, Mode: metaport.Normal, Words: []uint64{1, 1<<64 - 1},
		Answer: trace.Hit, Value: 7, Len: 1, Released: []uint64{},
	}, parsed.Steps[2])
}

// parrot answers what the trace says, but for one step.
type parrot struct {
	steps []trace.Step
	at    int
	wrong int
	how   func(*trace.Step)
}

func (p *parrot) next() trace.Step {
	s := p.steps[p.at]
	if p.at == p.wrong {
		p.how(&s)
	}
	p.at++
	return s
}

func (p *parrot) last() trace.Step {
	p.at--
	return p.next()
}

var errRefused = errors.New("refused")

func (p *parrot) answer() error {
	if p.next().Line == 0 {
		return errRefused
	}
	return nil
}

func (p *parrot) Lookup(metaport.Mode, []uint64) (uint64, trace.Answer, error) {
	s := p.next()
	if s.Line == 0 {
		return 0, 0, errRefused
	}
	return s.Value, s.Answer, nil
}
func (p *parrot) Store([]uint64, uint64) error { return p.answer() }
func (p *parrot) CaptureCommit(uint64) error   { return p.answer() }
func (p *parrot) CaptureDiscard() error        { return p.answer() }
func (p *parrot) GraphRelease(uint64)          { p.next() }
func (p *parrot) ClearUnpinned()               { p.next() }
func (p *parrot) Len() int                     { return p.last().Len }
func (p *parrot) TakeReleased() []uint64       { return p.last().Released }

// TestReplaySeesEveryDifference changes one outcome at a time.
func TestReplaySeesEveryDifference(t *testing.T) {
	parsed, err := trace.Parse(strings.NewReader(small))
	require.NoError(t, err)
	require.NoError(t, parsed.Replay(&parrot{steps: parsed.Steps, wrong: -1}))

	for i, s := range parsed.Steps {
		changes := map[string]func(*trace.Step){
			"len":      func(s *trace.Step) { s.Len++ },
			"released": func(s *trace.Step) { s.Released = append([]uint64{99}, s.Released...) },
		}
		switch s.Op {
		case trace.Lookup:
			changes["answer"] = func(s *trace.Step) { s.Answer = (s.Answer + 1) % 3 }
			changes["error"] = func(s *trace.Step) { s.Line = 0 }
			if s.Answer == trace.Hit {
				changes["value"] = func(s *trace.Step) { s.Value++ }
			}
		case trace.Store, trace.CaptureCommit, trace.CaptureDiscard:
			changes["error"] = func(s *trace.Step) { s.Line = 0 }
		}
		for name, how := range changes {
			err := parsed.Replay(&parrot{steps: parsed.Steps, wrong: i, how: how})
			require.ErrorIs(t, err, trace.ErrDiffers, "%s of step %d", name, i)
			assert.ErrorContains(t, err, fmt.Sprintf("line %d:", s.Line))
		}
	}
}

func TestReplayRefusesUnknownOp(t *testing.T) {
	made := trace.Trace{Steps: []trace.Step{{Line: 2, Op: "dance"}}}
	require.ErrorIs(t, made.Replay(&parrot{steps: made.Steps, wrong: -1}), trace.ErrFormat)
}

// FuzzParse: no input makes the parser panic, and what it accepts, it accepts
// in full.
func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	files, err := filepath.Glob("../../../testdata/badtraces/*.jsonl")
	require.NoError(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		parsed, err := trace.Parse(strings.NewReader(string(text)))
		if err != nil {
			require.ErrorIs(t, err, trace.ErrFormat)
			require.Nil(t, parsed)
			return
		}
		require.NoError(t, parsed.Replay(&parrot{steps: parsed.Steps, wrong: -1}))
	})
}
