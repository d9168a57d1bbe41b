package vk_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/shaders"
	"vkcompute/vk"
)

// instr is an instruction of SPIR-V.
func instr(op uint32, operands ...uint32) []uint32 {
	return append([]uint32{uint32(len(operands)+1)<<16 | op}, operands...)
}

// text is a string literal.
func text(s string) (w []uint32) {
	b := append([]byte(s), make([]byte, 4-len(s)%4)...)
	for ; len(b) > 0; b = b[4:] {
		w = append(w, binary.LittleEndian.Uint32(b))
	}
	return w
}

func assemble(instructions ...[]uint32) []uint32 {
	return slices.Concat(append([][]uint32{{0x07230203, 0x10300, 0, 1000, 0}}, instructions...)...)
}

const (
	opEntryPoint, opExecutionMode, opCapability, opExecutionModeID = 15, 16, 17, 331
	opConstant, opSpecConstant, opSpecConstantOp, opComposite      = 43, 50, 52, 51
	opFunction, opFunctionEnd, opFunctionCall, opLoad, opDecorate  = 54, 56, 57, 61, 71

	main = 1 // id of the entry point's function
)

func entry(id uint32, name string) []uint32 {
	return instr(opEntryPoint, append([]uint32{5, id}, text(name)...)...)
}

func function(id uint32, body ...[]uint32) []uint32 {
	return slices.Concat(instr(opFunction, 50, id, 0, 51), slices.Concat(body...), instr(opFunctionEnd))
}

func binding(id, set, number uint32) []uint32 {
	return slices.Concat(instr(opDecorate, id, 34, set), instr(opDecorate, id, 33, number))
}

func TestShaderChecks(t *testing.T) {
	local := func(x, y, z uint32) []uint32 { return instr(opExecutionMode, main, 17, x, y, z) }
	builtIn := func(id uint32) []uint32 { return instr(opDecorate, id, 11, 25) }
	spec := func(id, number, value uint32) []uint32 {
		return slices.Concat(instr(opDecorate, id, 1, number), instr(opSpecConstant, 60, id, value))
	}
	one := [3]uint32{4, 1, 1}
	for name, c := range map[string]struct {
		code      []uint32
		workgroup [3]uint32
		constants []vk.SpecConstant
		features  vk.Features
		want      string // "" passes
	}{
		"least":                        {assemble(entry(main, "main"), local(4, 1, 1), function(main)), one, nil, vk.Features{}, ""},
		"no size told":                 {assemble(entry(main, "main"), function(main)), one, nil, vk.Features{}, ""},
		"another size":                 {assemble(entry(main, "main"), local(4, 2, 1), function(main)), one, nil, vk.Features{}, "[4 2 1]"},
		"size by the built-in":         {assemble(entry(main, "main"), local(9, 9, 9), builtIn(20), spec(21, 0, 4), spec(22, 1, 1), instr(opComposite, 60, 20, 21, 22, 22), function(main)), one, nil, vk.Features{}, ""},
		"another by the built-in":      {assemble(entry(main, "main"), local(4, 1, 1), builtIn(20), spec(21, 0, 8), spec(22, 1, 1), instr(opComposite, 60, 20, 21, 22, 22), function(main)), one, nil, vk.Features{}, "[8 1 1]"},
		"specialised":                  {assemble(entry(main, "main"), builtIn(20), spec(21, 7, 8), spec(22, 1, 1), instr(opComposite, 60, 20, 21, 22, 22), function(main)), one, []vk.SpecConstant{{ID: 7, Value: 4}}, vk.Features{}, ""},
		"specialised to another":       {assemble(entry(main, "main"), builtIn(20), spec(21, 7, 4), spec(22, 1, 1), instr(opComposite, 60, 20, 21, 22, 22), function(main)), one, []vk.SpecConstant{{ID: 7, Value: 16}}, vk.Features{}, "[16 1 1]"},
		"computed: not known":          {assemble(entry(main, "main"), local(9, 9, 9), builtIn(20), instr(opSpecConstantOp, 60, 21, 132, 30, 30), spec(22, 1, 1), instr(opComposite, 60, 20, 21, 22, 22), function(main)), one, nil, vk.Features{}, ""},
		"built-in that is not there":   {assemble(entry(main, "main"), local(9, 9, 9), builtIn(20), function(main)), one, nil, vk.Features{}, ""},
		"size by ids":                  {assemble(entry(main, "main"), instr(opExecutionModeID, main, 38, 21, 22, 22), spec(21, 0, 4), instr(opConstant, 60, 22, 1), function(main)), one, nil, vk.Features{}, ""},
		"another by ids":               {assemble(entry(main, "main"), instr(opExecutionModeID, main, 38, 21, 22, 22), spec(21, 0, 5), instr(opConstant, 60, 22, 1), function(main)), one, nil, vk.Features{}, "[5 1 1]"},
		"graphics":                     {assemble(instr(opEntryPoint, append([]uint32{0, main}, text("main")...)...), function(main)), one, nil, vk.Features{}, "no compute entry point"},
		"longer name":                  {assemble(entry(main, "mainly"), function(main)), one, nil, vk.Features{}, `["mainly"]`},
		"second of two":                {assemble(entry(main, "first"), entry(2, "main"), instr(opExecutionMode, main, 17, 9, 9, 9), instr(opExecutionMode, 2, 17, 4, 1, 1), function(main), function(2)), one, nil, vk.Features{}, ""},
		"name without end":             {assemble(instr(opEntryPoint, 5, main, 0x6e69616d), function(main)), one, nil, vk.Features{}, "too short"},
		"short entry":                  {assemble(instr(opEntryPoint, 5), function(main)), one, nil, vk.Features{}, "too short"},
		"short decoration":             {assemble(entry(main, "main"), instr(opDecorate, 9, 33), function(main)), one, nil, vk.Features{}, "too short"},
		"short size":                   {assemble(entry(main, "main"), instr(opExecutionMode, main, 17, 4, 1), function(main)), one, nil, vk.Features{}, "too short"},
		"other decorations":            {assemble(entry(main, "main"), instr(opDecorate, 9, 2), function(main)), one, nil, vk.Features{}, ""},
		"an instruction of none":       {assemble(entry(main, "main"), []uint32{0}, function(main)), one, nil, vk.Features{}, "has 0 words"},
		"function missing":             {assemble(entry(main, "main"), function(2)), one, nil, vk.Features{}, "function 1"},
		"callee missing":               {assemble(entry(main, "main"), function(main, instr(opFunctionCall, 50, 70, 2))), one, nil, vk.Features{}, "function 2"},
		"callee there":                 {assemble(entry(main, "main"), function(main, instr(opFunctionCall, 50, 70, 2)), function(2)), one, nil, vk.Features{}, ""},
		"function in a function":       {assemble(entry(main, "main"), instr(opFunction, 50, 1, 0, 51), function(2)), one, nil, vk.Features{}, "nested"},
		"an end too many":              {assemble(entry(main, "main"), function(main), instr(opFunctionEnd)), one, nil, vk.Features{}, "nested"},
		"binding given":                {assemble(entry(main, "main"), binding(9, 0, 3), function(main, instr(opLoad, 60, 70, 9))), one, nil, vk.Features{}, ""},
		"binding not given":            {assemble(entry(main, "main"), binding(9, 0, 4), function(main, instr(opLoad, 60, 70, 9))), one, nil, vk.Features{}, "binding 4 of set 0"},
		"binding of another set":       {assemble(entry(main, "main"), binding(9, 1, 3), function(main, instr(opLoad, 60, 70, 9))), one, nil, vk.Features{}, "binding 3 of set 1"},
		"binding passed to a function": {assemble(entry(main, "main"), binding(9, 0, 4), function(main, instr(opFunctionCall, 60, 70, 2, 9)), function(2)), one, nil, vk.Features{}, "binding 4 of set 0"},
		"binding not used":             {assemble(entry(main, "main"), binding(9, 0, 4), function(main, instr(opLoad, 60, 70, 8))), one, nil, vk.Features{}, ""},
		"binding of another entry":     {assemble(entry(main, "main"), entry(2, "b"), binding(9, 0, 4), function(main), function(2, instr(opLoad, 60, 70, 9))), one, nil, vk.Features{}, ""},
		"capability there":             {assemble(instr(opCapability, 11), entry(main, "main"), function(main)), one, nil, vk.Features{Int64: true}, ""},
		"capability missing":           {assemble(instr(opCapability, 11), entry(main, "main"), function(main)), one, nil, vk.Features{}, "Int64"},
		"capability cut":               {assemble(instr(opCapability), entry(main, "main"), function(main)), one, nil, vk.Features{}, "too short"},
	} {
		t.Run(name, func(t *testing.T) {
			err := vk.CheckShader(vk.PipelineSpec{Code: c.code, Entry: "main", Workgroup: c.workgroup, Constants: c.constants, Bindings: bindings(3, 1, vk.StorageBuffer)}, c.features)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			if c.want == "Int64" {
				require.ErrorIs(t, err, vk.ErrUnsupported)
			} else {
				require.ErrorIs(t, err, vk.ErrInvalidShader)
			}
		})
	}
}

// A file cut short anywhere is never taken for a shader.
func TestEveryPrefixOfAShaderIsRefused(t *testing.T) {
	for _, k := range kernels {
		s := kernelSpec(k)
		code := s.Code
		require.NoError(t, vk.CheckShader(s, vk.Features{}), k.Name)
		for n := range code {
			s.Code = code[:n:n]
			require.ErrorIs(t, vk.CheckShader(s, vk.Features{}), vk.ErrInvalidShader, "%d words of %d of %s", n, len(code), k.Name)
		}
	}
}

// Random words give an error or pass; they are never read beyond their end.
func FuzzCheckShader(f *testing.F) {
	for _, k := range []*shaders.Kernel{shaders.Nop, shaders.Add} {
		var raw []byte
		for _, w := range kernelSpec(k).Code {
			raw = binary.LittleEndian.AppendUint32(raw, w)
		}
		f.Add(raw)
		f.Add(raw[:len(raw)/2])
	}
	s := kernelSpec(shaders.Add)
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := s
		s.Code = make([]uint32, len(raw)/4)
		for i := range s.Code {
			s.Code[i] = binary.LittleEndian.Uint32(raw[4*i:])
		}
		_ = vk.CheckShader(s, vk.Features{})
	})
}
