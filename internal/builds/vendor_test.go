package builds

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const program = `package main

import (
	"fmt"

	"vkcompute/cmdbuf"
	"vkcompute/shaders"
	"vkcompute/vk"
)

func main() {
	fmt.Println(vk.Devices())
	fmt.Println(cmdbuf.NewStream, shaders.Add.Name)
}
`

// A program of somebody else's, with everything it needs in its vendor folder. That holds
// Go packages only, and the binding's C headers are not in any that the library imports.
func TestVendoredBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the binding anew")
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := t.TempDir()
	copyFile := func(name string, change func(string) string) {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(change(string(text))), 0o644))
	}
	copyFile("go.mod", func(s string) string {
		return strings.Replace(s, "module vkcompute\n", "module example.org/program\n", 1)
	})
	copyFile("go.sum", func(s string) string { return s })
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o644))
	// Whatever is not here already is not needed.
	offline := []string{"GOPROXY=off", "GOWORK=off"}
	run(t, dir, offline, "go", "mod", "edit", "-require=vkcompute@v0.0.0", "-replace=vkcompute="+root)
	run(t, dir, append(offline, "GOFLAGS=-mod=mod"), "go", "mod", "vendor")
	// -trimpath lets the next run find what this one compiled; slow C is compiled faster.
	run(t, dir, append(offline, "GOFLAGS=-mod=vendor", "CGO_CFLAGS=-O0"), "go", "build", "-trimpath", "-o", filepath.Join(dir, "program"), ".")
}
