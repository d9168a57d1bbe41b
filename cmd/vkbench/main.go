package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// Exit statuses.
const (
	good   = 0
	failed = 1
	usage  = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

type commands struct {
	Run        runCommand        `cmd:"" default:"withargs" help:"Measure. The default command."`
	Devices    devicesCommand    `cmd:"" help:"List the devices, what they offer, and which one would be taken."`
	Compare    compareCommand    `cmd:"" help:"Say what became of the figures of one JSON report in another."`
	Report     reportCommand     `cmd:"" help:"Make one HTML page of JSON reports, with plots."`
	Doctor     doctorCommand     `cmd:"" help:"Find out why there is no Vulkan device, or not the right one, and what to do."`
	Graph      graphCommand      `cmd:"" help:"Draw the graph that a workload records, with its barriers and their reasons."`
	Trace      traceCommand      `cmd:"" help:"Write the times of one replay's operations on the device, for chrome://tracing or Perfetto."`
	Replay     replayCommand     `cmd:"" help:"Replay a saved graph on this device: its time, and a digest of what it writes."`
	Tune       tuneCommand       `cmd:"" help:"Measure which workgroups, tiles and ways to read suit this device, and keep it beside the pipeline cache."`
	View       viewCommand       `cmd:"" help:"Show a window in which every frame is one replay of a recorded graph."`
	Completion completionCommand `cmd:"" help:"Write a script that completes this program's words in a shell."`
	Worker     workerCommand     `cmd:"" hidden:"" help:"Measure in a process that was set up for it; started by run."`
}

// streams are what a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
	progress *progress
}

func run(args []string, in io.Reader, out, errOut io.Writer) int {
	var c commands
	parser, err := kong.New(&c,
		kong.Name("vkbench"),
		kong.Description("Measures what computing with Vulkan costs on this machine: launches rebuilt, cached and replayed beside plain C, memory, kernels, and what the device can do at best. Without a command it runs the whole suite."),
		kong.Writers(out, errOut),
	)
	if err != nil {
		fmt.Fprintln(errOut, "vkbench:", err)
		return failed
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(errOut, "vkbench: %v; see vkbench --help\n", err)
		return usage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first interrupt asks; a second one is obeyed by the system.
	context.AfterFunc(ctx, stop)
	s := &streams{in: in, out: out, err: errOut, progress: newProgress(errOut)}
	err = parsed.Run(s, &runContext{ctx}, parser.Model)
	s.progress.clear()
	switch {
	case err == nil:
		return good
	case ctx.Err() != nil:
		fmt.Fprintln(errOut, "vkbench: interrupted")
	case errors.Is(err, errReported):
	default:
		fmt.Fprintln(errOut, "vkbench:", err)
	}
	return failed
}

// runContext carries the context to a command: kong binds concrete types.
type runContext struct{ context.Context }

// errReported fails a command that has said why itself.
var errReported = errors.New("reported")
