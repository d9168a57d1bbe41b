package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"vkcompute/internal/bench"
	"vkcompute/internal/testenv"
)

var update = flag.Bool("update", false, "write what commands print into the scripts anew")

// withEnvironment runs the tests proper with the driver and the layer set up; the
// commands that scripts run are this binary too, and do not come here.
type withEnvironment struct{ m *testing.M }

func (w withEnvironment) Run() int {
	stop := testenv.Start()
	defer stop()
	return w.m.Run()
}

func TestMain(m *testing.M) {
	testscript.Main(withEnvironment{m}, map[string]func(){"vkbench": main})
}

func params(dir string, variables []string) testscript.Params {
	return testscript.Params{
		Dir:           dir,
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, variables...)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"report": checkReport, "status": status, "samedigest": sameDigest, "checkpoint": writeCheckpoint},
		Condition: func(name string) (bool, error) {
			switch name {
			case "manifest":
				return slices.ContainsFunc(variables, func(v string) bool { return strings.HasPrefix(v, "MANIFEST=") }), nil
			case "full-disk":
				_, err := os.Stat("/dev/full")
				return err == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
	}
}

func TestScripts(t *testing.T) { testscript.Run(t, params("testdata/script", nil)) }

func TestDriverScripts(t *testing.T) {
	env := testenv.Require(t)
	variables := env.Variables()
	if env.Oracle {
		variables = append(variables, "ORACLE=--validate")
	} else {
		variables = append(variables, "ORACLE=--count=1")
	}
	if len(filepath.SplitList(env.DriverFiles)) == 1 {
		variables = append(variables, "MANIFEST="+env.DriverFiles)
	}
	testscript.Run(t, params("testdata/driver", variables))
}

// status runs a command and compares its exit status, which testscript's exec does not
// tell: status 2 vkbench --bogus. Any status will do with: status any vkbench.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status CODE COMMAND…")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var exit *exec.ExitError
	switch {
	case err == nil:
	case asExit(err, &exit):
		code = exit.ExitCode()
	default:
		ts.Fatalf("%v", err)
	}
	if fmt.Sprint(code) != args[0] && args[0] != "any" {
		ts.Fatalf("exit status %d, want %s", code, args[0])
	}
}

// sameDigest compares the digests of two answers of replay.
func sameDigest(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: samedigest FILE FILE")
	}
	var a, b replayed
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &a))
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &b))
	if a.Digest == "" || a.Digest != b.Digest || len(a.Samples) == len(b.Samples) {
		ts.Fatalf("digests %q and %q, of %d and %d replays", a.Digest, b.Digest, len(a.Samples), len(b.Samples))
	}
}

func asExit(err error, to **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError)
	*to = e
	return ok
}

// checkReport checks a JSON report of workload launch: report FILE LEAST-SAMPLES.
func checkReport(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: report FILE LEAST-SAMPLES")
	}
	least, err := strconv.Atoi(args[1])
	ts.Check(err)
	text := ts.ReadFile(args[0])
	r, err := bench.ReadJSON(strings.NewReader(text))
	ts.Check(err)
	var form struct {
		Schema      *int              `json:"schema"`
		Environment map[string]any    `json:"environment"`
		Results     []json.RawMessage `json:"results"`
	}
	ts.Check(json.Unmarshal([]byte(text), &form))
	for _, key := range []string{"device", "driver", "api", "go", "cpu", "profile", "commit"} {
		if v, ok := form.Environment[key].(string); !ok || v == "" && key != "profile" {
			ts.Fatalf("environment %s is %v", key, form.Environment[key])
		}
	}
	if form.Schema == nil || *form.Schema != 1 {
		ts.Fatalf("no schema 1")
	}
	sizes := []int{1, 16, 256, 1024}
	if strings.Contains(r.Environment.Device, "llvmpipe") {
		sizes = append(sizes, 4096)
	}
	for _, n := range sizes {
		for _, mode := range []string{"rebuild", "cached", "replay", "nop"} {
			name := fmt.Sprintf("%s/n=%d", mode, n)
			x := r.Find("launch", name, "wall")
			switch {
			case x == nil:
				ts.Fatalf("no case %s", name)
			case x.Unit != "ns/launch":
				ts.Fatalf("%s: unit %q", name, x.Unit)
			case len(x.Samples) < least:
				ts.Fatalf("%s: %d samples, want at least %d", name, len(x.Samples), least)
			case x.Reference["c"] <= 0:
				ts.Fatalf("%s: no reference c", name)
			case !slices.ContainsFunc(x.Samples, func(s float64) bool { return s > 0 }):
				ts.Fatalf("%s: samples %v", name, x.Samples)
			}
		}
	}
	if x := r.Find("launch", "empty-submit", "wall"); x == nil || x.Reference["c"] <= 0 {
		ts.Fatalf("no case empty-submit with reference c")
	}
	if x := r.Find("launch", "rebuild/n=16", "wall"); x.Reference["c.buffer"] <= 0 {
		ts.Fatalf("no reference c.buffer")
	}
}

// begun waits until a run has started its worker, or loaded Vulkan where it needs none: by
// then it minds interrupts. Where the system does not tell, it waits a while.
func begun(t *testing.T, pid int) {
	t.Helper()
	for range 600 {
		if maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid)); err == nil && bytes.Contains(maps, []byte("vk_swiftshader")) {
			return
		}
		lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
		require.NoError(t, err)
		if len(lists) == 0 {
			time.Sleep(3 * time.Second)
			return
		}
		for _, name := range lists {
			if children, err := os.ReadFile(name); err == nil && len(bytes.TrimSpace(children)) > 0 {
				return
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the run never started its worker")
}

// An interrupted run stops, its worker too, says so, and leaves no file.
func TestInterrupt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no interrupt can be sent to a process there")
	}
	env := testenv.Require(t)
	exe, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	file := filepath.Join(dir, "report.json")
	require.NoError(t, os.WriteFile(file, []byte("old"), 0o644))
	var out, errOut bytes.Buffer
	c := exec.Command(exe, "run", "launch", "--time", "10m", "--format", "json", "-o", file)
	c.Args[0] = "vkbench"
	c.Dir = dir
	c.Env = append(os.Environ(), env.Variables()...)
	c.Stdout, c.Stderr = &out, &errOut
	require.NoError(t, c.Start())
	done := make(chan error, 1)
	go func() { done <- c.Wait() }() // which waits for the worker too: it has the same standard error
	begun(t, c.Process.Pid)
	require.NoError(t, c.Process.Signal(os.Interrupt))
	select {
	case <-done:
	case <-time.After(time.Minute):
		c.Process.Signal(syscall.SIGQUIT)
		<-done
		t.Fatalf("still running after the interrupt: %s", errOut.String())
	}
	require.Equal(t, failed, c.ProcessState.ExitCode(), errOut.String())
	require.Equal(t, "vkbench: interrupted\n", errOut.String())
	require.Empty(t, out.String())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "old", string(text))
}

// Progress is for terminals: a pipe gets none of it.
func TestProgressIsForTerminals(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b)
	p.say("half")
	p.clear()
	require.Empty(t, b.String())
	p = &progress{w: &b}
	p.clear()
	require.Empty(t, b.String(), "nothing to clear")
	p.say("half")
	p.clear()
	require.Equal(t, "\r\x1b[Khalf\r\x1b[K", b.String())
}

func TestByteSize(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 128 << 20: "128 MiB", 1<<31 - 4: "2 GiB", 3 << 40: "3 TiB"} {
		require.Equal(t, want, byteSize(n))
	}
}
