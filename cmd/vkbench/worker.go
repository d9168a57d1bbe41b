package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"vkcompute/internal/bench"
	"vkcompute/vk"
)

// A worker is this program, started again in an environment made for a measurement. It
// reads one order from its standard input and writes one answer. The input stays open
// as long as whoever started it lives; its end is a request to stop.

type order struct {
	Workload string        `json:"workload"`
	Device   int           `json:"device"`
	Name     string        `json:"name"`
	Validate bool          `json:"validate"`
	Profile  string        `json:"profile"`
	Cache    string        `json:"cache"`
	Rounds   int           `json:"rounds"`
	Time     time.Duration `json:"time"`
	Limit    time.Duration `json:"limit"`
	// Step of Steps is the workload's place in the run, for the progress.
	Step  int `json:"step"`
	Steps int `json:"steps"`
}

type answer struct {
	outcome
	Error string `json:"error,omitempty"`
}

type workerCommand struct{}

func (workerCommand) Run(s *streams, ctx *runContext) error {
	in := json.NewDecoder(s.in)
	var o order
	if err := in.Decode(&o); err != nil {
		return fmt.Errorf("worker: reading the order: %w", err)
	}
	w := find(o.Workload)
	if w == nil || w.here == nil {
		return fmt.Errorf("worker: workload %q is none that is measured in a worker", o.Workload)
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		io.Copy(io.Discard, s.in)
		stop()
	}()
	j := job{name: o.Workload, device: vk.DeviceInfo{Index: o.Device, Name: o.Name}, validate: o.Validate, profile: o.Profile, cache: o.Cache,
		say:     func(t string, part float64) { s.progress.step(o.Step, o.Steps, o.Workload, t, part) },
		measure: bench.Options{Rounds: o.Rounds, Time: o.Time, Limit: o.Limit}}
	var a answer
	f := deviceFlags{Profile: o.Profile}
	pinned, err := pin()
	if err == nil {
		err = f.emulate()
	}
	if err == nil {
		j.emulated = f.emulated
		a.outcome, err = w.here(running, j)
	}
	a.Setup = pinned
	if err != nil {
		a.Error = err.Error()
	}
	if broken := json.NewEncoder(s.out).Encode(&a); broken != nil {
		return fmt.Errorf("worker: %w", errors.Join(broken, err))
	}
	if err != nil {
		return errReported // whoever started it says so
	}
	return nil
}

// startWorker measures the job's workload in a worker with settings in its environment. The
// outcome's Setup says how the worker was pinned, if it was.
func startWorker(ctx context.Context, j job, settings []string) (out outcome, err error) {
	path, err := os.Executable()
	if err != nil {
		return out, fmt.Errorf("finding this program, to start it again: %w", err)
	}
	c := exec.Command(path, "worker")
	c.Args[0] = os.Args[0] // by which a test's binary knows what it is
	c.Env = append(os.Environ(), settings...)
	var answered bytes.Buffer
	c.Stdout, c.Stderr = &answered, j.errOut
	in, err := c.StdinPipe()
	if err != nil {
		return out, fmt.Errorf("worker: %w", err)
	}
	if err := c.Start(); err != nil {
		return out, fmt.Errorf("worker: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { in.Close() })
	defer stop()
	sent := json.NewEncoder(in).Encode(order{Workload: j.name, Device: j.device.Index, Name: j.device.Name, Validate: j.validate, Profile: j.profile, Cache: j.cache, Rounds: j.measure.Rounds, Time: j.measure.Time, Limit: j.measure.Limit, Step: j.step, Steps: j.steps})
	failed := c.Wait()
	if ctx.Err() != nil {
		return out, bench.ErrInterrupted
	}
	var a answer
	if err := json.Unmarshal(answered.Bytes(), &a); err != nil {
		return out, fmt.Errorf("worker: no answer: %w", errors.Join(failed, sent, err))
	}
	if a.Error != "" {
		return out, fmt.Errorf("worker: %s", a.Error)
	}
	if failed != nil {
		return out, fmt.Errorf("worker: %w", failed)
	}
	return a.outcome, nil
}
