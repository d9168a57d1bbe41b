// Package decodertest runs the C decoders of package abi against a driver that only
// writes down what it is told.
//
// A stream of random words must not reach a real driver: half of them are handles. The
// decoders are compiled here, from the sources as they are on disk, into a program of
// their own, with sanitizers where the compiler has them, and talked to through a pipe.
// It lives as long as the test that started it and serves one goroutine at a time; when
// it dies, reading or writing where it must not, the test fails with what it said.
package decodertest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Decoder is the running program.
type Decoder struct {
	in     io.WriteCloser
	out    *bufio.Reader
	cmd    *exec.Cmd
	stderr *bytes.Buffer
	dead   string
}

// Start compiles and starts the program. abi and here are the folders of package abi and
// of this one, as seen from the test's.
func Start(tb testing.TB, abi, here string) *Decoder {
	tb.Helper()
	source := filepath.Join(here, "testdata", "decoder.c")
	// Reading them makes go test notice changes of what the compiler reads by itself.
	for _, f := range []string{source, filepath.Join(abi, "commands.c"), filepath.Join(abi, "device.c"), filepath.Join(abi, "abi.h"), filepath.Join(abi, "vulkan_abi.h")} {
		if _, err := os.ReadFile(f); err != nil {
			tb.Fatal(err)
		}
	}
	cc := strings.Fields(os.Getenv("CC"))
	if len(cc) == 0 {
		cc = []string{"cc"}
	}
	program := filepath.Join(tb.TempDir(), "decoder")
	flags := append(cc[1:], "-std=gnu11", "-O1", "-g", "-Wall", "-Werror", "-I", abi, "-o", program, source)
	sanitize := []string{"-fsanitize=address,undefined", "-fno-sanitize-recover=all"}
	if out, err := exec.Command(cc[0], append(sanitize, flags...)...).CombinedOutput(); err != nil {
		tb.Logf("without sanitizers: %s", out)
		if out, err := exec.Command(cc[0], flags...).CombinedOutput(); err != nil {
			tb.Fatalf("compiling the decoder: %v: %s", err, out)
		}
	}
	d := &Decoder{cmd: exec.Command(program), stderr: &bytes.Buffer{}}
	d.cmd.Stderr = d.stderr
	in, err := d.cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	d.in, d.out = in, bufio.NewReader(out)
	if err := d.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		d.in.Close()
		if d.dead == "" {
			if err := d.cmd.Wait(); err != nil {
				tb.Errorf("the decoder ended with %v: %s", err, d.stderr)
			}
		}
	})
	return d
}

// Answer is what the driver was told, a line a call, and what the decoder returned.
type Answer struct {
	Calls  []string
	Result int32
	At     uint64 // word at fault, or number of sets made
}

// Record decodes a command stream into the command buffer 0xcb. failing, unless 0, is the
// call with a result that fails, counted from 1.
func (d *Decoder) Record(tb testing.TB, words []uint64, flags, failing uint32) Answer {
	tb.Helper()
	return d.ask(tb, [4]uint64{0, uint64(failing), uint64(flags), uint64(len(words))}, words)
}

// Sets decodes a descriptor program for the pool 0xb001.
func (d *Decoder) Sets(tb testing.TB, words []uint64, capacity, failing uint32) Answer {
	tb.Helper()
	return d.ask(tb, [4]uint64{1, uint64(failing), uint64(capacity), uint64(len(words))}, words)
}

func (d *Decoder) ask(tb testing.TB, request [4]uint64, words []uint64) (a Answer) {
	tb.Helper()
	if d.dead != "" {
		tb.Fatal("the decoder died before: ", d.dead)
	}
	buf := make([]byte, 0, 32+8*len(words))
	for _, w := range append(request[:], words...) {
		buf = binary.NativeEndian.AppendUint64(buf, w)
	}
	_, werr := d.in.Write(buf)
	for {
		line, err := d.out.ReadString('\n')
		if err != nil || werr != nil {
			d.dead = fmt.Sprintf("%v: %s", d.cmd.Wait(), d.stderr)
			tb.Fatal("the decoder died: ", d.dead)
		}
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "= ") {
			if _, err := fmt.Sscanf(line, "= %d %d", &a.Result, &a.At); err != nil {
				tb.Fatalf("the decoder said %q: %v", line, err)
			}
			return a
		}
		a.Calls = append(a.Calls, line)
	}
}
