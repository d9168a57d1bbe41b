package vk

import (
	"fmt"
	"slices"
)

// Drivers and the validation layer trust the words of a shader: an entry point that is
// not there, a module cut short, a descriptor that the layout lacks or a capability the
// device has not got ends the process on some of them. What can be seen in one pass is
// checked here. A module that passes may still be invalid; spirv-val tells.
//
// The numbers are those of the SPIR-V specification, version 1.6.
const (
	spirvMagic  = 0x07230203
	spirvHeader = 5       // words
	spirvLatest = 0x10500 // 1.5, the latest that Vulkan 1.2 takes

	instrEntryPoint      = 15
	instrExecutionMode   = 16
	instrCapability      = 17
	instrConstant        = 43
	instrConstComposite  = 44
	instrSpecConstant    = 50
	instrSpecComposite   = 51
	instrFunction        = 54
	instrFunctionEnd     = 56
	instrFunctionCall    = 57
	instrLoad            = 61
	instrStore           = 62
	instrAccessChain     = 65
	instrInBoundsChain   = 66
	instrPtrAccessChain  = 67
	instrArrayLength     = 68
	instrDecorate        = 71
	instrExecutionModeID = 331

	modelCompute    = 5
	modeLocalSize   = 17
	modeLocalSizeID = 38

	decorationSpecID  = 1
	decorationBuiltIn = 11
	decorationBinding = 33
	decorationSet     = 34

	builtInWorkgroupSize = 25
)

// resource is a variable with a descriptor.
type resource struct {
	set, binding    uint32
	hasSet, hasBind bool
	used            bool // by an instruction of a function
}

// module is what one pass over a shader finds.
type module struct {
	entries      []string // compute entry points
	others       int      // entry points of other stages
	ids          []uint32 // of the entry points
	capabilities []uint32
	resources    map[uint32]*resource
	specs        map[uint32]uint32   // constant id → specialisation constant ID
	constants    map[uint32]uint32   // constant id → (default) value, 32 bits
	composites   map[uint32][]uint32 // constant id → its parts
	localSize    map[uint32][]uint32 // entry point id → literal sizes
	localSizeIDs map[uint32][]uint32 // entry point id → constant ids
	workgroup    uint32              // id decorated as the built-in WorkgroupSize, or 0
	functions    map[uint32]bool     // ids of those that are there
	called       []uint32            // ids of those that must be
}

func invalidShader(what, format string, args ...any) error {
	return fmt.Errorf("vk: %s: %w: %s", what, ErrInvalidShader, fmt.Sprintf(format, args...))
}

// readModule splits the code into instructions and notes what checkShader needs.
func readModule(code []uint32, what string) (*module, error) {
	if len(code) < spirvHeader || code[0] != spirvMagic {
		return nil, invalidShader(what, "the code does not begin with the SPIR-V magic number %#08x", uint32(spirvMagic))
	}
	if code[1] > spirvLatest {
		return nil, invalidShader(what, "it is SPIR-V %d.%d: want at most 1.5, which is what Vulkan 1.2 takes", code[1]>>16, code[1]>>8&0xff)
	}
	m := &module{
		resources: map[uint32]*resource{}, specs: map[uint32]uint32{}, constants: map[uint32]uint32{},
		composites: map[uint32][]uint32{}, localSize: map[uint32][]uint32{}, localSizeIDs: map[uint32][]uint32{},
		functions: map[uint32]bool{},
	}
	inside := false
	for at := spirvHeader; at < len(code); {
		n, op := int(code[at]>>16), code[at]&0xffff
		if n == 0 || n > len(code)-at {
			return nil, invalidShader(what, "instruction %d at word %d has %d words, %d are left", op, at, n, len(code)-at)
		}
		switch op {
		case instrFunction, instrFunctionEnd:
			if inside == (op == instrFunction) {
				return nil, invalidShader(what, "functions are not nested right at word %d", at)
			}
			inside = op == instrFunction
		}
		if !m.note(op, code[at+1:at+n], inside) {
			return nil, invalidShader(what, "instruction %d at word %d is too short", op, at)
		}
		at += n
	}
	if inside {
		return nil, invalidShader(what, "the last function has no end")
	}
	for _, id := range append(m.called, m.ids...) {
		if !m.functions[id] {
			return nil, invalidShader(what, "it calls or begins with function %d, which is not in it", id)
		}
	}
	return m, nil
}

// leastOperands is how many words note reads of an instruction without looking.
func leastOperands(op uint32) int {
	switch op {
	case instrCapability:
		return 1
	case instrExecutionMode, instrExecutionModeID, instrConstComposite, instrSpecComposite, instrDecorate, instrStore:
		return 2
	case instrEntryPoint, instrConstant, instrSpecConstant, instrFunctionCall, instrLoad, instrAccessChain, instrInBoundsChain,
		instrPtrAccessChain, instrArrayLength:
		return 3
	case instrFunction:
		return 4
	}
	return 0
}

// note takes the operands of an instruction. It returns false when some are missing.
func (m *module) note(op uint32, w []uint32, inside bool) bool {
	if len(w) < leastOperands(op) {
		return false
	}
	switch op {
	case instrEntryPoint:
		if w[0] != modelCompute {
			m.others++
			break
		}
		name, ok := literal(w[2:])
		if !ok {
			return false
		}
		m.entries, m.ids = append(m.entries, name), append(m.ids, w[1])
	case instrExecutionMode:
		if w[1] == modeLocalSize {
			m.localSize[w[0]] = w[2:]
			return len(w) >= 5
		}
	case instrExecutionModeID:
		if w[1] == modeLocalSizeID {
			m.localSizeIDs[w[0]] = w[2:]
			return len(w) >= 5
		}
	case instrCapability:
		m.capabilities = append(m.capabilities, w[0])
	case instrConstant, instrSpecConstant:
		m.constants[w[1]] = w[2]
	case instrConstComposite, instrSpecComposite:
		m.composites[w[1]] = w[2:]
	case instrDecorate:
		return m.decorate(w)
	case instrLoad, instrAccessChain, instrInBoundsChain, instrPtrAccessChain, instrArrayLength:
		m.use(w[2:3], inside)
	case instrStore:
		m.use(w[:1], inside)
	case instrFunction:
		m.functions[w[1]] = true
	case instrFunctionCall:
		m.called = append(m.called, w[2])
		m.use(w[3:], inside)
	}
	return true
}

func (m *module) decorate(w []uint32) bool {
	if w[1] != decorationSpecID && w[1] != decorationBuiltIn && w[1] != decorationBinding && w[1] != decorationSet {
		return true
	}
	if len(w) < 3 {
		return false
	}
	r := m.resources[w[0]]
	if r == nil && (w[1] == decorationBinding || w[1] == decorationSet) {
		r = &resource{}
		m.resources[w[0]] = r
	}
	switch w[1] {
	case decorationSpecID:
		m.specs[w[0]] = w[2]
	case decorationBuiltIn:
		if w[2] == builtInWorkgroupSize {
			m.workgroup = w[0]
		}
	case decorationBinding:
		r.binding, r.hasBind = w[2], true
	case decorationSet:
		r.set, r.hasSet = w[2], true
	}
	return true
}

// use notes variables that a function works on; decorations come before functions.
func (m *module) use(ids []uint32, inside bool) {
	for _, id := range ids {
		if r := m.resources[id]; r != nil && inside {
			r.used = true
		}
	}
}

// literal is a string of SPIR-V: bytes from the lowest of each word on, up to a zero.
func literal(w []uint32) (string, bool) {
	var b []byte
	for _, v := range w {
		for shift := 0; shift < 32; shift += 8 {
			c := byte(v >> shift)
			if c == 0 {
				return string(b), true
			}
			b = append(b, c)
		}
	}
	return "", false
}

// size is the workgroup size of an entry point with the constants given; ok is false
// where it depends on more than constants.
func (m *module) size(entry uint32, constants []SpecConstant) (s [3]uint32, ok bool) {
	parts := m.localSizeIDs[entry]
	if composite, found := m.composites[m.workgroup]; found {
		parts = composite // overrides the execution modes
	} else if m.workgroup != 0 {
		return s, false
	}
	if parts == nil {
		return s, copy(s[:], m.localSize[entry]) == 3
	}
	if len(parts) < 3 {
		return s, false
	}
	for axis, id := range parts[:3] {
		v, found := m.constants[id]
		if !found {
			return s, false
		}
		if spec, has := m.specs[id]; has {
			if i := slices.IndexFunc(constants, func(c SpecConstant) bool { return c.ID == spec }); i >= 0 {
				v = constants[i].Value
			}
		}
		s[axis] = v
	}
	return s, true
}

// checkShader compares the shader with what the specification of its pipeline says.
func checkShader(s *PipelineSpec, f *Features, what string) error {
	m, err := readModule(s.Code, what)
	if err != nil {
		return err
	}
	entry := slices.Index(m.entries, s.Entry)
	if entry < 0 {
		return invalidShader(what, "it has no compute entry point %q; there are %q", s.Entry, m.entries)
	}
	if c := f.Lacks(m.capabilities...); c != "" {
		return fmt.Errorf("vk: %s: the shader needs the capability %s: %w", what, c, ErrUnsupported)
	}
	if size, ok := m.size(m.ids[entry], s.Constants); ok && size != s.Workgroup {
		return invalidShader(what, "its workgroup size is %v with these constants, the specification says %v", size, s.Workgroup)
	}
	if len(m.entries)+m.others > 1 {
		return nil // which of them uses a variable is not known
	}
	for _, r := range m.resources {
		if !r.used || !r.hasBind || !r.hasSet {
			continue
		}
		if r.set != 0 || !slices.ContainsFunc(s.Bindings, func(b Binding) bool { return b.Number == r.binding }) {
			return invalidShader(what, "it uses binding %d of set %d, the specification has bindings %v of set 0", r.binding, r.set, s.Bindings)
		}
	}
	return nil
}
