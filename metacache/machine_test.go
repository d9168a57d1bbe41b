package metacache_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"vkcompute/metacache"
)

// chooser makes the choices of a run: rapid's, or the bytes of a fuzz input.
type chooser interface {
	// choose returns a number in [0, n).
	choose(n int, what string) int
}

// machine runs a cache and the model of it side by side. Each of its steps is
// one operation on both; it returns an error if they differ, if an invariant is
// broken, or if a value is released twice or while something pins it.
type machine struct {
	choices chooser
	cache   *metacache.Cache[int]
	model   *model

	capture *metacache.Capture[int]
	over    []*metacache.Capture[int]
	misses  []*openMiss
	spent   []metacache.Miss[int]
	issued  int

	next     int
	owned    map[int]owner
	released []int
	// failure is the first fault found inside the release function.
	failure error
	depth   int
}

type owner uint8

const (
	caller owner = iota + 1
	held
	gone
)

// openMiss is a look-up whose store is still to come.
type openMiss struct {
	miss    metacache.Miss[int]
	words   []uint64
	mode    metacache.Mode
	capture *metacache.Capture[int]
	number  int
}

func newMachine(choices chooser) (*machine, error) {
	// Rapid prefers small choices: the tables begin with what is worth most runs.
	p := metacache.Policy{
		MaxEntries:    []int{3, 2, 5, 1, 8, 0}[choices.choose(6, "entries")],
		MaxCachedSize: []int{24, 16, 32, 8, 0}[choices.choose(5, "size")],
		MaxBytes:      []int64{0, 64, 40, 16}[choices.choose(4, "bytes")],
		Admission:     metacache.Admission(choices.choose(2, "admission")),
	}
	m := &machine{choices: choices, model: newModel(p), owned: map[int]owner{}}
	var err error
	if m.cache, err = metacache.New(p, m.release); err != nil {
		return nil, err
	}
	m.model.frequency = m.cache.Frequency
	if choices.choose(2, "crowd") == 1 {
		m.cache.Crowd()
	}
	return m, nil
}

// operations lists the steps by name. What empties the cache, or is an error,
// is rare, or nothing would ever come together.
func (m *machine) operations() map[string]func() error {
	return map[string]func() error{
		"lookup":        m.lookup,
		"lookupStore":   m.lookupStore,
		"captureLookup": m.captureLookup,
		"captureStore":  m.captureStore,
		"hitAgain":      m.hitAgain,
		"goRound":       m.goRound,
		"store":         m.store,
		"insert":        m.insert,
		"commit":        m.commit,
		"graphRelease":  m.graphRelease,
		"rare":          m.rare,
	}
}

func (m *machine) rare() error {
	rare := []func() error{m.discard, m.storeSpent, m.storeChanged, m.begin, m.endOver, m.clearUnpinned, m.clear}
	return rare[m.choices.choose(len(rare), "rare")]()
}

// step runs one operation and compares everything afterwards.
func (m *machine) step(operation func() error) error {
	m.released, m.model.released = nil, nil
	if err := operation(); err != nil {
		return err
	}
	if m.failure != nil {
		return m.failure
	}
	return m.compare()
}

func (m *machine) compare() error {
	if err := m.cache.Validate(); err != nil {
		return err
	}
	slices.Sort(m.released)
	slices.Sort(m.model.released)
	if !slices.Equal(m.released, m.model.released) {
		return fmt.Errorf("want %v released, got %v", m.model.released, m.released)
	}
	if got, want := m.cache.Len(), len(m.model.entries); got != want {
		return fmt.Errorf("want %d entries, got %d", want, got)
	}
	if got, want := m.cache.Stats(), m.model.sizes(); got != want {
		return fmt.Errorf("want statistics %+v, got %+v", want, got)
	}
	n := 0
	for _, o := range m.owned {
		if o == held {
			n++
		}
	}
	if n != len(m.model.entries) {
		return fmt.Errorf("want %d values with the cache, found %d", len(m.model.entries), n)
	}
	return nil
}

func (m *machine) words() []uint64 {
	w := make([]uint64, []int{1, 2, 3, 0, 4}[m.choices.choose(5, "length")])
	for i := range w {
		w[i] = uint64(m.choices.choose(4-len(w)/2, "word"))
	}
	return w
}

func (m *machine) value() int {
	m.next++
	m.owned[m.next] = caller
	return m.next
}

func (m *machine) graph() metacache.GraphID { return metacache.GraphID(m.choices.choose(4, "graph")) }

func (m *machine) lookup() error { return m.find(m.words(), metacache.Normal) }

// lookupStore is a launch: what misses is stored at once.
func (m *machine) lookupStore() error {
	misses := len(m.misses)
	if err := m.lookup(); err != nil || len(m.misses) == misses {
		return err
	}
	return m.storeMiss(m.takeAt(misses))
}

// captureLookup looks up in the running capture and begins one if there is
// none.
func (m *machine) captureLookup() error {
	if m.capture == nil {
		if err := m.begin(); err != nil {
			return err
		}
	}
	return m.find(m.words(), metacache.Capturing)
}

func (m *machine) captureStore() error {
	misses := len(m.misses)
	if err := m.captureLookup(); err != nil || len(m.misses) == misses {
		return err
	}
	return m.storeMiss(m.takeAt(misses))
}

// hitAgain looks up a few keys that are there, in any order.
func (m *machine) hitAgain() error {
	keys := m.model.unpinned()
	if len(keys) == 0 {
		return nil
	}
	for range 3 {
		e := m.model.entries[keys[m.choices.choose(len(keys), "key")]]
		if err := m.find(e.words, metacache.Normal); err != nil {
			return err
		}
	}
	return nil
}

// goRound looks up the keys that are there in the order of their last use, which
// is the order that the cache foresees.
func (m *machine) goRound() error {
	for range 2 {
		for _, key := range m.model.unpinned() {
			if err := m.find(m.model.entries[key].words, metacache.Normal); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *machine) find(words []uint64, mode metacache.Mode) error {
	look := m.cache.Lookup
	if mode == metacache.Capturing {
		look = m.capture.Lookup
	}
	value, hit, miss := look(words)
	e, wanted := m.model.lookup(words, mode)
	if hit != (e != nil) || hit && value != e.value {
		return fmt.Errorf("look-up of %v: want %+v, got hit %t of %d", words, e, hit, value)
	}
	if miss.Wanted() != wanted {
		return fmt.Errorf("look-up of %v: want store wanted %t, got %t", words, wanted, miss.Wanted())
	}
	if miss.Wanted() {
		m.issued++
		m.misses = append(m.misses, &openMiss{miss, words, mode, m.capture, m.issued})
	} else if !hit {
		m.spent = append(m.spent, miss)
	}
	return nil
}

// take removes and returns one of the open misses, nil if there is none.
func (m *machine) take() *openMiss {
	if len(m.misses) == 0 {
		return nil
	}
	for m.misses[0].number+metacache.OpenMisses <= m.issued {
		old := m.misses[0]
		m.misses = m.misses[1:]
		m.spent = append(m.spent, old.miss)
		if len(m.misses) == 0 {
			return nil
		}
	}
	return m.takeAt(m.choices.choose(len(m.misses), "miss"))
}

func (m *machine) takeAt(i int) *openMiss {
	o := m.misses[i]
	m.misses = slices.Delete(m.misses, i, i+1)
	m.spent = append(m.spent, o.miss)
	return o
}

func (m *machine) store() error {
	if o := m.take(); o != nil {
		return m.storeMiss(o)
	}
	return nil
}

func (m *machine) storeMiss(o *openMiss) error {
	v := m.value()
	if o.mode == metacache.Capturing && o.capture != m.capture {
		_, err := o.miss.Store(v)
		return wantErr("store of a capture that is over", err, metacache.ErrCaptureOver)
	}
	return m.storing(v, o.words, o.mode, o.miss.Store)
}

// storing compares a store that must succeed.
func (m *machine) storing(v int, words []uint64, mode metacache.Mode, do func(int) (int, error)) error {
	m.owned[v] = held
	want := m.model.store(words, v, mode)
	m.model.keep = modelKey(words)
	defer func() { m.model.keep = noKey }()
	kept, err := do(v)
	if err != nil {
		return fmt.Errorf("store of %v: %w", words, err)
	}
	if kept != want || m.owned[kept] != held {
		return fmt.Errorf("store of %v: want %d kept and held, got %d", words, want, kept)
	}
	return nil
}

func (m *machine) storeSpent() error {
	if len(m.spent) == 0 {
		return nil
	}
	miss := m.spent[m.choices.choose(len(m.spent), "spent")]
	_, err := miss.Store(m.value())
	if miss.Wanted() && err != nil && errors.Is(err, metacache.ErrMissUsed) ||
		!miss.Wanted() && errors.Is(err, metacache.ErrNotWanted) {
		return nil
	}
	// A store that was refused because its capture was over, or its words had
	// changed, is refused again.
	if errors.Is(err, metacache.ErrCaptureOver) || errors.Is(err, metacache.ErrKeyChanged) {
		return nil
	}
	return fmt.Errorf("store of a spent miss: got %v", err)
}

func (m *machine) storeChanged() error {
	o := m.take()
	if o == nil {
		return nil
	}
	if len(o.words) == 0 {
		m.spent = m.spent[:len(m.spent)-1]
		return nil
	}
	o.words[0] += 100
	_, err := o.miss.Store(m.value())
	if o.mode == metacache.Capturing && o.capture != m.capture {
		return wantErr("store of a capture that is over", err, metacache.ErrCaptureOver)
	}
	return wantErr("store of changed words", err, metacache.ErrKeyChanged)
}

func (m *machine) insert() error {
	words, v := m.words(), m.value()
	if !m.model.cacheable(words) {
		_, err := m.cache.Insert(words, v)
		return wantErr("insert", err, metacache.ErrNotCacheable)
	}
	return m.storing(v, words, metacache.Normal, func(v int) (int, error) { return m.cache.Insert(words, v) })
}

func (m *machine) begin() error {
	k, err := m.cache.Begin()
	if m.capture != nil {
		return wantErr("begin", err, metacache.ErrCaptureOpen)
	}
	m.capture, m.model.capture = k, map[string]bool{}
	return err
}

func (m *machine) commit() error {
	if m.capture == nil {
		return nil
	}
	graph := m.graph()
	if !m.model.commit(graph) {
		return wantErr("commit", m.capture.Commit(graph), metacache.ErrGraphInUse)
	}
	defer m.endCapture()
	return m.capture.Commit(graph)
}

func (m *machine) discard() error {
	if m.capture == nil {
		return nil
	}
	m.model.discard()
	defer m.endCapture()
	return m.capture.Discard()
}

func (m *machine) endCapture() {
	m.over = append(m.over, m.capture)
	m.capture = nil
}

// endOver uses a capture after its end.
func (m *machine) endOver() error {
	if len(m.over) == 0 {
		return nil
	}
	k := m.over[m.choices.choose(len(m.over), "over")]
	if _, hit, miss := k.Lookup(m.words()); hit || miss.Wanted() {
		return errors.New("want nothing found and nothing wanted by a capture that is over")
	}
	return errors.Join(
		wantErr("commit", k.Commit(m.graph()), metacache.ErrCaptureOver),
		wantErr("discard", k.Discard(), metacache.ErrCaptureOver))
}

func (m *machine) graphRelease() error {
	graph := m.graph()
	if got, want := m.cacheRelease(graph); got != want {
		return fmt.Errorf("release of graph %d: want %t, got %t", graph, want, got)
	}
	return nil
}

func (m *machine) cacheRelease(graph metacache.GraphID) (got, want bool) {
	want = m.model.graphRelease(graph)
	return m.cache.GraphRelease(graph), want
}

func (m *machine) clearUnpinned() error {
	m.model.clearUnpinned()
	m.cache.ClearUnpinned()
	return nil
}

func (m *machine) clear() error {
	if m.model.pinned() > 0 {
		return wantErr("clear", m.cache.Clear(), metacache.ErrPinned)
	}
	m.model.clearUnpinned()
	return m.cache.Clear()
}

// finish closes the cache and accounts for every value.
func (m *machine) finish() error {
	err := m.step(func() error {
		m.model.close()
		return m.cache.Close()
	})
	for v, o := range m.owned {
		if o == held {
			err = errors.Join(err, fmt.Errorf("value %d was never released", v))
		}
	}
	return err
}

// release is the cache's release function. It calls back into the cache.
func (m *machine) release(v int) {
	if m.owned[v] != held {
		m.fail(fmt.Errorf("value %d released while it is with %d", v, m.owned[v]))
	}
	m.owned[v] = gone
	m.released = append(m.released, v)
	for key, e := range m.model.entries {
		if e.value == v {
			m.fail(fmt.Errorf("value %d of %s released with %d pins", v, key, m.model.pins(key)))
		}
	}
	m.fail(m.cache.Validate())
	m.fail(m.refused())
	if m.depth < 2 {
		m.depth++
		m.fail(m.callBack())
		m.depth--
	}
}

func (m *machine) fail(err error) {
	if m.failure == nil && err != nil {
		m.failure = fmt.Errorf("inside release: %w", err)
	}
}

// refused tries what the release function may not do.
func (m *machine) refused() error {
	if m.model.policy.MaxEntries == 0 && m.cache.Policy() == (metacache.Policy{}) {
		return nil // closed, or as good as
	}
	_, insert := m.cache.Insert(nil, 0)
	_, begin := m.cache.Begin()
	errs := []error{
		wantErr("insert", insert, metacache.ErrReleasing),
		wantErr("begin", begin, metacache.ErrReleasing),
		wantErr("clear", m.cache.Clear(), metacache.ErrReleasing),
		wantErr("close", m.cache.Close(), metacache.ErrReleasing),
	}
	if k := m.capture; k != nil && m.model.capture != nil {
		errs = append(errs,
			wantErr("commit", k.Commit(99), metacache.ErrReleasing),
			wantErr("discard", k.Discard(), metacache.ErrReleasing))
	}
	if n := len(m.misses); n > 0 {
		_, err := m.misses[n-1].miss.Store(0)
		errs = append(errs, wantErr("store", err, metacache.ErrReleasing))
	}
	return errors.Join(errs...)
}

// callBack does something the release function may do.
func (m *machine) callBack() error {
	switch m.choices.choose(5, "callback") {
	case 0:
		return m.lookup()
	case 1:
		if m.capture != nil && m.model.capture != nil {
			return m.captureLookup()
		}
	case 2:
		return m.graphRelease()
	case 3:
		return m.clearUnpinned()
	}
	return nil
}

func wantErr(what string, got, want error) error {
	if !errors.Is(got, want) {
		return fmt.Errorf("%s: want an error matching %q, got %v", what, want, got)
	}
	return nil
}

type rapidChooser struct{ t *rapid.T }

func (c *rapidChooser) choose(n int, what string) int { return rapid.IntRange(0, n-1).Draw(c.t, what) }

func TestStateMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		choices := &rapidChooser{t}
		m, err := newMachine(choices)
		if err != nil {
			t.Fatal(err)
		}
		actions := map[string]func(*rapid.T){}
		for name, operation := range m.operations() {
			actions[name] = func(t *rapid.T) {
				choices.t = t
				if err := m.step(operation); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range 10 { // rapid's own run is too short to fill a cache and go on
			t.Repeat(actions)
			choices.t = t
		}
		if err := m.finish(); err != nil {
			t.Fatal(err)
		}
	})
}

// byteChooser makes one choice of each byte, and 0 when there are no more.
type byteChooser struct{ bytes []byte }

func (c *byteChooser) choose(n int, _ string) int {
	if len(c.bytes) == 0 {
		return 0
	}
	b := c.bytes[0]
	c.bytes = c.bytes[1:]
	return int(b) % n
}

// FuzzOperations decodes bytes into operations.
func FuzzOperations(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x02\x02\x00\x00lookup store capture commit release, and again"))
	f.Add([]byte("\x00\x00\x00\x00\x04\x01\x07\x01\x08\x02\x06\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d"))
	f.Fuzz(func(t *testing.T, bytes []byte) {
		choices := &byteChooser{bytes}
		m, err := newMachine(choices)
		if err != nil {
			t.Fatal(err)
		}
		operations := m.operations()
		names := make([]string, 0, len(operations))
		for name := range operations {
			names = append(names, name)
		}
		slices.Sort(names)
		var did []string
		for len(choices.bytes) > 0 {
			name := names[choices.choose(len(names), "operation")]
			did = append(did, name)
			if err := m.step(operations[name]); err != nil {
				t.Fatalf("after %v: %v", did, err)
			}
		}
		if err := m.finish(); err != nil {
			t.Fatalf("after %v: %v", did, err)
		}
	})
}
