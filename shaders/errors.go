package shaders

import (
	"errors"
	"fmt"
	"strings"
)

// Matchable with errors.Is.
var (
	// ErrNotSPIRV: the bytes are not a SPIR-V module at all.
	ErrNotSPIRV = errors.New("not SPIR-V")
	// ErrTruncated: the module ends inside its header or an instruction.
	ErrTruncated = errors.New("truncated SPIR-V")
	// ErrInvalidModule: SPIR-V whose instructions contradict each other.
	ErrInvalidModule = errors.New("invalid SPIR-V")
	// ErrKernelSpec: a KernelSpec that does not fit its module.
	ErrKernelSpec = errors.New("kernel does not fit its module")
	// ErrOperand: every *OperandError matches it.
	ErrOperand = errors.New("bad operand")
	// ErrType: every *TypeError matches it.
	ErrType = errors.New("type does not fit")
)

// LoadError tells where a module is wrong. Word counts 32-bit words from the
// start of the module.
type LoadError struct {
	Word   int
	Err    error // ErrNotSPIRV, ErrTruncated or ErrInvalidModule
	Detail string
}

func (e *LoadError) Error() string {
	return fmt.Sprintf("shaders: %v at word %d: %s", e.Err, e.Word, e.Detail)
}

func (e *LoadError) Unwrap() error { return e.Err }

// Problem classifies an OperandError.
type Problem uint8

const (
	BadCount   Problem = iota + 1 // number of operands
	BadKind                       // tensor instead of scalar, or the reverse
	BadDType                      // element type
	BadLayout                     // rank, extent or index range of one layout
	BadShape                      // shapes that do not go together
	BadOverlap                    // an output that writes an element twice
	BadGrid                       // more work than a dispatch can name
)

func (p Problem) String() string {
	names := [...]string{"", "operands", "kind", "element type", "layout", "shape", "overlap", "grid"}
	if int(p) < len(names) {
		return names[p]
	}
	return fmt.Sprintf("problem(%d)", uint8(p))
}

// OperandError tells which operand of a launch is wrong and what was wanted.
// Index counts parameters from 0; it is -1 when the whole list is at fault.
type OperandError struct {
	Kernel  string
	Index   int
	Param   string
	Problem Problem
	Want    string
	Found   string
	Err     error // more about it: a *TypeError; may be nil
}

func (e *OperandError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "shaders: %s: ", e.Kernel)
	if e.Index >= 0 {
		fmt.Fprintf(&b, "parameter %d (%s): ", e.Index, e.Param)
	}
	fmt.Fprintf(&b, "%s: want %s, found %s", e.Problem, e.Want, e.Found)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns what more there is about it.
func (e *OperandError) Unwrap() error { return e.Err }

// Is matches ErrOperand.
func (e *OperandError) Is(target error) bool { return target == ErrOperand }
