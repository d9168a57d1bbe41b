package shaders_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/shaders"
)

// Shaders whose reflection is easily got wrong, compiled for several versions of
// SPIR-V, with and without debug names.
var oddShaders = map[string]string{
	"members": `layout(set=0,binding=0) buffer A { readonly uint a; readonly float b[]; };
layout(set=0,binding=1) buffer B { writeonly uint c[4]; writeonly uint d[]; };
layout(set=0,binding=2) buffer C { readonly uint e; uint f[]; };
void main() { c[0] = a; f[0] = e; d[0] = uint(b[0]); }`,
	"sets": `layout(set=3,binding=7) readonly buffer A { vec4 a[]; };
layout(set=1,binding=2) uniform U { vec4 u; mat4 m; };
layout(set=0,binding=9) writeonly buffer B { vec4 b[]; };
void main() { b[0] = a[1] + m * u; }`,
	"push": `layout(push_constant) uniform P { layout(offset=16) vec3 v; float f; int n[3]; };
layout(set=0,binding=0) buffer B { float b[]; };
void main() { b[0] = v.x + f + float(n[2]); }`,
	"arrays": `layout(set=0,binding=0) readonly buffer A { float a[]; } many[3];
layout(set=0,binding=1) buffer B { float b[]; };
void main() { b[0] = many[2].a[0]; }`,
	"wide": `#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(set=0,binding=0) buffer B { double d[]; };
layout(set=0,binding=1) buffer C { uint64_t q[]; };
void main() { d[0] *= 2.0lf; q[0] += 1ul; }`,
	"constants": `layout(constant_id=5) const bool on = true;
layout(constant_id=3) const float f = 1.5;
layout(constant_id=9) const int n = -3;
layout(local_size_x_id=20, local_size_z_id=21) in;
layout(set=0,binding=0) buffer B { float b[]; };
shared float s[gl_WorkGroupSize.x];
void main() { s[gl_LocalInvocationID.x] = f; barrier(); if (on) b[n + 4] = s[0]; }`,
	"struct": `struct S { vec3 a; float b; mat3 m; uint c[2]; };
layout(set=0,binding=0) readonly buffer A { S s[]; };
layout(set=0,binding=1) restrict coherent buffer B { float b[]; };
void main() { b[0] = s[1].m[2].x + s[0].a.z; }`,
	"unused": `layout(set=0,binding=0) buffer A { float a[]; };
layout(set=0,binding=1) buffer B { float b[]; };
void main() { b[0] = 1.0; }`,
}

// crossReflection is what spirv-cross --reflect prints, as far as it is compared.
type crossReflection struct {
	EntryPoints []struct {
		Name          string
		Mode          string
		WorkgroupSize []uint32 `json:"workgroup_size"`
		IsSpecID      []bool   `json:"workgroup_size_is_spec_constant_id"`
	}
	Types map[string]struct {
		Members []struct {
			Type        string
			Offset      int
			Array       []int
			ArrayStride int `json:"array_stride"`
		}
	}
	SSBOs, UBOs []struct {
		Name                string
		ReadOnly, WriteOnly bool
		Set, Binding        uint32
		Array               []uint32
	}
	PushConstants []struct{ Type string } `json:"push_constants"`
	Constants     []struct {
		ID      uint32
		Type    string
		Default json.RawMessage `json:"default_value"`
	} `json:"specialization_constants"`
}

// Reflection says what spirv-cross and spirv-dis say, of every binary here and of
// the odd ones.
func TestReflectionAgreesWithOtherTools(t *testing.T) {
	if os.Getenv(skipDrift) == "1" {
		t.Skip(skipDrift + " is set: reflection is not compared with other tools")
	}
	for _, tool := range []string{"glslc", "spirv-dis", "spirv-cross"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("want %s to compare with, found none: install spirv-tools, spirv-cross and glslc, or set %s=1", tool, skipDrift)
		}
	}
	files, err := filepath.Glob("spv/*.spv")
	require.NoError(t, err)
	dir := t.TempDir()
	for name, source := range oddShaders {
		path := filepath.Join(dir, name+".comp")
		require.NoError(t, os.WriteFile(path, []byte("#version 450\n"+source), 0o600))
		for _, flags := range [][]string{{"--target-env=vulkan1.0", "-O0"}, {"--target-env=vulkan1.2", "-O"}, {"--target-env=vulkan1.3", "-g"}} {
			bin := fmt.Sprintf("%s%s%s.spv", path, flags[0], flags[1])
			out, err := exec.Command("glslc", append(flags, path, "-o", bin)...).CombinedOutput()
			require.NoError(t, err, "%s: %s", name, out)
			files = append(files, bin)
		}
	}
	require.Greater(t, len(files), 40)
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			code, err := os.ReadFile(f)
			require.NoError(t, err)
			m, err := shaders.Load(code)
			require.NoError(t, err)
			compareWithCross(t, f, m)
			compareWithDisassembly(t, f, m)
		})
	}
}

func compareWithCross(t *testing.T, file string, m *shaders.Module) {
	out, err := exec.Command("spirv-cross", file, "--reflect").Output()
	require.NoError(t, err)
	var want crossReflection
	require.NoError(t, json.Unmarshal(out, &want))
	require.Len(t, m.Entries, len(want.EntryPoints))
	for i, e := range want.EntryPoints {
		require.Equal(t, "comp", e.Mode)
		require.Equal(t, e.Name, m.Entries[i].Name)
		for axis, size := range e.WorkgroupSize {
			if e.IsSpecID != nil && e.IsSpecID[axis] { // then it is the constant's number
				require.Equal(t, size+1, m.Entries[i].LocalSizeSpec[axis])
				continue
			}
			if size != 0 { // it does not follow the identifiers of LocalSizeId
				require.Equal(t, size, m.Entries[i].LocalSize[axis])
			}
		}
	}
	type binding struct {
		set, binding uint32
		kind         shaders.BindingKind
		access       shaders.Access
		count        uint32
	}
	var theirs, ours []binding
	add := func(b binding) {
		// It lists variables that share a binding one by one.
		at := slices.IndexFunc(theirs, func(o binding) bool { return o.set == b.set && o.binding == b.binding })
		if at < 0 {
			theirs = append(theirs, b)
			return
		}
		theirs[at].access |= b.access
	}
	for _, b := range want.SSBOs {
		access := shaders.ReadWrite
		if b.ReadOnly {
			access &^= shaders.Write
		}
		if b.WriteOnly {
			access &^= shaders.Read
		}
		add(binding{b.Set, b.Binding, shaders.StorageBuffer, access, product(b.Array)})
	}
	for _, b := range want.UBOs {
		add(binding{b.Set, b.Binding, shaders.UniformBuffer, shaders.Read, product(b.Array)})
	}
	for _, b := range m.Bindings {
		ours = append(ours, binding{b.Set, b.Binding, b.Kind, b.Access, b.Count})
	}
	require.ElementsMatch(t, theirs, ours)

	// Push constants: up to the end of the last member, where its size is plain.
	size := 0
	for _, p := range want.PushConstants {
		for _, member := range want.Types[p.Type].Members {
			end := member.Offset + map[string]int{"float": 4, "int": 4, "uint": 4, "vec3": 12}[member.Type]
			for _, n := range member.Array {
				end = member.Offset + n*member.ArrayStride
			}
			size = max(size, end)
		}
	}
	require.Equal(t, size, m.PushSize)

	ids := map[uint32]bool{} // it lists constants that share an ID one by one
	for _, c := range want.Constants {
		ids[c.ID] = true
	}
	require.Len(t, m.Constants, len(ids))
	for _, c := range want.Constants {
		at := slices.IndexFunc(m.Constants, func(o shaders.SpecInfo) bool { return o.ID == c.ID })
		require.GreaterOrEqual(t, at, 0, "constant %d", c.ID)
		switch c.Type {
		case "bool":
			require.Equal(t, string(c.Default) == "true", m.Constants[at].Default == 1)
		case "int", "uint":
			v, err := strconv.ParseInt(string(c.Default), 10, 64)
			require.NoError(t, err)
			require.Equal(t, uint32(v), m.Constants[at].Default)
		}
	}
}

func product(n []uint32) uint32 {
	p := uint32(1)
	for _, v := range n {
		p *= v
	}
	return p
}

func compareWithDisassembly(t *testing.T, file string, m *shaders.Module) {
	out, err := exec.Command("spirv-dis", "--no-indent", file).Output()
	require.NoError(t, err)
	var caps, extensions []string
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 2 && fields[0] == "OpCapability":
			caps = append(caps, fields[1])
		case len(fields) == 2 && fields[0] == "OpExtension":
			extensions = append(extensions, strings.Trim(fields[1], `"`))
		}
	}
	var ours []string
	for _, c := range m.Capabilities {
		ours = append(ours, c.String())
	}
	require.ElementsMatch(t, caps, ours)
	require.ElementsMatch(t, extensions, m.Extensions)
}
