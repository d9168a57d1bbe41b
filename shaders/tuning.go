package shaders

// Tuning is what a plan may know of a device beyond its limits. The zero value
// suits a GPU and is valid everywhere: tuning changes how work is shared out,
// never what comes out beyond the stated bounds.
type Tuning struct {
	// Groups is how many work groups fill the device; more work than that goes
	// into larger groups. 0 means 1024.
	Groups uint32
	// Reads says which addresses neighbouring invocations read best.
	Reads ReadPattern
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

// maxPerInvocation keeps a group's share of the elements far below the range of
// uint32.
const maxPerInvocation = 1024

func (t Tuning) groups() int {
	if t.Groups == 0 {
		return 1024
	}
	return int(t.Groups)
}

// perInvocation is how many of n pieces of work an invocation takes, a power of
// two, so that few different infos arise.
func (e *Env) perInvocation(n int) int {
	per, size := 1, int(e.WorkgroupSize[0])
	for per < maxPerInvocation && n > per*size*e.Tuning.groups() {
		per *= 2
	}
	return per
}
