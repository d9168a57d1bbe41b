package pool

import (
	"fmt"
	"math"
	"math/bits"
)

// Kind tells how a pool uses its pages.
type Kind uint8

const (
	// Sliced pages are cut into many slices.
	Sliced Kind = iota
	// Exclusive pages hold one slice each. A free page is only given to a
	// slice whose size rounds to the page's.
	Exclusive
)

func (k Kind) String() string {
	switch k {
	case Sliced:
		return "sliced"
	case Exclusive:
		return "exclusive"
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// PoolSpec describes one pool. Sizes are bytes.
type PoolSpec struct {
	Name string
	Kind Kind
	// MinSlice and MaxSlice bound the sizes that the pool accepts. MaxSlice
	// zero means PageSize for a sliced pool and no bound for an exclusive one.
	MinSlice uint64
	MaxSlice uint64
	// PageSize is the size of a sliced pool's first page, and the smallest page of an exclusive pool
	// (there zero means 4096). A slice larger than a sliced pool's next page gets a page of its size, into which
	// others go when it is released.
	PageSize uint64
	// MaxPageSize lets the pages of a sliced pool grow with what it has of the same use, up to this size: by an
	// eighth of that at a time, and twofold where the pages are those of infos. Zero means that all have PageSize.
	MaxPageSize uint64
	// Steps is how many page sizes an exclusive pool has for each power of two,
	// itself a power of two up to 32. Zero means 8: a page is at most an eighth larger than its slice.
	Steps uint64
	// Cap bounds the bytes of the pool's pages. A full pool spills to the next that accepts
	// the size, and says so once in the log. Zero means no bound.
	Cap uint64
	// Budget says what happens when the memory that suits the pool best is used up.
	Budget BudgetPolicy
}

// Layout is an ordered list of pools for each use; the first pool that accepts a size wins.
// A list that is nil is that of [SubSlices].
type Layout struct {
	Pools   []PoolSpec // device memory
	Staging []PoolSpec // upload and read-back memory
	Info    []PoolSpec // info slots; sizes here are those of [Manager.InfoRange] once above 4096
}

const (
	kib = 1 << 10
	mib = 1 << 20

	// infoRange is what a descriptor of an info slot covers: the largest
	// slot that is not a special case.
	infoRange = 4 * kib
	// minInfoSlot keeps an info without words distinct from its neighbours.
	minInfoSlot = 16

	defaultExclusivePage = 4 * kib
	defaultSteps         = 8
	maxSteps             = 32

	// maxSize bounds sizes and caps so that sums of a few of them cannot wrap.
	maxSize = math.MaxInt64 / 4
)

// SubSlices cuts most slices out of shared pages: a ladder of sliced pools, so
// that small slices do not fragment the pages of large ones, and an exclusive pool for what is larger.
func SubSlices() Layout {
	return Layout{
		Pools: []PoolSpec{
			{Name: "small", Kind: Sliced, MaxSlice: 64 * kib, PageSize: 64 * kib, MaxPageSize: 32 * mib},
			{Name: "medium", Kind: Sliced, MaxSlice: 2 * mib, PageSize: 256 * kib, MaxPageSize: 64 * mib},
			{Name: "large", Kind: Sliced, MaxSlice: 32 * mib, PageSize: 2 * mib, MaxPageSize: 128 * mib},
			{Name: "huge", Kind: Exclusive},
		},
		Staging: defaultStaging(),
		Info:    defaultInfo(),
	}
}

// ExclusivePages gives every slice a page of its own, in logarithmic buckets. It wastes up to
// an eighth of each page and never fragments.
func ExclusivePages() Layout {
	return Layout{
		Pools:   []PoolSpec{{Name: "exclusive", Kind: Exclusive}},
		Staging: []PoolSpec{{Name: "staging-exclusive", Kind: Exclusive}},
		Info:    defaultInfo(),
	}
}

func defaultStaging() []PoolSpec {
	return []PoolSpec{
		{Name: "staging", Kind: Sliced, MaxSlice: 8 * mib, PageSize: 128 * kib, MaxPageSize: 32 * mib},
		{Name: "staging-huge", Kind: Exclusive},
	}
}

func defaultInfo() []PoolSpec {
	return []PoolSpec{
		{Name: "info", Kind: Sliced, MaxSlice: 64 * kib, PageSize: 64 * kib, MaxPageSize: 4 * mib},
		{Name: "info-huge", Kind: Exclusive},
	}
}

// complete fills in what the zero value means. It shares no slice with l.
func (l Layout) complete() Layout {
	def := SubSlices()
	return Layout{
		Pools:   completeList(l.Pools, def.Pools, BudgetFail),
		Staging: completeList(l.Staging, def.Staging, BudgetSpill),
		Info:    completeList(l.Info, def.Info, BudgetSpill),
	}
}

func completeList(list, def []PoolSpec, budget BudgetPolicy) []PoolSpec {
	if list == nil {
		list = def
	}
	out := make([]PoolSpec, len(list))
	for i, p := range list {
		if p.Name == "" {
			p.Name = fmt.Sprintf("%s-%d", p.Kind, i)
		}
		if p.Budget == BudgetDefault {
			p.Budget = budget
		}
		switch p.Kind {
		case Sliced:
			if p.MaxSlice == 0 {
				p.MaxSlice = p.PageSize
			}
			if p.MaxPageSize == 0 {
				p.MaxPageSize = p.PageSize
			}
		case Exclusive:
			if p.MaxSlice == 0 {
				p.MaxSlice = maxSize
			}
			if p.PageSize == 0 {
				p.PageSize = defaultExclusivePage
			}
			if p.Steps == 0 {
				p.Steps = defaultSteps
			}
		}
		out[i] = p
	}
	return out
}

// Validate says whether the layout could be installed. Its errors match [ErrLayout].
func (l Layout) Validate() error {
	c := l.complete()
	for _, list := range []struct {
		name  string
		pools []PoolSpec
	}{{"Pools", c.Pools}, {"Staging", c.Staging}, {"Info", c.Info}} {
		if len(list.pools) == 0 {
			return fmt.Errorf("%w: %s is empty; want at least one pool, or nil for the default", ErrLayout, list.name)
		}
		for i, p := range list.pools {
			if err := p.validate(); err != nil {
				return fmt.Errorf("%w: %s[%d] %q: %w", ErrLayout, list.name, i, p.Name, err)
			}
		}
	}
	return nil
}

func (p PoolSpec) validate() error {
	switch {
	case p.Kind != Sliced && p.Kind != Exclusive:
		return fmt.Errorf("kind %d; want Sliced or Exclusive", p.Kind)
	case p.Budget > BudgetAllow:
		return fmt.Errorf("budget policy %d; want one of the constants", p.Budget)
	case p.PageSize == 0:
		return fmt.Errorf("has PageSize 0; want the size of a page")
	case p.PageSize > maxSize || p.MaxPageSize > maxSize || p.MaxSlice > maxSize || p.Cap > maxSize:
		return fmt.Errorf("a size above %d", uint64(maxSize))
	case p.MinSlice > p.MaxSlice:
		return fmt.Errorf("has MinSlice %d above MaxSlice %d", p.MinSlice, p.MaxSlice)
	case p.Kind == Sliced && p.MaxSlice > p.MaxPageSize:
		return fmt.Errorf("has MaxSlice %d above MaxPageSize %d", p.MaxSlice, p.MaxPageSize)
	case p.Kind == Sliced && p.MaxPageSize < p.PageSize:
		return fmt.Errorf("has MaxPageSize %d below PageSize %d", p.MaxPageSize, p.PageSize)
	case p.Kind == Sliced && p.Steps != 0:
		return fmt.Errorf("has Steps %d; a sliced pool has none", p.Steps)
	case p.Kind == Exclusive && p.MaxPageSize != 0:
		return fmt.Errorf("has MaxPageSize %d; an exclusive pool has none", p.MaxPageSize)
	case p.Kind == Exclusive && (p.Steps > maxSteps || p.Steps&(p.Steps-1) != 0):
		return fmt.Errorf("has Steps %d; want a power of two up to %d", p.Steps, maxSteps)
	}
	return nil
}

func (p *PoolSpec) accepts(size uint64) bool { return p.MinSlice <= size && size <= p.MaxSlice }

// bucket returns the page size of an exclusive pool for a slice of size bytes.
func (p *PoolSpec) bucket(size uint64) uint64 {
	if size <= p.PageSize {
		return p.PageSize
	}
	top := uint64(1) << (bits.Len64(size-1) - 1) // the power of two below size
	return roundUp(size, max(top/p.Steps, 1))
}

// roundUp rounds n up to a multiple of a power of two.
func roundUp(n, to uint64) uint64 { return (n + to - 1) &^ (to - 1) }
