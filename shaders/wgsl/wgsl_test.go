package wgsl_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/shaders"
	"vkcompute/shaders/wgsl"
)

const double = `@group(0) @binding(0) var<storage, read> info: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
	if (id.x < info[0]) {
		y[info[2] + id.x] = x[info[1] + id.x] * 2.0;
	}
}
`

// A shader in WGSL becomes a kernel in a line; its mistakes are told with their place.
func ExampleKernel() {
	kernel, err := wgsl.Kernel("double", double)
	fmt.Println(err)
	for _, p := range kernel.Params {
		fmt.Println(p.Name, p.DType, p.Binding, p.Access)
	}
	_, err = wgsl.Kernel("wrong", "@compute @workgroup_size(1)\nfn main() {\n\tlet a = b + 1;\n}\n")
	message, _, _ := strings.Cut(err.Error(), "\n") // the line itself comes after
	fmt.Println(message)
	// Output:
	// <nil>
	// x float32 1 read
	// y float32 2 read-write
	// wgsl: line 3, column 10: function main body: const 'a' initializer: unresolved identifier: b
}

func TestModulesAreValid(t *testing.T) {
	m, err := wgsl.Compile(double)
	require.NoError(t, err)
	require.Equal(t, [3]uint32{64, 1, 1}, m.Entries[0].LocalSize)
	validator, err := exec.LookPath("spirv-val")
	if err != nil {
		t.Skip("no spirv-val to check with")
	}
	code := make([]byte, 0, 4*len(m.Words))
	for _, w := range m.Words {
		code = append(code, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
	}
	file := filepath.Join(t.TempDir(), "double.spv")
	require.NoError(t, os.WriteFile(file, code, 0o600))
	out, err := exec.Command(validator, "--target-env", "vulkan1.2", file).CombinedOutput()
	require.NoError(t, err, string(out))
}

// Mistakes are told with their place.
func TestErrorsHaveAPlace(t *testing.T) {
	head := "@compute @workgroup_size(1)\nfn main() {\n"
	for _, tt := range []struct {
		name, source string
		line, column int
	}{
		{"parameter", "fn main( {", 1, 10},
		{"missing name", head + "  let a = b + 1;\n}\n", 3, 11},
		{"missing function", head + "  // foo\n  foo();\n}\n", 4, 3},
		{"not a program", "hello", 1, 1},
		{"bytes", "fn a() {}\nfn \xff", 2, 4},
		{"cut", head + "  let a = 1", 3, 12},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := wgsl.Compile(tt.source)
			require.Nil(t, m)
			require.ErrorIs(t, err, wgsl.ErrWGSL)
			var e *wgsl.Error
			require.True(t, errors.As(err, &e))
			require.Equal(t, tt.line, e.Line, err)
			if tt.column > 0 {
				require.Equal(t, tt.column, e.Column, err)
			}
			require.NotEmpty(t, e.Message)
		})
	}
	_, err := wgsl.Compile("fn helper() {}")
	require.ErrorIs(t, err, shaders.ErrInvalidModule, "no entry point")
}

// Whatever the text, there is a module or an error.
func FuzzCompile(f *testing.F) {
	f.Add(double)
	f.Add("@compute @workgroup_size(1) fn main() { loop { break; } }")
	f.Fuzz(func(t *testing.T, source string) {
		m, err := wgsl.Compile(source)
		require.Equal(t, err == nil, m != nil)
	})
}
