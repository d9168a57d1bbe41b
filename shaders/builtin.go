package shaders

import (
	"embed"
	"fmt"
)

//go:generate go run ./internal/compile

//go:embed spv/*.spv
var binaries embed.FS

// The built-in kernels. Inputs come first and the output last, here and in the
// other files. A damaged embedded binary shows as Kernel.Err and at the first
// Plan.
//
// In the bounds u is 2⁻²⁴ on a device that rounds to nearest and 2⁻²³ on one that
// does not: Vulkan demands correct rounding, not its direction.
var (
	// MatMul: out = a @ b. The last two axes are the matrices ([M K], [K N] and
	// [M N], any strides), the axes before them a batch, broadcast to out's. The
	// error of an element is at most (min(K, 256)+8)·u·Σ|a·b|, as long as no partial
	// sum overflows; NaN and infinities propagate. With K = 0 the result is 0.
	MatMul = builtin("matmul", load("matmul"), KernelSpec{
		Params: []Param{
			{Name: "a", DType: Float32, Access: Read, Binding: 1},
			{Name: "b", DType: Float32, Access: Read, Binding: 2},
			{Name: "out", DType: Float32, Access: Write, Binding: 3},
		},
		Plan: planMatMul, Grid: FoldedGrid, Spec: tileWorkgroup,
	})
	// Nop does nothing, in one group: what a launch costs by itself.
	Nop = builtin("nop", load("nop"), KernelSpec{Plan: planNop, Grid: FoldedGrid, Spec: lineWorkgroup})
)

// code is one embedded module, loaded once for all kernels made of it.
type code struct {
	module *Module
	err    error
}

func load(file string) code {
	data, err := binaries.ReadFile("spv/" + file + ".spv")
	if err != nil {
		return code{err: err}
	}
	m, err := Load(data)
	return code{m, err}
}

// Modules that several kernels share.
var (
	unaryCode        = load("unary")
	binaryCode       = load("binary")
	reduceCode       = load("reduce")
	iotaCode         = load("iota")
	randomCode       = load("random")
	crossEntropyCode = load("crossentropy")
	rotaryCode       = load("rotary")
)

// builtin never fails: what is wrong is kept in the kernel, because a package
// variable has nobody to tell.
func builtin(name string, c code, spec KernelSpec) *Kernel {
	spec.Name, spec.Module = name, c.module
	err := c.err
	if err == nil {
		var k *Kernel
		if k, err = NewKernel(spec); err == nil {
			return k
		}
	}
	return &Kernel{Name: name, Entry: "main", Params: spec.Params, fixed: [3]uint32{1, 1, 1},
		err: fmt.Errorf("shaders: built-in kernel %s: %w", name, err)}
}

// operation is a builtin whose shader serves several kernels: specialisation
// constant opcodeID says which.
func operation(name string, c code, op uint32, spec KernelSpec) *Kernel {
	workgroup := spec.Spec
	spec.Spec = func(limits MaxWorkgroup) ([]SpecConst, [3]uint32) {
		consts, size := workgroup(limits)
		return append(consts, SpecConst{ID: opcodeID, Value: op}), size
	}
	return builtin(name, c, spec)
}

// opcodeID is the specialisation constant OP of the shaders.
const opcodeID = 2

// Builtins lists the built-in kernels, in a slice of the caller's.
func Builtins() []*Kernel {
	return []*Kernel{
		MatMul, Nop, Add, Sub, Mul, Div, Minimum, Maximum, Pow, SiluMul, ReluGrad, Equal, NotEqual, Less,
		LessEqual, EqualInt, LessInt, AddInt, SubInt, MulInt, MinInt, MaxInt, Where, Copy, Neg, Abs, Exp,
		Log, Sqrt, Rsqrt, Tanh, Sigmoid, Silu, Gelu, Relu, Square, Reciprocal, FloatToInt, FloatToUint,
		IntToFloat, UintToFloat, Fill, Iota, IotaInt, RandomUniform, RandomNormal, Sum, Mean, Max, Min,
		ArgMax, SumParts, MaxParts, MinParts, Softmax, CrossEntropy, CrossEntropyGrad, LayerNorm, RMSNorm,
		CumSum, Gather, Put, ScatterAdd, Rotary, RotaryHalf, Attention, MatVec, MatVecAdd, SGD, Momentum,
		Adam, HalfToFloat, FloatToHalf, GatherHalf, MatVecHalf,
	}
}

// leastLine is the fewest invocations that may share a long sum, where the device allows
// them: as many as the least device has, so that no tuning makes too many rounds of what
// works on that.
const leastLine = 128

// lineWorkgroup is a power of two in x: the reduction halves it.
func lineWorkgroup(limits MaxWorkgroup) ([]SpecConst, [3]uint32) {
	return lineOfAtLeast(leastLine, limits)
}

// lineOfAtLeast is the tuning's workgroup within the limits, or least if it has fewer.
func lineOfAtLeast(least uint32, limits MaxWorkgroup) ([]SpecConst, [3]uint32) {
	n := powerBelow(min(max(least, limits.Tuning.workgroup()), limits.Invocations, limits.Size[0]))
	return []SpecConst{{ID: 0, Value: n}}, [3]uint32{n, 1, 1}
}

// powerBelow is the greatest power of two not above n, and 1 for 0.
func powerBelow(n uint32) uint32 {
	p := uint32(1)
	for p <= n/2 {
		p *= 2
	}
	return p
}
