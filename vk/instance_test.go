package vk_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/testenv"
	"vkcompute/internal/vktest"
	"vkcompute/vk"
)

func drivers(t *testing.T, files string) {
	t.Setenv("VK_DRIVER_FILES", files)
	t.Setenv("VK_ICD_FILENAMES", files)
}

// The drivers are looked for anew by each instance, so this process can lose them.
func TestNoDriver(t *testing.T) {
	testenv.Require(t)
	dir := t.TempDir()
	write := func(name, content string) string {
		f := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(f, []byte(content), 0o644))
		return f
	}
	for name, files := range map[string]string{
		"no manifest":          filepath.Join(dir, "nosuch.json"),
		"a folder":             dir,
		"an empty manifest":    write("empty.json", ""),
		"a damaged manifest":   write("damaged.json", `{"file_format_version": "1.0.0", "ICD": {"library_path`),
		"a manifest of binary": write("binary.json", "\x7fELF\x00\x01\x02"),
		"an unrelated one":     write("other.json", `{"layer": [1, 2, 3]}`),
		"a missing library":    write("missing.json", `{"file_format_version": "1.0.0", "ICD": {"library_path": "/nosuch/libdriver.so", "api_version": "1.3.0"}}`),
		"no library at all":    write("text.json", `{"file_format_version": "1.0.0", "ICD": {"library_path": "`+write("text.so", "text")+`", "api_version": "1.3.0"}}`),
		"a library, no driver": write("libc.json", `{"file_format_version": "1.0.0", "ICD": {"library_path": "libm.so.6", "api_version": "1.3.0"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			drivers(t, files)
			_, err := vk.Open(vk.Options{})
			require.ErrorIs(t, err, vk.ErrNoDevice)
			require.ErrorContains(t, err, "VK_DRIVER_FILES")
			require.ErrorContains(t, err, "mesa-vulkan-drivers", "it says what to do")
			_, err = vk.Devices()
			require.ErrorIs(t, err, vk.ErrNoDevice)
		})
	}
	// And it finds them again.
	list, err := vk.Devices()
	require.NoError(t, err)
	require.NotEmpty(t, list)
}

func TestNoLoader(t *testing.T) {
	text := filepath.Join(t.TempDir(), "libtext.so")
	require.NoError(t, os.WriteFile(text, []byte("text"), 0o644))
	err := vk.FindLoader("libnosuchvulkan.so.1", text, "libm.so.6")
	require.ErrorIs(t, err, vk.ErrNoLoader)
	for _, want := range []string{"libnosuchvulkan.so.1", text, "vkGetInstanceProcAddr", "libvulkan1"} {
		require.ErrorContains(t, err, want)
	}
	require.ErrorIs(t, vk.FindLoader(), vk.ErrNoLoader)
	// Reasons longer than the buffer they are written to are cut.
	long := strings.Repeat("x", 1000)
	err = vk.FindLoader(long+".so", long+"2.so", long+"3.so", long+"4.so")
	require.ErrorIs(t, err, vk.ErrNoLoader)
}

func TestNoValidationLayer(t *testing.T) {
	testenv.Require(t)
	t.Setenv("VK_LAYER_PATH", t.TempDir())
	_, err := vk.Open(vk.Options{Validation: vk.ValidationCore})
	require.ErrorIs(t, err, vk.ErrNoValidation)
	require.ErrorContains(t, err, "vulkan-validationlayers")
	d, err := vk.Open(vk.Options{})
	require.NoError(t, err, "nobody asked for it")
	require.NoError(t, d.Close())
}

// misuse records a command that the validation layer objects to and nobody will run.
func misuse(t *testing.T, d *vk.Device, times int) {
	t.Helper()
	pool, err := d.NewCommandPool()
	require.NoError(t, err)
	defer pool.Close()
	b, err := pool.New()
	require.NoError(t, err)
	buffer, err := d.NewBuffer(vk.BufferSpec{Size: uint64(8*times + 8)})
	require.NoError(t, err)
	defer buffer.Close()
	var c vk.Commands
	for i := range times {
		c.Fill(buffer.Handle(), uint64(8*i+2), 4, 0) // the offset is no multiple of 4
	}
	require.NoError(t, pool.Record(b, vk.OneTime, &c))
}

// opened is vktest.Open for a device whose messages the test provokes.
func opened(t *testing.T, logger *slog.Logger) *vk.Device {
	o := vktest.Options(t)
	if o.Validation == vk.ValidationOff {
		t.Skip("the oracle was switched off on purpose")
	}
	o.Logger = logger
	d, err := vk.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func TestMessagesGoToTheirDevice(t *testing.T) {
	one, other := opened(t, nil), opened(t, nil)
	misuse(t, one, 1)
	require.Empty(t, other.Messages())
	found := one.Messages()
	require.Len(t, found, 1)
	require.Equal(t, vk.SeverityError, found[0].Severity)
	require.True(t, found[0].Validation)
	require.Equal(t, "VUID-vkCmdFillBuffer-dstOffset-00025", found[0].ID)
	require.Contains(t, found[0].Text, "vkCmdFillBuffer")
	require.Contains(t, found[0].String(), "error: VUID-vkCmdFillBuffer")
	require.Empty(t, one.Messages(), "a message comes once")

	misuse(t, other, 1)
	require.Empty(t, one.Messages())
	require.Len(t, other.Messages(), 1)
}

// records keeps what was logged.
type records struct {
	mu     sync.Mutex
	list   []slog.Record
	during func()
}

func (r *records) Enabled(context.Context, slog.Level) bool { return true }
func (r *records) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *records) WithGroup(string) slog.Handler            { return r }
func (r *records) Handle(_ context.Context, record slog.Record) error {
	if r.during != nil {
		r.during()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, record)
	return nil
}

func (r *records) take(message string) (found []slog.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.list {
		if l.Message == message {
			found = append(found, l)
		}
	}
	r.list = nil
	return found
}

func attribute(r slog.Record, key string) (value slog.Value) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == key {
			value = a.Value
		}
		return true
	})
	return value
}

func TestMessagesAreLogged(t *testing.T) {
	r := &records{}
	d := opened(t, slog.New(r))
	var found []vk.Message
	r.during = func() { found = append(found, d.Messages()...) } // what handles the log may call the device
	misuse(t, d, 1)
	logged := r.take("vulkan")
	require.Len(t, logged, 1)
	require.Equal(t, slog.LevelError, logged[0].Level)
	require.Equal(t, "VUID-vkCmdFillBuffer-dstOffset-00025", attribute(logged[0], "id").String())
	require.Len(t, append(found, d.Messages()...), 1)
}

// Nothing is lost without a word, neither in the ring on the C side nor in the list of
// those that nobody asked for.
func TestDroppedMessagesAreCounted(t *testing.T) {
	r := &records{}
	d := opened(t, slog.New(r))
	const ring = 64
	misuse(t, d, 100)
	require.Len(t, r.take("vulkan: messages dropped"), 1)
	require.Len(t, d.Messages(), ring)

	total, dropped := 0, int64(0)
	for range 12 {
		misuse(t, d, 50)
		total += 50
	}
	for _, l := range r.take("vulkan: messages dropped") {
		dropped += attribute(l, "count").Int64()
	}
	kept := len(d.Messages())
	require.Equal(t, vk.KeptMessages, kept)
	require.Equal(t, int64(total-kept), dropped)
}

func TestUnreadMessagesFailClose(t *testing.T) {
	o := vktest.Options(t)
	if o.Validation == vk.ValidationOff {
		t.Skip("the oracle was switched off on purpose")
	}
	d, err := vk.Open(o)
	require.NoError(t, err)
	misuse(t, d, 1)
	require.ErrorContains(t, d.Close(), "VUID-vkCmdFillBuffer-dstOffset-00025")
	require.NoError(t, d.Close())
}

func TestMessagesFromSeveralGoroutines(t *testing.T) {
	d := opened(t, nil)
	const goroutines, times = 4, 10
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() { misuse(t, d, times) })
	}
	wg.Wait()
	require.Len(t, d.Messages(), goroutines*times)
}

// The settings that make the layer see hazards between storage buffers travel with the
// instance. The tests set them in the environment too, so a process without those
// variables has to show that the structure is read.
func TestValidationSyncNeedsNoEnvironment(t *testing.T) {
	const variable = "VKCOMPUTE_TEST_HAZARD_CHILD"
	if os.Getenv(variable) != "" {
		t.Run("child", func(t *testing.T) {
			r := newRig(t)
			r.copy(0, 1)
			r.copy(1, 2)
			r.submit()
			r.wait()
			found := r.d.Messages()
			require.NotEmpty(t, found)
			t.Log("saw", found[0].ID)
		})
		return
	}
	if !testenv.Require(t).Oracle {
		t.Skip("the oracle was switched off on purpose")
	}
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^TestValidationSyncNeedsNoEnvironment$")
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "VK_KHRONOS_VALIDATION_") && !strings.HasPrefix(v, "VK_LAYER_SETTINGS_PATH=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, variable+"=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "saw SYNC-HAZARD-READ-AFTER-WRITE")
}
