package vk_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/testenv"
	"vkcompute/vk"
)

func TestParsePrint(t *testing.T) {
	const later = "vkQueueSubmit(): pSubmits[0] DebugPrintf:\n"
	const tail = "\nStage = Compute.  Global invocation ID (x, y, z) = (7, 8, 4294967295)\nCommand buffer (0x7fe7)\n\tCompute Dispatch Index 0\n"
	const earlier = "Validation Information: [ UNASSIGNED-DEBUG-PRINTF ] Object 0: handle = 0x1, type = VK_OBJECT_TYPE_DEVICE; | MessageID = 0x92394c89 | "
	at := [3]uint32{7, 8, 1<<32 - 1}
	for _, tt := range []struct {
		message string
		want    vk.Print
	}{
		{later + "x is 3" + tail, vk.Print{Text: "x is 3", Invocation: at, Known: true}},
		{later + "x is 3", vk.Print{Text: "x is 3"}},
		{later + "two\nlines\n" + tail, vk.Print{Text: "two\nlines", Invocation: at, Known: true}},
		{later + "DebugPrintf:\nStage = fake" + tail, vk.Print{Text: "DebugPrintf:\nStage = fake", Invocation: at, Known: true}},
		{later + "x\nStage = Compute.  Global invocation ID (x, y, z) = (1, 2, 99999999999)\n", vk.Print{Text: "x", Invocation: [3]uint32{1, 2, 1<<32 - 1}}},
		{later + "x\nStage = Compute.\n", vk.Print{Text: "x"}},
		{earlier + "x | y is 3", vk.Print{Text: "x | y is 3"}},
		{"something else\n", vk.Print{Text: "something else"}},
		{"", vk.Print{}},
	} {
		tt.want.Shader = "mine"
		require.Equal(t, tt.want, vk.ParsePrint("mine", tt.message))
	}
}

func FuzzParsePrint(f *testing.F) {
	f.Add("vkQueueSubmit(): pSubmits[0] DebugPrintf:\nx\nStage = Compute.  Global invocation ID (x, y, z) = (7, 8, 9)\n")
	f.Fuzz(func(t *testing.T, message string) {
		p := vk.ParsePrint("", message)
		if !strings.Contains(message, p.Text) {
			t.Fatalf("%q is not in %q", p.Text, message)
		}
	})
}

// Without the layer there is nobody to tell what shaders print, and the error says so.
func TestPrintsWithoutTheLayer(t *testing.T) {
	testenv.Require(t)
	t.Setenv("VK_LAYER_PATH", t.TempDir())
	_, err := vk.Open(vk.Options{Prints: vk.PrintsLogged})
	require.ErrorIs(t, err, vk.ErrNoValidation)
	require.ErrorContains(t, err, "for what shaders print; install it")
}
