package workload

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"vkcompute/internal/metaport"
	"vkcompute/metacache"
)

// Value stands for the handle of an info buffer.
type Value struct {
	Page *byte
	Slot uint64
}

// Case is the same work done twice. Each function performs n operations.
type Case struct {
	Name  string
	Cache func(n int) error
	Port  func(n int) error
}

// The sizes that are reported: words of an info for Hit, entries of the cache
// for Miss.
var (
	hitWords    = [...]int{4, 16, 64, 256}
	missEntries = [...]int{64, 512, 4096, 32768}
)

// HitWords returns the sizes at which Hit is reported.
func HitWords() []int { return hitWords[:] }

// MissEntries returns the sizes at which Miss is reported.
func MissEntries() []int { return missEntries[:] }

// LaunchesPerStep is how many different infos Hit goes round: what one step of
// a small transformer launches.
const LaunchesPerStep = 96

var errWrongAnswer = errors.New("workload: wrong answer from the cache under test")

// Hit is a look-up that hits, of infos of so many words, going round
// LaunchesPerStep of them in the order of a program that repeats its launches.
func Hit(words int) (Case, error) { return HitAmong(LaunchesPerStep, words, InTurn) }

// Order is the order in which HitAmong uses its infos.
type Order uint8

const (
	// InTurn: one after the other, round and round.
	InTurn Order = iota
	// AtRandom: in no order that repeats itself soon, so that nothing can be
	// foreseen.
	AtRandom
)

// HitAmong is Hit with so many infos. With many more than a program launches in a
// step, what is measured is the processor's caches.
func HitAmong(infos, words int, o Order) (Case, error) {
	if infos < 1 || infos > 4096 || words < 1 || words > 256 {
		return Case{}, fmt.Errorf("workload: want 1 to 4096 infos of 1 to 256 words, got %d of %d", infos, words)
	}
	cache, port, err := caches(4096, metacache.AdmitAll)
	if err != nil {
		return Case{}, err
	}
	keys := make([][]uint64, infos)
	for i := range keys {
		keys[i] = info(words, uint64(i))
		if _, err := cache.Insert(keys[i], Value{Slot: uint64(i)}); err != nil {
			return Case{}, err
		}
		port.Lookup(metaport.Normal, keys[i])
		port.Store(keys[i], Value{Slot: uint64(i)})
	}
	order := make([]int, infos)
	for i := range order {
		order[i] = i
	}
	if o == AtRandom {
		random := rand.New(rand.NewPCG(1, 2))
		order = make([]int, 1<<14)
		for i := range order {
			order[i] = random.IntN(infos)
		}
	}
	return Case{
		Name: fmt.Sprintf("hit/words=%d", words),
		Cache: func(n int) error {
			for at := 0; n > 0; n-- {
				i := order[at]
				v, hit, _ := cache.Lookup(keys[i])
				if !hit || v.Slot != uint64(i) {
					return errWrongAnswer
				}
				if at++; at == len(order) {
					at = 0
				}
			}
			return nil
		},
		Port: func(n int) error {
			for at := 0; n > 0; n-- {
				i := order[at]
				v, hit, _ := port.Lookup(metaport.Normal, keys[i])
				if !hit || v.Slot != uint64(i) {
					return errWrongAnswer
				}
				if at++; at == len(order) {
					at = 0
				}
			}
			return nil
		},
	}, nil
}

// Miss is a look-up that misses, its store and the eviction for it, in a full
// cache of so many entries of 12 words.
func Miss(entries int) (Case, error) {
	if entries < 1 || entries > 1<<20 {
		return Case{}, fmt.Errorf("workload: want 1 to %d entries, got %d", 1<<20, entries)
	}
	cache, port, err := caches(entries, metacache.AdmitAll)
	if err != nil {
		return Case{}, err
	}
	const words = 12
	ours, theirs := info(words, 0), info(words, 0)
	c := Case{
		Name: fmt.Sprintf("miss/entries=%d", entries),
		Cache: func(n int) error {
			for ; n > 0; n-- {
				ours[words-1]++
				_, hit, miss := cache.Lookup(ours)
				if hit {
					return errWrongAnswer
				}
				if _, err := miss.Store(Value{}); err != nil {
					return err
				}
			}
			return nil
		},
		Port: func(n int) error {
			for ; n > 0; n-- {
				theirs[words-1]++
				_, hit, store := port.Lookup(metaport.Normal, theirs)
				if hit || !store {
					return errWrongAnswer
				}
				port.Store(theirs, Value{})
			}
			return nil
		},
	}
	if err := c.Cache(entries); err != nil {
		return Case{}, err
	}
	// Filling the port needs no eviction, and so no scan.
	return c, c.Port(entries)
}

// Capture is one capture of so many different infos of 12 words, its commit and
// the release of its graph: one operation is all of that.
func Capture(infos int) (Case, error) {
	if infos < 0 || infos > 1<<24 {
		return Case{}, fmt.Errorf("workload: want 0 to %d infos, got %d", 1<<24, infos)
	}
	cache, port, err := caches(4096, metacache.AdmitAll)
	if err != nil {
		return Case{}, err
	}
	const words, graph = 12, 1
	key := info(words, 0)
	return Case{
		Name: fmt.Sprintf("capture/infos=%d", infos),
		Cache: func(n int) error {
			for ; n > 0; n-- {
				k, err := cache.Begin()
				if err != nil {
					return err
				}
				for i := range infos {
					key[words-1] = uint64(i)
					_, _, miss := k.Lookup(key)
					if _, err := miss.Store(Value{}); err != nil {
						return err
					}
				}
				if err := k.Commit(graph); err != nil {
					return err
				}
				if cache.Len() != infos || !cache.GraphRelease(graph) || cache.Len() != 0 {
					return errWrongAnswer
				}
			}
			return nil
		},
		Port: func(n int) error {
			for ; n > 0; n-- {
				for i := range infos {
					key[words-1] = uint64(i)
					port.Lookup(metaport.Capture, key)
					port.Store(key, Value{})
				}
				port.CaptureCommit(graph)
				if port.Len() != infos {
					return errWrongAnswer
				}
				port.GraphRelease(graph)
				if port.Len() != 0 {
					return errWrongAnswer
				}
			}
			return nil
		},
	}, nil
}

func caches(entries int, admission metacache.Admission) (*metacache.Cache[Value], *metaport.Cache[Value], error) {
	policy := metacache.Policy{MaxEntries: entries, MaxCachedSize: 2048, Admission: admission}
	release := func(Value) {}
	cache, err := metacache.New(policy, release)
	if err != nil {
		return nil, nil, err
	}
	port, err := metaport.New(policy.MaxEntries, policy.MaxCachedSize, release)
	return cache, port, err
}

// info returns the words of the n-th info. Infos of a program differ in a few
// places, and so do these: in their last word.
func info(words int, n uint64) []uint64 {
	w := make([]uint64, words)
	for i := range w {
		w[i] = uint64(i)*0x9e37_79b9_7f4a_7c15 + 1
	}
	w[words-1] = n
	return w
}
