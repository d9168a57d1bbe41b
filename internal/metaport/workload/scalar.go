package workload

import (
	"fmt"

	"vkcompute/metacache"
)

// ScalarCase is a program some of whose launches carry a scalar that is another
// one each time: a position, a time, a seed.
type ScalarCase struct {
	Name string
	// Run makes n launches.
	Run func(n int) error
	// Stats reads the cache that the launches used.
	Stats func() metacache.Stats
}

// Scalar is how the scalar travels and how the cache admits keys.
type Scalar uint8

const (
	// ScalarInKey: among the info words, every key admitted.
	ScalarInKey Scalar = iota
	// ScalarInKeyAdmission: among the info words, under AdmitFrequent.
	ScalarInKeyAdmission
	// ScalarPushed: as a push constant, which takes no part in the key.
	ScalarPushed
)

// String names the case.
func (s Scalar) String() string {
	switch s {
	case ScalarInKey:
		return "in-key"
	case ScalarInKeyAdmission:
		return "in-key-admission"
	case ScalarPushed:
		return "push-constant"
	}
	return fmt.Sprintf("Scalar(%d)", uint8(s))
}

// Scalars returns all cases.
func Scalars() []Scalar { return []Scalar{ScalarInKey, ScalarInKeyAdmission, ScalarPushed} }

// The program: a step of LaunchesPerStep launches, a quarter of them with the
// scalar and otherwise alike, on a cache that holds the infos of the others and
// a few more. The keys with the scalar of one step are enough to push all others
// out before they come back.
const (
	scalarWords   = 12
	scalarEvery   = 4
	scalarEntries = LaunchesPerStep*(scalarEvery-1)/scalarEvery + 8
)

// NewScalar returns one of the cases. An operation is a launch: the look-up
// and, unless it hits, the info written to memory, which stands for what a miss
// costs beside the cache.
func NewScalar(s Scalar) (ScalarCase, error) {
	admission := metacache.AdmitAll
	if s == ScalarInKeyAdmission {
		admission = metacache.AdmitFrequent
	}
	cache, _, err := caches(scalarEntries, admission)
	if err != nil {
		return ScalarCase{}, err
	}
	keys := make([][]uint64, LaunchesPerStep)
	for i := range keys {
		keys[i] = info(scalarWords, uint64(i))
	}
	buffer := make([]uint64, scalarWords)
	launch, scalar, withScalar := 0, uint64(0), info(scalarWords, LaunchesPerStep)
	return ScalarCase{
		Name: s.String(),
		Run: func(n int) error {
			for ; n > 0; n-- {
				key := keys[launch]
				if launch%scalarEvery == 0 {
					key = withScalar
					if s != ScalarPushed {
						scalar++
						key[0] = scalar
					}
				}
				_, hit, miss := cache.Lookup(key)
				if !hit {
					copy(buffer, key)
					if miss.Wanted() {
						if _, err := miss.Store(Value{}); err != nil {
							return err
						}
					}
				}
				if launch++; launch == len(keys) {
					launch = 0
				}
			}
			return nil
		},
		Stats: cache.Stats,
	}, nil
}
