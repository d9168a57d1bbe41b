package launch

import (
	"errors"
	"fmt"
	"math"

	"vkcompute/shaders/ref"
)

// The tensors of the chain.
const (
	tensorA = iota
	tensorB
	tensorC
	tensors
)

// step i of a chain reads one of a and c, adds b, and writes the other.
func step(i int) (from, to int) {
	if i%2 == 0 {
		return tensorA, tensorC
	}
	return tensorC, tensorA
}

// ErrWrong: a launch did not compute what the reference computes.
var ErrWrong = errors.New("wrong result")

// between is what lies between the elements and must stay.
var between = math.Float32frombits(0xc2c7_5aa5)

// state is the contents of the tensors.
type state [tensors][]float32

// start is small whole numbers, so that sums of many are exact.
func start() *state {
	var s state
	for t := range s {
		s[t] = make([]float32, length)
		for i := range s[t] {
			s[t][i] = between
			if i%stride == 0 {
				s[t][i] = float32((i/stride*(2*t+3)+t)%17 - 8)
			}
		}
	}
	return &s
}

// advance runs a chain of n launches, shots times, on the reference.
func (s *state) advance(n, shots int) {
	tensor := func(t int) ref.Tensor { return ref.Tensor{Layout: strided(), Data: s[t]} }
	for range shots {
		for i := range n {
			from, to := step(i)
			r := ref.Add(tensor(from), tensor(tensorB), []int{elements})
			for e, v := range r.Value {
				s[to][e*stride] = float32(v)
			}
		}
	}
}

// compare checks what a device holds against the reference. The sums are whole numbers
// below 2^24, so a single launch too many or too few shows, and nothing is rounded.
func (s *state) compare(what string, found *state) error {
	for t := range s {
		for i, want := range s[t] {
			got := found[t][i]
			if math.Float32bits(got) == math.Float32bits(want) {
				continue
			}
			if i%stride != 0 {
				return fmt.Errorf("launch: %s: %w: tensor %d: word %d belongs to no element and was overwritten with %v", what, ErrWrong, t, i, got)
			}
			return fmt.Errorf("launch: %s: %w: tensor %d, element %d: want %v, found %v", what, ErrWrong, t, i/stride, want, got)
		}
	}
	return nil
}
