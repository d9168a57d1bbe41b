package shaders

import "fmt"

// Tunings are kept in files that people read, so their enums are words there.

// MarshalText fails for a value without a name.
func (r ReadPattern) MarshalText() ([]byte, error) { return enumText(r, Scattered) }

// UnmarshalText takes what MarshalText gives.
func (r *ReadPattern) UnmarshalText(text []byte) error { return enumOf(r, Scattered, text) }

// MarshalText fails for a value without a name.
func (o OperandPath) MarshalText() ([]byte, error) { return enumText(o, DirectOperands) }

// UnmarshalText takes what MarshalText gives.
func (o *OperandPath) UnmarshalText(text []byte) error { return enumOf(o, DirectOperands, text) }

type enum interface {
	~uint8
	fmt.Stringer
}

func enumText[E enum](v, last E) ([]byte, error) {
	if v > last {
		return nil, fmt.Errorf("%w: want 0 to %d, found %d", ErrTuning, uint8(last), uint8(v))
	}
	return []byte(v.String()), nil
}

func enumOf[E enum](to *E, last E, text []byte) error {
	for v := E(0); v <= last; v++ {
		if v.String() == string(text) {
			*to = v
			return nil
		}
	}
	return fmt.Errorf("%w: want %v to %v, found %q", ErrTuning, E(0), last, text)
}
