package shaders_test

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/shaders"
)

func embedded(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("spv/*.spv")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out := map[string][]byte{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		out[f] = b
	}
	return out
}

// asm builds modules instruction by instruction.
type asm []uint32

func module() asm { return asm{0x07230203, 0x00010500, 0, 100, 0} }

func (a asm) op(code uint32, args ...uint32) asm {
	return append(append(a, uint32(len(args)+1)<<16|code), args...)
}

// str packs a literal string.
func str(s string) []uint32 {
	b := append([]byte(s), make([]byte, 4-len(s)%4)...)
	w := make([]uint32, len(b)/4)
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return w
}

func (a asm) bytes(order binary.AppendByteOrder) []byte {
	var b []byte
	for _, w := range a {
		b = order.AppendUint32(b, w)
	}
	return b
}

func (a asm) load() (*shaders.Module, error) { return shaders.Load(a.bytes(binary.LittleEndian)) }

// Ids of the modules below.
const (
	idMain = 1 + iota
	idVoid
	idFnType
	idFloat
	idUint
	idRuntime
	idStruct
	idPtr
	idVar
	idTwo
)

// head declares the entry point, with the workgroup size 4×2×1.
func head() asm {
	return module().
		op(17, 1).
		op(15, append([]uint32{5, idMain}, append(str("main"), idVar)...)...).
		op(16, idMain, 17, 4, 2, 1)
}

func types(a asm) asm {
	return a.op(19, idVoid).op(33, idFnType, idVoid).op(22, idFloat, 32).op(21, idUint, 32, 0)
}

func tail(a asm) asm {
	return a.op(54, idVoid, idMain, 0, idFnType).op(248, 90).op(253).op(56)
}

func TestReflectsAccess(t *testing.T) {
	const nonWritable, nonReadable = 24, 25
	type dec struct{ member, kind uint32 }
	const onVariable = 1 << 31
	for _, tt := range []struct {
		name string
		decs []dec
		want shaders.Access
	}{
		{"undecorated", nil, shaders.ReadWrite},
		{"variable readonly", []dec{{onVariable, nonWritable}}, shaders.Read},
		{"variable writeonly", []dec{{onVariable, nonReadable}}, shaders.Write},
		{"one of two members readonly", []dec{{0, nonWritable}}, shaders.ReadWrite},
		{"the other member readonly", []dec{{1, nonWritable}}, shaders.ReadWrite},
		{"the other member writeonly", []dec{{1, nonReadable}}, shaders.ReadWrite},
		{"both members readonly", []dec{{0, nonWritable}, {1, nonWritable}}, shaders.Read},
		{"members differ", []dec{{0, nonWritable}, {1, nonReadable}}, shaders.ReadWrite},
		{"neither", []dec{{onVariable, nonWritable}, {onVariable, nonReadable}}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := head().op(5, append([]uint32{idVar}, str("data")...)...)
			a = a.op(71, idVar, 34, 0).op(71, idVar, 33, 7).op(71, idStruct, 2)
			for _, d := range tt.decs {
				if d.member == onVariable {
					a = a.op(71, idVar, d.kind)
				} else {
					a = a.op(72, idStruct, d.member, d.kind)
				}
			}
			a = types(a).op(29, idRuntime, idFloat).op(30, idStruct, idFloat, idRuntime).
				op(32, idPtr, 12, idStruct).op(59, idPtr, idVar, 12)
			m, err := tail(a).load()
			require.NoError(t, err)
			require.Equal(t, []shaders.BindingInfo{{Binding: 7, Kind: shaders.StorageBuffer, Access: tt.want, Name: "data", Count: 1}}, m.Bindings)
		})
	}
}

// Modules before SPIR-V 1.3 spell a storage buffer as Uniform with BufferBlock.
func TestReflectsResources(t *testing.T) {
	resource := func(storage uint32, block uint32, arrayed bool) (*shaders.Module, error) {
		a := head().op(71, idVar, 34, 1).op(71, idVar, 33, 2).op(71, idStruct, block)
		a = types(a).op(30, idStruct, idFloat)
		pointee := uint32(idStruct)
		if arrayed {
			a = a.op(43, idUint, idTwo, 2).op(28, idRuntime, idStruct, idTwo)
			pointee = idRuntime
		}
		return tail(a.op(32, idPtr, storage, pointee).op(59, idPtr, idVar, storage)).load()
	}
	for _, tt := range []struct {
		name           string
		storage, block uint32
		arrayed        bool
		want           shaders.BindingInfo
	}{
		{"storage buffer", 12, 2, false, shaders.BindingInfo{Kind: shaders.StorageBuffer, Access: shaders.ReadWrite, Count: 1}},
		{"buffer block", 2, 3, false, shaders.BindingInfo{Kind: shaders.StorageBuffer, Access: shaders.ReadWrite, Count: 1}},
		{"uniform buffer", 2, 2, false, shaders.BindingInfo{Kind: shaders.UniformBuffer, Access: shaders.Read, Count: 1}},
		{"array of buffers", 12, 2, true, shaders.BindingInfo{Kind: shaders.StorageBuffer, Access: shaders.ReadWrite, Count: 2}},
		{"image", 0, 2, false, shaders.BindingInfo{Kind: shaders.OtherBinding, Access: shaders.ReadWrite, Count: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Set, tt.want.Binding = 1, 2
			m, err := resource(tt.storage, tt.block, tt.arrayed)
			require.NoError(t, err)
			require.Equal(t, []shaders.BindingInfo{tt.want}, m.Bindings)
		})
	}
}

func TestReflectsSizes(t *testing.T) {
	const vec4, mat, arr, push, ptr2, var2, sharedPtr, sharedVar, four = 20, 21, 22, 23, 24, 25, 26, 27, 28
	a := head().
		op(71, arr, 6, 16).      // array stride
		op(72, push, 0, 35, 0).  // float at 0
		op(72, push, 1, 35, 16). // 2 × vec4 matrix at 16, stride 16
		op(72, push, 1, 7, 16).  //
		op(72, push, 2, 35, 48)  // array of 4 at 48
	a = types(a).
		op(43, idUint, four, 4).
		op(23, vec4, idFloat, 4).
		op(24, mat, vec4, 2).
		op(28, arr, idFloat, four).
		op(30, push, idFloat, mat, arr).
		op(32, ptr2, 9, push).
		op(59, ptr2, var2, 9).
		op(32, sharedPtr, 4, arr).
		op(59, sharedPtr, sharedVar, 4)
	m, err := tail(a).load()
	require.NoError(t, err)
	require.Equal(t, 48+4*16, m.PushSize)
	require.Equal(t, 16, m.SharedBytes)
	require.Equal(t, []shaders.EntryPoint{{Name: "main", LocalSize: [3]uint32{4, 2, 1}}}, m.Entries)
}

// SPIR-V 1.6 names the size by constants in an execution mode; older modules
// decorate a constant as the built-in.
func TestReflectsSpecialisedWorkgroupSize(t *testing.T) {
	const x, y, z, vec3, size = 20, 21, 22, 23, 24
	consts := func(a asm) asm {
		return types(a).op(50, idUint, x, 64).op(50, idUint, y, 2).op(43, idUint, z, 1)
	}
	want := shaders.EntryPoint{Name: "main", LocalSize: [3]uint32{64, 2, 1}, LocalSizeSpec: [3]uint32{6, 1, 0}}
	wantConsts := []shaders.SpecInfo{{ID: 0, Default: 2}, {ID: 5, Name: "width", Default: 64}}

	entry := module().op(17, 1).op(15, append([]uint32{5, idMain}, str("main")...)...)
	decs := func(a asm) asm {
		return a.op(5, append([]uint32{x}, str("width")...)...).op(71, x, 1, 5).op(71, y, 1, 0)
	}
	m, err := tail(consts(decs(entry.op(331, idMain, 38, x, y, z)))).load()
	require.NoError(t, err)
	require.Equal(t, []shaders.EntryPoint{want}, m.Entries)
	require.Equal(t, wantConsts, m.Constants)

	a := decs(entry.op(16, idMain, 17, 1, 1, 1)).op(71, size, 11, 25)
	m, err = tail(consts(a).op(23, vec3, idUint, 3).op(51, vec3, size, x, y, z)).load()
	require.NoError(t, err)
	require.Equal(t, []shaders.EntryPoint{want}, m.Entries)
	require.Equal(t, wantConsts, m.Constants)
}

func TestReflectsCapabilitiesAndExtensions(t *testing.T) {
	a := module().op(17, 1).op(17, uint32(shaders.CapFloat16)).op(17, 4433).op(17, 9999).
		op(10, str("SPV_KHR_16bit_storage")...).
		op(15, append([]uint32{5, idMain}, str("main")...)...).op(16, idMain, 17, 1, 1, 1)
	m, err := tail(types(a)).load()
	require.NoError(t, err)
	require.Equal(t, []shaders.Capability{1, 9, 4433, 9999}, m.Capabilities)
	require.Equal(t, []string{"SPV_KHR_16bit_storage"}, m.Extensions)
	require.Equal(t, "Float16", m.Capabilities[1].String())
	require.Equal(t, "capability 9999", m.Capabilities[3].String())
}

func TestBothByteOrders(t *testing.T) {
	for name, code := range embedded(t) {
		want, err := shaders.Load(code)
		require.NoError(t, err, name)
		big := slices.Clone(code)
		for i := 0; i < len(big); i += 4 {
			slices.Reverse(big[i : i+4])
		}
		got, err := shaders.Load(big)
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
	}
}

func TestModulesCutShortAreRefused(t *testing.T) {
	for name, code := range embedded(t) {
		for n := range code {
			_, err := shaders.Load(code[:n])
			var le *shaders.LoadError
			require.True(t, errors.As(err, &le), "%s cut to %d bytes: %v", name, n, err)
			require.LessOrEqual(t, le.Word, n/4)
		}
	}
}

func TestBadModules(t *testing.T) {
	entry := func() asm { return head() }
	for _, tt := range []struct {
		name string
		code []byte
		is   error
		says string
	}{
		{"nothing", nil, shaders.ErrNotSPIRV, "found 0"},
		{"text", []byte("#version 450\n"), shaders.ErrNotSPIRV, "magic number"},
		{"ELF", []byte("\x7fELF\x02\x01\x01\x00"), shaders.ErrNotSPIRV, "7f 45 4c 46"},
		{"odd bytes", append(tail(types(head())).bytes(binary.LittleEndian), 1), shaders.ErrTruncated, "4-byte words"},
		{"version", (asm{0x07230203, 0x00020000, 0, 9, 0}).bytes(binary.LittleEndian), shaders.ErrInvalidModule, "version"},
		{"bound", (asm{0x07230203, 0x00010500, 0, 1 << 30, 0}).bytes(binary.LittleEndian), shaders.ErrInvalidModule, "id bound"},
		{"no length", append(module(), 17).bytes(binary.LittleEndian), shaders.ErrInvalidModule, "no length"},
		{"no entry", module().op(17, 1).bytes(binary.LittleEndian), shaders.ErrInvalidModule, "compute entry point"},
		{"graphics entry", module().op(15, append([]uint32{4, idMain}, str("main")...)...).bytes(binary.LittleEndian), shaders.ErrInvalidModule, "compute entry point"},
		{"string without end", module().op(10, 0x41414141).bytes(binary.LittleEndian), shaders.ErrInvalidModule, "string"},
		{"few operands", module().op(71, 1).bytes(binary.LittleEndian), shaders.ErrInvalidModule, "wants 2 operands"},
		{"no size", tail(types(module().op(15, append([]uint32{5, idMain}, str("main")...)...))).bytes(binary.LittleEndian), shaders.ErrInvalidModule, "no workgroup size"},
		{"size 0", tail(types(module().op(15, append([]uint32{5, idMain}, str("main")...)...).op(16, idMain, 17, 1, 0, 1))).bytes(binary.LittleEndian), shaders.ErrInvalidModule, "axis 1"},
		{"defined twice", types(types(entry())).bytes(binary.LittleEndian), shaders.ErrInvalidModule, ""},
		{"id over the bound", entry().op(22, 100, 32).bytes(binary.LittleEndian), shaders.ErrInvalidModule, "bound 100"},
		{"type used early", entry().op(30, idStruct, idFloat).bytes(binary.LittleEndian), shaders.ErrInvalidModule, "before it is defined"},
		{"variable of no pointer", tail(types(entry()).op(59, idFloat, idVar, 12)).bytes(binary.LittleEndian), shaders.ErrInvalidModule, "not a pointer"},
		{"no binding", tail(types(entry()).op(30, idStruct, idFloat).op(32, idPtr, 12, idStruct).op(59, idPtr, idVar, 12)).bytes(binary.LittleEndian), shaders.ErrInvalidModule, "no descriptor set"},
		{"no body", types(entry()).bytes(binary.LittleEndian), shaders.ErrTruncated, "entry point"},
		{"helper without end", tail(types(entry())).op(54, idVoid, 92, 0, idFnType).bytes(binary.LittleEndian), shaders.ErrTruncated, "function 92 has no end"},
		{"function in function", types(entry()).op(54, idVoid, 92, 0, idFnType).op(54, idVoid, idMain, 0, idFnType).op(56).bytes(binary.LittleEndian), shaders.ErrInvalidModule, "within function 92"},
		{"end of nothing", types(entry()).op(56).bytes(binary.LittleEndian), shaders.ErrInvalidModule, "did not begin"},
		{"call of nothing", types(entry()).op(54, idVoid, idMain, 0, idFnType).op(57, idVoid, 91, 92).op(56).bytes(binary.LittleEndian), shaders.ErrTruncated, "function 92 is called"},
		{"huge array", tail(types(entry()).op(43, idUint, idTwo, 1<<31).op(28, idRuntime, idFloat, idTwo)).bytes(binary.LittleEndian), shaders.ErrInvalidModule, "larger than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := shaders.Load(tt.code)
			require.ErrorIs(t, err, tt.is)
			require.Contains(t, err.Error(), tt.says)
		})
	}
}

// Structs of structs of structs double in size with each line; sizes must not
// take exponential time, nor wrap.
func TestNestedStructsStayBounded(t *testing.T) {
	a := types(head())
	last := uint32(idFloat)
	for id := uint32(30); id < 90; id++ {
		a = a.op(30, id, last, last, last, last)
		last = id
	}
	_, err := tail(a).load()
	require.ErrorIs(t, err, shaders.ErrInvalidModule)
	require.Contains(t, err.Error(), "larger than")
}

func FuzzLoad(f *testing.F) {
	for _, code := range embedded(f) {
		f.Add(code)
	}
	for _, m := range structured(f) {
		f.Add(m)
	}
	f.Fuzz(func(t *testing.T, code []byte) { loads(t, code) })
}

// loads checks what holds for any input: no panic, and an error or a module whose
// figures are in range.
func loads(t *testing.T, code []byte) bool {
	m, err := shaders.Load(code)
	if err != nil {
		var le *shaders.LoadError
		require.True(t, errors.As(err, &le), "%v", err)
		return false
	}
	require.NotEmpty(t, m.Entries)
	require.GreaterOrEqual(t, m.PushSize, 0)
	require.GreaterOrEqual(t, m.SharedBytes, 0)
	for _, e := range m.Entries {
		for _, s := range e.LocalSize {
			require.NotZero(t, s)
		}
	}
	for _, b := range m.Bindings {
		require.NotEmpty(t, b.Contents.String())
		require.Equal(t, b.Contents.Form == shaders.OtherForm, b.Contents.Elem == nil)
	}
	comparesWithAnything(t, m)
	require.True(t, slices.IsSortedFunc(m.Bindings, func(a, b shaders.BindingInfo) int {
		return cmp.Compare(uint64(a.Set)<<32|uint64(a.Binding), uint64(b.Set)<<32|uint64(b.Binding))
	}))
	return true
}

// Each embedded module with a few words changed.
func TestDamagedModules(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	loaded, refused := 0, 0
	for _, code := range embedded(t) {
		for range 3000 {
			bad := slices.Clone(code)
			for range 1 + rng.IntN(3) {
				w := bad[4*rng.IntN(len(bad)/4):][:4]
				switch rng.IntN(3) {
				case 0:
					w[rng.IntN(4)] ^= 1 << rng.IntN(8)
				case 1:
					binary.LittleEndian.PutUint32(w, rng.Uint32N(300))
				case 2:
					binary.LittleEndian.PutUint32(w, rng.Uint32())
				}
			}
			if loads(t, bad) {
				loaded++
			} else {
				refused++
			}
		}
	}
	require.Positive(t, loaded)
	require.Positive(t, refused)
}

func BenchmarkLoad(b *testing.B) {
	code, err := os.ReadFile("spv/matmul.spv")
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := shaders.Load(code); err != nil {
			b.Fatal(err)
		}
	}
}
