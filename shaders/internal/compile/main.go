// Command compile turns the GLSL of package shaders into the SPIR-V that is
// embedded in it. It runs in the package's folder, by go generate.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Flags of glslc and spirv-val. The drift test reads the binaries that these
// make, so a change here changes them all.
var (
	glslcFlags = []string{"--target-env=vulkan1.2", "-O", "-Werror", "-I."}
	valFlags   = []string{"--target-env", "vulkan1.2"}
)

func main() {
	out := "spv"
	if len(os.Args) > 1 {
		out = os.Args[1]
	}
	if err := run(out); err != nil {
		fmt.Fprintln(os.Stderr, "compile:", err)
		os.Exit(1)
	}
}

func run(out string) error {
	sources, err := filepath.Glob("*.comp")
	if err != nil {
		return err
	}
	if len(sources) == 0 {
		return fmt.Errorf("no *.comp here: run it in the folder of package shaders")
	}
	for _, src := range sources {
		bin := filepath.Join(out, strings.TrimSuffix(src, ".comp")+".spv")
		if err := tool("glslc", append(glslcFlags, src, "-o", bin)...); err != nil {
			return err
		}
		if err := tool("spirv-val", append(valFlags, bin)...); err != nil {
			return err
		}
	}
	return nil
}

func tool(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}
