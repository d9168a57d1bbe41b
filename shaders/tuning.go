package shaders

import (
	"errors"
	"fmt"
)

// Tuning is what a plan may know of a device beyond its limits. The zero value
// suits a GPU and is valid everywhere: tuning changes how work is shared out,
// never what comes out beyond the stated bounds. What a device does not allow is
// brought within its limits by Kernel.Spec, so no tuning makes an invalid launch.
type Tuning struct {
	// Groups is how many work groups fill the device; more work than that goes
	// into larger groups. 0 means 1024.
	Groups uint32
	// Reads says which addresses neighbouring invocations read best.
	Reads ReadPattern
	// Workgroup is how many invocations a work group has in kernels that count them
	// along one axis, a power of two; some take fewer, and those whose invocations share
	// long sums no fewer than that takes. 0 means what suits each kernel.
	Workgroup uint32
	// VectorRows is how many rows of a matrix an invocation multiplies with a vector
	// at a time, where Reads is Scattered: a power of two up to MaxTileBlock. 0 means 8.
	VectorRows uint32
	// MatMul is how the matrix product is cut up.
	MatMul Tile
}

// Tile is how a matrix product is cut up: a work group of Across by Down
// invocations, each with Rows by Cols results; with DirectOperands only their number
// counts. Each number is a power of two; 0
// means what suits Operands.
type Tile struct {
	// Operands says how an invocation comes by the factors.
	Operands OperandPath
	// Across and Down are the invocations of a group along N and along M, up to
	// MaxTileSide each, Across of MinTileAcross at least. Where the device has not so
	// much room, groups are smaller.
	Across, Down uint32
	// Rows and Cols are an invocation's results along M and along N, up to
	// MaxTileBlock each.
	Rows, Cols uint32
}

// OperandPath is the way from memory to an invocation's multiply-adds.
type OperandPath uint8

const (
	// PathByReads: StagedOperands where reads are Coalesced, else DirectOperands.
	PathByReads OperandPath = iota
	// StagedOperands: a group loads each element once and shares it through shared
	// memory.
	StagedOperands
	// DirectOperands: each invocation loads what it needs, four elements at a time
	// where the layout allows, and nobody waits for anybody.
	DirectOperands
)

func (o OperandPath) String() string {
	switch o {
	case PathByReads:
		return "by reads"
	case StagedOperands:
		return "staged"
	case DirectOperands:
		return "direct"
	default:
		return fmt.Sprintf("path(%d)", uint8(o))
	}
}

// Bounds of tunings.
const (
	MinTileAcross     = 8
	MaxTileSide       = 256
	MaxTileBlock      = 16
	MaxTunedWorkgroup = 1024
	MaxTunedGroups    = 1 << 20
)

// ErrTuning is matched by errors of Validate.
var ErrTuning = errors.New("shaders: bad tuning")

// Validate tells what of a tuning is outside its range. An invalid one is harmless:
// kernels take what is nearest.
func (t Tuning) Validate() error {
	if t.Groups > MaxTunedGroups {
		return fmt.Errorf("%w: Groups: want at most %d, found %d", ErrTuning, MaxTunedGroups, t.Groups)
	}
	if t.Reads > Scattered {
		return fmt.Errorf("%w: Reads: want %v or %v, found %d", ErrTuning, Coalesced, Scattered, uint8(t.Reads))
	}
	if t.MatMul.Operands > DirectOperands {
		return fmt.Errorf("%w: MatMul.Operands: want %v, %v or %v, found %v", ErrTuning, PathByReads, StagedOperands, DirectOperands, t.MatMul.Operands)
	}
	for _, f := range []struct {
		name       string
		value, max uint32
	}{
		{"Workgroup", t.Workgroup, MaxTunedWorkgroup},
		{"VectorRows", t.VectorRows, MaxTileBlock},
		{"MatMul.Across", t.MatMul.Across, MaxTileSide},
		{"MatMul.Down", t.MatMul.Down, MaxTileSide},
		{"MatMul.Rows", t.MatMul.Rows, MaxTileBlock},
		{"MatMul.Cols", t.MatMul.Cols, MaxTileBlock},
	} {
		if f.value > f.max || f.value&(f.value-1) != 0 {
			return fmt.Errorf("%w: %s: want 0 or a power of two up to %d, found %d", ErrTuning, f.name, f.max, f.value)
		}
	}
	if a := t.MatMul.Across; a != 0 && a < MinTileAcross {
		return fmt.Errorf("%w: MatMul.Across: want 0 or a power of two from %d to %d, found %d", ErrTuning, MinTileAcross, MaxTileSide, a)
	}
	return nil
}

// ReadPattern says how the device reads memory.
type ReadPattern uint8

const (
	// Coalesced: neighbouring invocations want neighbouring addresses.
	Coalesced ReadPattern = iota
	// Scattered: each invocation reads by itself, as on a driver that runs on the
	// CPU, and combining invocations costs more than the reads.
	Scattered
)

func (r ReadPattern) String() string {
	if r == Scattered {
		return "scattered"
	}
	return "coalesced"
}

// CPUTuning suits drivers that run on the CPU, where a work group costs
// microseconds to start, with this many cores.
func CPUTuning(cores int) Tuning {
	return Tuning{Groups: uint32(max(1, min(cores, 256)) * 4), Reads: Scattered}
}

func (t Tuning) groups() int {
	if t.Groups == 0 {
		return 1024
	}
	return int(t.Groups)
}

func (t Tuning) vectorRows() uint32 {
	if t.Reads != Scattered {
		return 1 // blocks are not used there, and their registers would be taken all the same
	}
	if t.VectorRows == 0 {
		return 8
	}
	return powerBelow(min(t.VectorRows, MaxTileBlock))
}

func (t Tuning) workgroup() uint32 {
	if t.Workgroup == 0 {
		return 256
	}
	return t.Workgroup
}

// Tuned is the kernel with a tuning of its own in the place of the device's, under the
// same name: what a search for the best tuning launches. It may be launched beside
// the other. Each call makes another kernel, and a stream keeps the pipeline of each that
// it launched until it closes: make it once, not for every launch.
func (k *Kernel) Tuned(t Tuning) *Kernel {
	if k.Err() != nil {
		return k
	}
	tuned := *k
	if k.spec != nil {
		tuned.spec = func(limits MaxWorkgroup) ([]SpecConst, [3]uint32) {
			limits.Tuning = t
			return k.spec(limits)
		}
	}
	tuned.plan = func(env Env, ops []Operand, p *Plan) error {
		env.Tuning = t
		return k.plan(env, ops, p)
	}
	return &tuned
}
