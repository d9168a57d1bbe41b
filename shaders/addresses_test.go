package shaders_test

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/shaders"
)

// Every built-in module can take its buffers by address, and the validator agrees with
// what comes out.
func TestAddressedModulesAreValid(t *testing.T) {
	validator, err := exec.LookPath("spirv-val")
	if err != nil {
		if os.Getenv("VKCOMPUTE_SKIP_DRIFT") != "" {
			t.Skip("spirv-val is missing, and VKCOMPUTE_SKIP_DRIFT is set")
		}
		t.Fatal("spirv-val is missing: install spirv-tools")
	}
	files, err := filepath.Glob("spv/*.spv")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		code, err := os.ReadFile(file)
		require.NoError(t, err)
		m, err := shaders.Load(code)
		require.NoError(t, err)
		a, err := m.Addressed()
		require.NoError(t, err, file)
		addressed := map[uint32]bool{} // a binding that variables share has several addresses
		offsets := map[int]bool{}
		for _, b := range a.Addresses {
			addressed[b.Binding] = true
			require.False(t, offsets[b.Offset], "%s: two addresses at %d", file, b.Offset)
			offsets[b.Offset] = true
			require.Zero(t, b.Offset%8)
			require.LessOrEqual(t, b.Offset+8, a.Module.PushSize)
			require.GreaterOrEqual(t, b.Offset, m.PushSize)
		}
		for _, b := range m.Bindings {
			require.True(t, addressed[b.Binding], "%s: binding %d has no address", file, b.Binding)
		}
		require.Len(t, addressed, len(m.Bindings))
		require.Empty(t, a.Module.Bindings)

		var bytes []byte
		for _, w := range a.Module.Words {
			bytes = binary.LittleEndian.AppendUint32(bytes, w)
		}
		again, err := shaders.Load(bytes)
		require.NoError(t, err, file)
		require.Empty(t, again.Bindings)
		require.Equal(t, a.Module.PushSize, again.PushSize, file)
		out := filepath.Join(t.TempDir(), filepath.Base(file))
		require.NoError(t, os.WriteFile(out, bytes, 0o600))
		said, err := exec.Command(validator, "--target-env", "vulkan1.2", out).CombinedOutput()
		require.NoError(t, err, "%s: %s", file, said)
	}
}

// Whatever Load accepts is rewritten or refused, never a crash.
func FuzzAddressed(f *testing.F) {
	files, _ := filepath.Glob("spv/*.spv")
	for _, file := range files {
		if code, err := os.ReadFile(file); err == nil {
			f.Add(code)
		}
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		m, err := shaders.Load(code)
		if err != nil {
			return
		}
		if _, err := m.Addressed(); err != nil && !errors.Is(err, shaders.ErrNotAddressable) {
			t.Fatal(err)
		}
	})
}
