// Command compile turns the GLSL of package scene into the SPIR-V that is embedded in
// it. It runs in the package's folder, by go generate.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	out := "spv"
	if len(os.Args) > 1 {
		out = os.Args[1]
	}
	sources, _ := filepath.Glob("*.comp")
	for _, src := range sources {
		to := filepath.Join(out, strings.TrimSuffix(src, ".comp")+".spv")
		for _, c := range [][]string{{"glslc", "--target-env=vulkan1.2", "-O", "-Werror", src, "-o", to}, {"spirv-val", "--target-env", "vulkan1.2", to}} {
			if text, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "compile: %v: %v\n%s", c, err, text)
				os.Exit(1)
			}
		}
	}
}
