package alloctrace_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/internal/poolbench/alloctrace"
	"vkcompute/pool"
	"vkcompute/vk"
)

func models() map[string]*alloctrace.Trace {
	return map[string]*alloctrace.Trace{"train": alloctrace.Train(), "decode": alloctrace.Decode()}
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	for _, tr := range models() {
		var b bytes.Buffer
		_, err := tr.WriteTo(&b)
		require.NoError(t, err)
		back, err := alloctrace.Parse(&b)
		require.NoError(t, err)
		require.Equal(t, tr, back)
	}
}

// The models are honest: weights, moments and caches have the sizes that the programs have.
func TestTheModelsHaveTheSizesOfTheirPrograms(t *testing.T) {
	most := func(tr *alloctrace.Trace, role vk.MemoryRole) (most uint64, n int) {
		now := uint64(0)
		size := map[uint32]uint64{}
		for _, e := range tr.Events {
			switch {
			case e.Kind == alloctrace.Alloc && e.Role == role:
				size[e.ID] = e.Size
				now += e.Size
				n++
			case e.Kind == alloctrace.Free:
				now -= size[e.ID]
				delete(size, e.ID)
			}
			most = max(most, now)
		}
		return most, n
	}
	train, n := most(alloctrace.Train(), vk.DeviceMemory)
	parameters := uint64(784*128 + 128 + 128*10 + 10)
	assert.Greater(t, train, 3*parameters*4, "parameters and both moments")
	assert.Less(t, train, 20*parameters*4)
	assert.Greater(t, n, 40*60)
	decode, n := most(alloctrace.Decode(), vk.DeviceMemory)
	weights := uint64(32000*288 + 6*(2*288+4*288*288+3*288*768) + 288)
	assert.InDelta(t, 15.2e6, float64(weights), 0.1e6)
	assert.Greater(t, decode, weights*4)
	assert.Less(t, decode, weights*4+4<<20)
	assert.Greater(t, n, 48*6*16)
}

func TestLives(t *testing.T) {
	tr, err := alloctrace.Parse(strings.NewReader(`
# two lines
# of comment
allocations 2
+ 1 100 device
+ 2 200 upload
# not part of the comment
- 1 1
- 2 1
+ 1 300 device
+ 3 50 info
+ 4 60 upload
- 4 2
done 1
- 3 2
+ 5 70 info
- 5 1
done 2
`))
	require.NoError(t, err)
	assert.Equal(t, "two lines\nof comment\n", tr.Comment)
	assert.Equal(t, []alloctrace.Life{
		{Size: 100, Role: vk.DeviceMemory, Begin: 0, End: 2},
		{Size: 200, Role: vk.UploadMemory, Begin: 1, End: 8},
		{Size: 300, Role: vk.DeviceMemory, Begin: 4, End: 13},
		{Size: 50, Role: vk.InfoMemory, Begin: 5, End: 12},
		{Size: 60, Role: vk.UploadMemory, Begin: 6, End: 12},
		{Size: 70, Role: vk.InfoMemory, Begin: 10, End: 11},
	}, tr.Lives())
}

func TestBadTracesAreRefusedWithTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                                "line 1: the file ends",
		"# only this\n":                                   "line 2: the file ends",
		"allocations 1\n":                                 `line 1: "allocations 1"`,
		"allocations 2\n+ 1 2":                            "line 2",
		"allocations 2\n+ 1 2 gpu":                        `role "gpu"`,
		"allocations 2\n+ x 2 device":                     "ID",
		"allocations 2\n+ 1 -2 device":                    "size",
		"allocations 2\n- 1 1":                            "not alive",
		"allocations 2\n- 99999999999 1":                  "ID",
		"allocations 2\n\n+ 1 2 info\n+ 1 2 info":         "line 4: ID 1 is allocated and alive",
		"allocations 2\n+ 1 9999999999999999 info":        "size up to",
		"allocations 2\n+ 99999999 1 info":                "ID up to",
		"allocations 2\n- 1":                              "line 2",
		"allocations 2\n+ 1 2 info\n- 1 -1":               "serial",
		"allocations 2\n+ 1 2 info\n- 1 9999999999999999": "serial up to",
		"allocations 2\ndone x":                           "serial",
		"allocations 2\ndone 2\ndone 1":                   "done up to 1 after 2",
		"allocations 2\nsubmit now":                       "line 2",
		"allocations 2\n" + strings.Repeat("x", 1<<16):    "line 2",
	} {
		_, err := alloctrace.Parse(strings.NewReader(text))
		var syntax *alloctrace.SyntaxError
		require.ErrorAs(t, err, &syntax, "%.50q", text)
		assert.Contains(t, err.Error(), want, "%.50q", text)
	}
	_, err := alloctrace.Parse(iotest.ErrReader(os.ErrPermission))
	require.ErrorIs(t, err, os.ErrPermission)
	bad := &alloctrace.Trace{Events: []alloctrace.Event{{Kind: 9}}}
	_, err = bad.WriteTo(&bytes.Buffer{})
	require.Error(t, err)
}

// The pool keeps what the trace keeps, and nothing is alive when it is over.
func TestPlay(t *testing.T) {
	for name, tr := range models() {
		for layout, l := range map[string]pool.Layout{"SubSlices": pool.SubSlices(), "ExclusivePages": pool.ExclusivePages()} {
			t.Run(name+"/"+layout, func(t *testing.T) {
				var p alloctrace.Player
				m, err := pool.NewVirtual(vk.DeviceInfo{}, &p.Timeline, pool.Options{Layout: l})
				require.NoError(t, err)
				live := 0
				p.After = func(i int, s pool.Slice) error {
					switch tr.Events[i].Kind {
					case alloctrace.Alloc:
						live++
						require.Equal(t, tr.Events[i].Size, s.Size())
					case alloctrace.Free:
						live--
						require.False(t, s.Valid())
					}
					if i%997 == 0 {
						require.Equal(t, live, m.Stats().Total.Slices)
						return m.Validate()
					}
					return nil
				}
				require.NoError(t, p.Play(tr, m))
				require.NoError(t, p.Release())
				require.NoError(t, m.Close())
			})
		}
	}
	stop := errors.New("stop")
	p := alloctrace.Player{After: func(int, pool.Slice) error { return stop }}
	m, err := pool.NewVirtual(vk.DeviceInfo{}, &p.Timeline, pool.Options{})
	require.NoError(t, err)
	require.ErrorIs(t, p.Play(alloctrace.Train(), m), stop)
}

// Whatever the bytes are, Parse answers; and what it accepts, it writes and reads back, and any pool can play.
func FuzzParse(f *testing.F) {
	f.Add([]byte("allocations 2\n+ 1 100 device\n- 1 1\ndone 1\n"))
	f.Add([]byte("# c\nallocations 2\n+ 7 1125899906842624 read-back\n"))
	f.Add([]byte("allocations 2\n+ 0 0 info\n- 0 0\n+ 0 5000 info"))
	f.Fuzz(func(t *testing.T, b []byte) {
		tr, err := alloctrace.Parse(bytes.NewReader(b))
		if err != nil {
			return
		}
		var out bytes.Buffer
		_, err = tr.WriteTo(&out)
		require.NoError(t, err)
		back, err := alloctrace.Parse(&out)
		require.NoError(t, err)
		require.Equal(t, tr.Events, back.Events)
		var p alloctrace.Player
		m, err := pool.NewVirtual(vk.DeviceInfo{}, &p.Timeline, pool.Options{})
		require.NoError(t, err)
		require.NoError(t, p.Play(tr, m))
		require.NoError(t, p.Release())
		require.NoError(t, m.Close())
	})
}

// A recording of a trace that is played is that trace, but for what nobody could tell: a serial that was done
// before and is done again, or that is done after the last event.
func TestARecordingOfATraceIsTheTrace(t *testing.T) {
	record := func(tr *alloctrace.Trace) *alloctrace.Trace {
		var p alloctrace.Player
		m, err := pool.NewVirtual(vk.DeviceInfo{}, &p.Timeline, pool.Options{})
		require.NoError(t, err)
		stop := m.Record()
		require.NoError(t, p.Play(tr, m))
		got, err := alloctrace.Recorded(stop())
		require.NoError(t, err)
		require.NoError(t, p.Release())
		require.NoError(t, m.Close())
		return got
	}
	for name, tr := range models() {
		got := record(tr)
		done := uint64(0)
		var want []alloctrace.Event
		for _, e := range tr.Events {
			if e.Kind == alloctrace.Done {
				done = e.Serial
				continue
			}
			if e.Kind == alloctrace.Alloc || e.Kind == alloctrace.Free {
				if n := len(want); done > 0 && (n == 0 || lastDone(want) < done) {
					want = append(want, alloctrace.Event{Kind: alloctrace.Done, Serial: done})
				}
			}
			want = append(want, e)
		}
		// Device memory inherits the serial of what lay there before, if that is not done.
		require.Len(t, got.Events, len(want), name)
		for i, e := range got.Events {
			if e.Kind == alloctrace.Free {
				require.GreaterOrEqual(t, e.Serial, want[i].Serial)
				e.Serial = want[i].Serial
			}
			require.Equal(t, want[i], e, "%s: event %d", name, i)
		}
	}
	_, err := alloctrace.Recorded(nil)
	require.Error(t, err)
	_, err = alloctrace.Recorded([]pool.Event{{Kind: pool.EventDone}, {Kind: pool.EventAlloc, ID: 1, Next: pool.NextHost}})
	require.Error(t, err)
}

func lastDone(events []alloctrace.Event) uint64 {
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Kind == alloctrace.Done {
			return events[i].Serial
		}
	}
	return 0
}
