package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"
)

// Case is one thing to be timed.
type Case struct {
	Name string
	// Run does it, as often as asked, and waits until it is done.
	Run func(shots int) error
	// Warm is how many shots go before each sample, uncounted; 0 is 1. What works on much
	// memory wants a turn through all of it: the samples of other cases, in between, have
	// taken the processor's caches.
	Warm int
}

// Group is a set of cases whose samples are of the same number of shots, because they
// are compared with each other.
type Group struct{ Cases []Case }

// Options of Measure.
type Options struct {
	// Rounds is the least number of samples of each case; 0 is 1.
	Rounds int
	// Time is how long to go on for more. The round under way is always finished.
	Time time.Duration
	// Limit ends the measurement early where the rounds would take longer than this, after
	// FewRounds of them at least; 0 is no limit.
	Limit time.Duration
	// Shot is the least duration of a sample; shots are repeated to reach it. 0 is
	// DefaultShot.
	Shot time.Duration
	// Seed of the shuffling.
	Seed uint64
	// Progress is told before each round, and may be nil.
	Progress func(Progress)
}

// Progress is how far a measurement has come.
type Progress struct {
	Round   int
	Elapsed time.Duration
	// Part is between 0 and 1.
	Part float64
}

const (
	// DefaultShot is long against the clock's resolution and the crossing into C.
	DefaultShot = 500 * time.Microsecond
	// FewRounds is how many samples there are at least where time is short.
	FewRounds = 5
	// MaxRounds bounds the samples, which are all kept and written down.
	MaxRounds = 1000

	// longShot is so long that a few shots say enough and caches are filled again within.
	longShot = 20 * time.Millisecond

	warmUps  = 3
	maxShots = 1 << 16
)

// Samples are nanoseconds per shot, one for each round.
type Samples []float64

// ErrInterrupted: the context ended before the measurement was complete.
var ErrInterrupted = errors.New("interrupted")

// Measure takes samples of all cases in rounds, and returns them by group and case.
func Measure(ctx context.Context, groups []Group, o Options) ([][]Samples, error) {
	if o.Rounds > MaxRounds {
		return nil, fmt.Errorf("bench: %d samples of each case: want at most %d", o.Rounds, MaxRounds)
	}
	o.Rounds = max(o.Rounds, 1)
	if o.Shot <= 0 {
		o.Shot = DefaultShot
	}
	m := &measurement{ctx: ctx, groups: groups, long: map[*Case]bool{}}
	if err := m.warmUp(o.Shot); err != nil {
		return nil, err
	}
	// What the warm-up left behind is not collected during a sample.
	runtime.GC()
	random := rand.New(rand.NewPCG(o.Seed, 0))
	start := time.Now()
	for round := 0; round < MaxRounds; round++ {
		elapsed := time.Since(start)
		if round >= o.Rounds && elapsed >= o.Time {
			break
		}
		if o.Limit > 0 && round >= min(FewRounds, o.Rounds) && elapsed >= o.Limit {
			break
		}
		if o.Progress != nil {
			part := float64(round) / float64(o.Rounds)
			if o.Time > 0 {
				part = min(part, float64(elapsed)/float64(o.Time))
			}
			o.Progress(Progress{Round: round, Elapsed: elapsed, Part: min(part, 1)})
		}
		for _, g := range random.Perm(len(groups)) {
			for _, c := range random.Perm(len(groups[g].Cases)) {
				d, err := m.sample(g, c, m.shots[g])
				if err != nil {
					return nil, err
				}
				m.samples[g][c] = append(m.samples[g][c], float64(d)/float64(m.shots[g]))
			}
		}
	}
	return m.samples, nil
}

type measurement struct {
	ctx     context.Context
	groups  []Group
	shots   []int // by group
	long    map[*Case]bool
	samples [][]Samples
}

func (m *measurement) sample(g, c, shots int) (time.Duration, error) {
	k := &m.groups[g].Cases[c]
	if err := m.ctx.Err(); err != nil {
		return 0, fmt.Errorf("%s: %w: %w", k.Name, ErrInterrupted, err)
	}
	// What ran before left the processor's caches full of its own.
	if !m.long[k] || k.Warm > 0 {
		if err := k.Run(max(k.Warm, 1)); err != nil {
			return 0, fmt.Errorf("%s: %w", k.Name, err)
		}
	}
	start := time.Now()
	err := k.Run(shots)
	d := time.Since(start)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", k.Name, err)
	}
	return d, nil
}

// warmUp runs every case uncounted and chooses the shots of each group by its fastest
// case, so that the shortest sample is long enough.
func (m *measurement) warmUp(shot time.Duration) error {
	m.shots = make([]int, len(m.groups))
	m.samples = make([][]Samples, len(m.groups))
	for g := range m.groups {
		m.samples[g] = make([]Samples, len(m.groups[g].Cases))
		fastest := time.Duration(0)
		for c := range m.groups[g].Cases {
			var best time.Duration
			for i := range warmUps {
				d, err := m.sample(g, c, 1)
				if err != nil {
					return fmt.Errorf("warming up: %w", err)
				}
				if i == 0 || d < best {
					best = d
				}
				if d >= longShot {
					m.long[&m.groups[g].Cases[c]] = true
					break
				}
			}
			if c == 0 || best < fastest {
				fastest = best
			}
		}
		fastest = max(fastest, 1)
		m.shots[g] = int(min((shot+fastest-1)/fastest, maxShots))
	}
	return nil
}
