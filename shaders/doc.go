// Package shaders holds the compute kernels: their GLSL, the SPIR-V compiled
// from it, and what a launch needs to know about them without asking a driver.
//
// A kernel works on tensors that are strided, broadcast or offset, because
// copying an operand into shape costs more than most kernels do. What a shader
// must know for that (shapes, strides, offsets, scalars) is a short list of
// words, the info, which launches of the same shapes share. This package builds
// those words and the grid; who keeps them and who launches is somebody else's
// business. It is plain Go and imports no driver.
//
// # Life of a kernel
//
// A Module is read from SPIR-V by Load, which reflects what the module says of
// itself: entry points, bindings and how they are accessed, specialisation
// constants, push constants, capabilities. NewKernel ties an entry point to its
// parameters and to a planner, and refuses what does not fit the module; the
// built-in kernels (Add, Sum, …) are made the same way from embedded binaries.
//
// For a device, Kernel.Spec chooses the workgroup size; a pipeline is made with
// its constants. For a launch, Kernel.Plan checks the operands and fills a Plan:
// info words to bind at binding 0 of set 0, read-only, and the number of groups.
// Zero groups mean there is nothing to do. Tensors are bound in the order of the
// parameters, each at its Param.Binding.
//
// # Shader conventions
//
// Set 0 only. Binding 0 is the info, `layout(set=0, binding=0, std430) readonly
// buffer Info { uint info[]; }`; a kernel that needs none may leave it out. Each
// tensor is one storage buffer, marked readonly or writeonly where that is true:
// the barriers between launches are planned from these marks. Workgroup sizes
// are specialisation constants, 128 invocations and 16 KiB of shared memory are
// enough for every built-in kernel, and none uses 64-bit or 16-bit types or
// subgroup operations. The scheme of the info words is documented in info.go.
//
// Near-identical kernels share a shader and differ in the specialisation constant
// of ID 2, their opcode. Work that is longer than a device is wide goes into longer
// runs per invocation, by Tuning, since starting a work group costs microseconds on
// a CPU driver. Loops are short: llvmpipe leaves all loops of an invocation after
// 65535 rounds in total, silently, so blocks are written out in the shaders and
// planners refuse what would still take too many rounds, with an error that says
// what to do instead.
//
// What changes from step to step without another shape travels outside the info,
// which is a key to caches: seeds and learning rates as push constants, positions,
// tokens and step counts in small int32 tensors that kernels write as well as read,
// so that one recorded graph serves every step.
//
// # Kernels of one's own
//
// LoadKernel and LoadKernelFS make a kernel of SPIR-V that works element by element,
// without a planner, and wgsl.Kernel of WGSL, which package wgsl compiles in process;
// Elementwise says what such a shader may look like. NewKernel takes any shader with a
// Planner, which InfoWriter helps to write.
//
//	scale, err := shaders.LoadKernelFS(files, "scale.spv")
//	err = stream.Launch(scale, x, y, cmdbuf.Float32(2))
//
// What the buffers of a module hold is reflected too (BindingInfo.Contents). Elements may
// be vectors, matrices, arrays and structs; TypeOf describes the Go type that is bound to
// them, and a launch compares the two number by number, by the offsets that the module
// states. A *TypeError names the field that is out of place, where it is wanted, and what
// to do. Std430 does that without a module.
//
// # float16
//
// Half is float16 in Go. Kernels that read it take two out of each 32-bit word, so they
// need no feature of the device: HalfToFloat, FloatToHalf, GatherHalf, MatVecHalf. The
// others take float32; a launch that casts goes before them.
//
// # Concurrency, ownership, errors
//
// Kernels and modules are immutable and may be shared. A Plan belongs to its
// caller and one goroutine at a time; its slices are overwritten by the next use.
// Nothing here panics for what a caller or a file can get wrong: Load gives a
// *LoadError that names the word, NewKernel an error matching ErrKernelSpec, and
// Plan an *OperandError that names kernel and parameter, what was wanted and what
// was found. An embedded binary that does not load shows as Kernel.Err and as the
// error of Plan.
package shaders
