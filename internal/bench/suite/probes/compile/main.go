// Command compile turns the GLSL of package probes into the SPIR-V that is embedded in
// it, a binary for each variant. It runs in the package's folder, by go generate.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"vkcompute/internal/bench/suite/probes/variant"
)

func main() {
	out := "spv"
	if len(os.Args) > 1 {
		out = os.Args[1]
	}
	for _, b := range variant.Binaries() {
		if err := compile(b, filepath.Join(out, b.Name+".spv")); err != nil {
			fmt.Fprintln(os.Stderr, "compile:", err)
			os.Exit(1)
		}
	}
}

func compile(b variant.Binary, to string) error {
	args := []string{"--target-env=vulkan1.2", "-O", "-Werror"}
	for _, d := range b.Defines {
		args = append(args, "-D"+d)
	}
	if err := tool("glslc", append(args, b.Source, "-o", to)...); err != nil {
		return err
	}
	return tool("spirv-val", "--target-env", "vulkan1.2", to)
}

func tool(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, args, err)
	}
	return nil
}
