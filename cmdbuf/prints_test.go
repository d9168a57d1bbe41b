package cmdbuf_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/shim"
	"vkcompute/internal/testenv"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// printing is the options of a device that logs what shaders print, to the buffer.
func printing(t *testing.T) (vk.Options, *bytes.Buffer) {
	t.Helper()
	if !testenv.Require(t).Oracle {
		t.Skip("the layer was switched off on purpose")
	}
	log := &bytes.Buffer{}
	o := vktest.Options(t)
	o.Prints = vk.PrintsLogged
	o.Logger = slog.New(slog.NewTextHandler(log, nil))
	return o, log
}

// openPrinting opens the device under test; the test closes it.
func openPrinting(t *testing.T, o vk.Options) *vk.Device {
	t.Helper()
	profile := testenv.Require(t).Profile
	if profile == "" {
		profile = shim.Plain
	}
	d, err := vktest.NewDriver(t, profile).Open(o)
	require.NoError(t, err)
	return d
}

func lines(list []vk.Print) (texts []string) {
	for _, p := range list {
		texts = append(texts, p.Text)
	}
	slices.Sort(texts)
	return texts
}

// printSomething launches the kernel that prints and returns what it computed.
func printSomething(t *testing.T, d *vk.Device, host []float32) []float32 {
	t.Helper()
	s, err := cmdbuf.NewStream(d, cmdbuf.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close(ctx)) }()
	x, err := cmdbuf.Upload(s, host, len(host))
	require.NoError(t, err)
	defer x.Close()
	y, err := cmdbuf.New[float32](s, len(host))
	require.NoError(t, err)
	defer y.Close()
	require.NoError(t, s.Launch(userKernel(t, "prints"), x, y))
	return read(t, y)
}

// What a shader prints arrives with its values, by every layer that is installed.
func TestShaderPrints(t *testing.T) {
	layers := map[string]string{"the oracle": os.Getenv("VK_LAYER_PATH")}
	const system = "/usr/share/vulkan/explicit_layer.d"
	if _, err := os.Stat(filepath.Join(system, "VkLayer_khronos_validation.json")); err == nil {
		layers["the system's"] = system
	}
	for name, folder := range layers {
		for _, validation := range []vk.Validation{vk.ValidationOff, vk.ValidationCore} {
			t.Run(fmt.Sprintf("%s, validation %d", name, validation), func(t *testing.T) {
				o, log := printing(t)
				o.Validation = validation
				t.Setenv("VK_LAYER_PATH", folder)
				d := openPrinting(t, o)
				require.Equal(t, []float32{1, 4, 9, 16.25 * 16.25}, printSomething(t, d, []float32{1, -2, 3, -16.25}))
				require.NoError(t, d.WaitIdle())
				list := d.Prints()
				require.Equal(t, []string{"element 1 is -2.000000", "element 3 is -16.250000"}, lines(list))
				for _, p := range list {
					if p.Known {
						require.Equal(t, "prints", p.Shader)
						var i uint32
						_, err := fmt.Sscanf(p.Text, "element %d", &i)
						require.NoError(t, err)
						require.Equal(t, [3]uint32{i, 0, 0}, p.Invocation)
					}
				}
				if name == "the oracle" {
					require.True(t, list[0].Known && list[1].Known, "a layer that knows the invocation")
					require.Contains(t, log.String(), `level=INFO msg="shader printed" shader=prints message="element 3 is -16.250000" invocation="[3 0 0]"`)
				}
				require.Contains(t, log.String(), `message="element 1 is -2.000000"`)
				require.Empty(t, d.Prints(), "they are told once")
				require.Empty(t, d.Messages(), "what shaders print is no message of the driver")
				require.NoError(t, d.Close())
			})
		}
	}
}

// Nothing is printed without being asked for, and the shader computes the same.
func TestShaderPrintsAreIgnoredByDefault(t *testing.T) {
	d := vktest.Open(t)
	require.Equal(t, []float32{4, 9}, printSomething(t, d, []float32{-2, -3}))
	require.Empty(t, d.Prints())
}

// More lines than the layer makes room for by itself, of equal text, in a graph that is
// replayed: each is there.
func TestShaderPrintsInAGraph(t *testing.T) {
	o, _ := printing(t)
	d := openPrinting(t, o)
	defer func() { require.NoError(t, d.Close()) }()
	s, err := cmdbuf.NewStream(d, cmdbuf.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close(ctx)) }()
	const n, replays = 100, 3
	host := make([]float32, n)
	for i := range host {
		host[i] = -1
	}
	x, err := cmdbuf.Upload(s, host, n)
	require.NoError(t, err)
	defer x.Close()
	y, err := cmdbuf.New[float32](s, n)
	require.NoError(t, err)
	defer y.Close()
	g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error { return c.Launch(userKernel(t, "prints"), x, y) })
	require.NoError(t, err)
	for range replays {
		require.NoError(t, g.Replay())
		require.NoError(t, s.Sync(ctx))
	}
	require.NoError(t, g.Close())
	require.NoError(t, d.WaitIdle())
	count := map[string]int{}
	for _, p := range d.Prints() {
		count[p.Text]++
	}
	require.Len(t, count, n)
	for text, c := range count {
		require.Equal(t, replays, c, text)
	}
}

// Where neither the extension nor Vulkan 1.3 promises that such shaders are taken, the
// log says so.
func TestShaderPrintsWithoutTheExtension(t *testing.T) {
	o, log := printing(t)
	driver := vktest.NewDriver(t, shim.Bare)
	d, err := driver.Open(o)
	require.NoError(t, err)
	require.Contains(t, log.String(), "the driver may refuse shaders that print")
	require.Contains(t, log.String(), "VK_KHR_shader_non_semantic_info")
	require.NoError(t, d.Close())
}

// The code of the documentation says what is written beneath it.
func TestExamplePrints(t *testing.T) {
	if !testenv.Require(t).Oracle {
		t.Skip("the layer was switched off on purpose")
	}
	out, in, err := os.Pipe()
	require.NoError(t, err)
	stdout := os.Stdout
	os.Stdout = in
	defer func() { os.Stdout = stdout }()
	ExampleStream_Launch_prints()
	in.Close()
	text, err := io.ReadAll(out)
	require.NoError(t, err)
	require.Equal(t, "level=INFO msg=\"shader printed\" shader=prints message=\"element 1 is -5.000000\" invocation=\"[1 0 0]\"\n[9 25] <nil>\n", string(text))
}

// Shaders that print with debugPrintfEXT reach the logger. The validation layer must be
// installed.
func ExampleStream_Launch_prints() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	// Device 0, whatever it is: that the best one is a CPU would be a line of the log too.
	device, err := vk.Open(vk.Options{Device: "0", Prints: vk.PrintsLogged, Logger: logger})
	check(err)
	defer func() { check(device.Close()) }()
	ctx := context.Background()
	stream, err := cmdbuf.NewStream(device, cmdbuf.Options{})
	check(err)
	defer stream.Close(ctx)
	x, err := cmdbuf.Upload(stream, []float32{3, -5}, 2)
	check(err)
	defer x.Close()
	y, err := cmdbuf.New[float32](stream, 2)
	check(err)
	defer y.Close()

	// if (v < 0) debugPrintfEXT("element %u is %f", i, v);
	square, err := shaders.LoadKernelFS(userShaders, "testdata/user/prints.spv")
	check(err)
	check(stream.Launch(square, x, y))
	fmt.Println(y.Read(ctx))
	// level=INFO msg="shader printed" shader=prints message="element 1 is -5.000000" invocation="[1 0 0]"
	// [9 25] <nil>
}
