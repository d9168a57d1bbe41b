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
	// error of an element is at most (K+1)·u·Σ|a·b|, as long as no partial sum
	// overflows; NaN and infinities propagate. With K = 0 the result is 0.
	MatMul = builtin("matmul", "matmul", KernelSpec{
		Params: []Param{
			{Name: "a", DType: Float32, Access: Read, Binding: 1},
			{Name: "b", DType: Float32, Access: Read, Binding: 2},
			{Name: "out", DType: Float32, Access: Write, Binding: 3},
		},
		Plan: planMatMul, Grid: FoldedGrid, Spec: tileWorkgroup,
	})
	// Nop does nothing, in one group: what a launch costs by itself.
	Nop = builtin("nop", "nop", KernelSpec{Plan: planNop, Grid: FoldedGrid, Spec: lineWorkgroup})
)

// builtin never fails: what is wrong is kept in the kernel, because a package
// variable has nobody to tell.
func builtin(name, file string, spec KernelSpec) *Kernel {
	spec.Name = name
	k, err := fromBinary(file, spec)
	if err != nil {
		return &Kernel{Name: name, Entry: "main", Params: spec.Params, fixed: [3]uint32{1, 1, 1},
			err: fmt.Errorf("shaders: built-in kernel %s: %w", name, err)}
	}
	return k
}

// operation is a builtin whose shader serves several kernels: specialisation
// constant opcodeID says which.
func operation(name, file string, op uint32, spec KernelSpec) *Kernel {
	workgroup := spec.Spec
	spec.Spec = func(limits MaxWorkgroup) ([]SpecConst, [3]uint32) {
		consts, size := workgroup(limits)
		return append(consts, SpecConst{ID: opcodeID, Value: op}), size
	}
	return builtin(name, file, spec)
}

// opcodeID is the specialisation constant OP of the shaders.
const opcodeID = 2

func fromBinary(file string, spec KernelSpec) (*Kernel, error) {
	code, err := binaries.ReadFile("spv/" + file + ".spv")
	if err != nil {
		return nil, err
	}
	if spec.Module, err = Load(code); err != nil {
		return nil, err
	}
	return NewKernel(spec)
}

// preferredInvocations is what a workgroup of the built-in kernels takes where
// the device allows it; 128 and less are enough.
const preferredInvocations = 256

// lineWorkgroup is a power of two in x: the reduction halves it.
func lineWorkgroup(limits MaxWorkgroup) ([]SpecConst, [3]uint32) {
	n := powerBelow(min(preferredInvocations, limits.Invocations, limits.Size[0]))
	return []SpecConst{{ID: 0, Value: n}}, [3]uint32{n, 1, 1}
}

// tileWorkgroup is as square as it can be, wider rather than higher.
func tileWorkgroup(limits MaxWorkgroup) ([]SpecConst, [3]uint32) {
	if limits.SharedBytes == 0 {
		limits.SharedBytes = 16 << 10 // what every Vulkan device has
	}
	x := powerBelow(min(16, limits.Size[0]))
	y := powerBelow(min(16, limits.Size[1]))
	for x > 1 || y > 1 {
		if x*y <= limits.Invocations && 4*matDepth*matMicro*(x+y) <= limits.SharedBytes {
			break
		}
		if y >= x {
			y /= 2
		} else {
			x /= 2
		}
	}
	return []SpecConst{{ID: 0, Value: x}, {ID: 1, Value: y}}, [3]uint32{x, y, 1}
}

// powerBelow is the greatest power of two not above n, and 1 for 0.
func powerBelow(n uint32) uint32 {
	p := uint32(1)
	for p <= n/2 {
		p *= 2
	}
	return p
}
