package main

import (
	"context"
	"strings"
)

// llvmpipeSetup takes away what hides the cost of a launch on Mesa's CPU driver. It hands
// each launch to a pool of threads, whose waking costs ten times the launch; without
// the threads it runs on the one that submits, and the process is pinned to a core. glibc
// gives freed memory back to the system and fetches it again, page by page, when the
// driver's allocations (its shader cache above all) happen to lie at the top of the heap.
// 32 MiB is the largest mmap threshold that glibc takes.
func llvmpipeSetup() []string {
	return []string{"LP_NUM_THREADS=0", "MALLOC_MMAP_THRESHOLD_=33554432", "MALLOC_TRIM_THRESHOLD_=1073741824"}
}

// alone makes the run of a workload whose figures the driver's own threads would hide: on
// Mesa's CPU driver in a worker without them, elsewhere in this process.
func alone(here func(context.Context, job) (outcome, error)) func(context.Context, job) (outcome, error) {
	return func(ctx context.Context, j job) (outcome, error) {
		if !isLLVMpipe(&j.device) {
			return here(ctx, j)
		}
		settings := llvmpipeSetup()
		out, err := startWorker(ctx, j, settings)
		if err != nil {
			return out, err
		}
		if out.Setup != "" {
			settings = append([]string{out.Setup}, settings...)
		}
		out.Setup = "in a process of its own, " + strings.Join(settings, ", ")
		return out, nil
	}
}
