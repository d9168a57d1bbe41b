package cmdbuf_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"reflect"

	"vkcompute/cmdbuf"
	"vkcompute/shaders"
	"vkcompute/shaders/wgsl"
	"vkcompute/vk"
)

//go:embed testdata/user/scale.spv
var scaleSPIRV []byte

// A kernel of one's own from SPIR-V, in two lines: here the output of glslc for
//
//	layout(set = 0, binding = 1, std430) readonly buffer A { float a[]; };
//	layout(set = 0, binding = 2, std430) buffer X { float x[]; };
//	void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] *= a[i]; }
func ExampleStream_Launch_spirv() {
	stream, done := open()
	defer done()
	a, err := cmdbuf.Upload(stream, []float32{1, 10, 100}, 3)
	check(err)
	defer a.Close()
	x, err := cmdbuf.Upload(stream, []float32{1, 2, 3}, 3)
	check(err)
	defer x.Close()

	scale, err := shaders.LoadKernel("scale", scaleSPIRV)
	check(err)
	check(stream.Launch(scale, a, x))

	fmt.Println(x.Read(context.Background()))
	// Output: [1 20 300] <nil>
}

// A kernel from a file of an fs.FS, such as an embed.FS or os.DirFS.
func ExampleStream_Launch_fs() {
	stream, done := open()
	defer done()
	a, err := cmdbuf.Upload(stream, []float32{2, 3}, 2)
	check(err)
	defer a.Close()

	scale, err := shaders.LoadKernelFS(userShaders, "testdata/user/scale.spv")
	check(err)
	fmt.Println(scale.Name, scale.Params[0].DType, scale.Params[0].Access, scale.Params[1].Access)
	fmt.Println(stream.Launch(scale, a, a)) // two views of the same elements, of which it writes one

	x, err := cmdbuf.Upload(stream, []int32{2, 3}, 2)
	check(err)
	defer x.Close()
	fmt.Println(stream.Launch(scale, a, x))
	// Output:
	// scale float32 read read-write
	// <nil>
	// cmdbuf: launch: shaders: scale: parameter 1 (binding2): element type: want float32, found int32
}

// A kernel from WGSL, compiled within the process.
func ExampleStream_Launch_wgsl() {
	stream, done := open()
	defer done()
	x, err := cmdbuf.Upload(stream, []uint32{6, 7, 27}, 3)
	check(err)
	defer x.Close()

	collatz, err := wgsl.Kernel("collatz", `
		@group(0) @binding(1) var<storage, read_write> x: array<u32>;
		@compute @workgroup_size(64)
		fn main(@builtin(global_invocation_id) id: vec3<u32>) {
			if (id.x >= arrayLength(&x)) { return; }
			var steps: u32 = 0u;
			var n: u32 = x[id.x];
			while (n > 1u) {
				n = select(n / 2u, 3u * n + 1u, n % 2u == 1u);
				steps += 1u;
			}
			x[id.x] = steps;
		}`)
	check(err)
	check(stream.Launch(collatz, x))

	fmt.Println(x.Read(context.Background()))
	// Output: [8 16 111] <nil>
}

// Structs are bound as they are. A launch compares them with what the shader declares.
func ExampleStream_Launch_structs() {
	type Particle struct {
		Position [3]float32
		Mass     float32 // takes the place behind a vec3
		Velocity [3]float32
		_        [4]byte // the next vec3 begins at a multiple of 16
	}
	type Wind struct { // one for all
		Time float32
		_    [12]byte
		Gust [3]float32
	}
	stream, done := open()
	defer done()
	particles, err := cmdbuf.Upload(stream, []Particle{
		{Mass: 1, Velocity: [3]float32{1, 2, 3}},
		{Mass: 2, Position: [3]float32{5, 5, 5}},
	}, 2)
	check(err)
	defer particles.Close()
	wind, err := cmdbuf.Upload(stream, []Wind{{Time: 0.5, Gust: [3]float32{0, 0, 8}}}, 1)
	check(err)
	defer wind.Close()

	drift, err := shaders.LoadKernelFS(userShaders, "testdata/user/drift.spv")
	check(err)
	check(stream.Launch(drift, wind, particles))

	list, err := particles.Read(context.Background())
	check(err)
	for _, p := range list {
		fmt.Println(p.Position)
	}

	// A struct without the padding is told what it lacks, by a test without a device too.
	type Tight struct {
		Mass     float32
		Position [3]float32
	}
	var mismatch *shaders.TypeError
	if err := shaders.Std430(reflect.TypeFor[Tight]()); errors.As(err, &mismatch) {
		fmt.Println(mismatch.Field, "-", mismatch.Do)
	}
	// Output:
	// [0.5 1 5.5]
	// [5 5 7]
	// Position - put a field _ [12]byte before it
}

// open is a device and a stream for an example.
func open() (stream *cmdbuf.Stream, done func()) {
	device, err := vk.Open(vk.Options{})
	check(err)
	stream, err = cmdbuf.NewStream(device, cmdbuf.Options{})
	check(err)
	return stream, func() {
		check(stream.Close(context.Background()))
		check(device.Close())
	}
}
