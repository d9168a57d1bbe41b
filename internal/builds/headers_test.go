package builds

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Users need a C compiler, and neither Vulkan's headers nor a window system's. Headers
// that end the compilation stand before the system's, if there are any there.
func TestNoHeadersOfVulkanOrX11(t *testing.T) {
	poison := t.TempDir()
	for _, name := range []string{"vulkan/vulkan.h", "vulkan/vulkan_core.h", "vulkan/vk_platform.h", "X11/Xlib.h", "xcb/xcb.h", "wayland-client.h", "GL/gl.h"} {
		file := filepath.Join(poison, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte("#error this header is not to be used\n"), 0o644))
	}
	compiler := strings.Fields(string(run(t, ".", nil, "go", "env", "CC")))
	preprocess := func(dir, file string, flags ...string) ([]byte, error) {
		args := append(append(compiler[1:len(compiler):len(compiler)], "-M"), flags...)
		// Before the system's folders, after those of the package.
		cmd := exec.Command(compiler[0], append(args, "-isystem", poison, file)...)
		cmd.Dir = dir
		return cmd.CombinedOutput()
	}
	scratch := t.TempDir()
	write := func(text string) string {
		file := filepath.Join(scratch, "preamble.c")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		return file
	}
	for _, header := range []string{"vulkan/vulkan.h", "X11/Xlib.h"} {
		out, err := preprocess(scratch, write("#include <"+header+">\n"))
		require.Error(t, err, "a header that is there must be seen")
		require.Contains(t, string(out), "this header is not to be used")
	}

	// What cgo makes of the package's own functions declares no header of others.
	require.NoError(t, os.WriteFile(filepath.Join(scratch, "_cgo_export.h"), nil, 0o644))
	files := 0
	for _, p := range list(t, nil) {
		if p.Standard || len(p.CgoFiles)+len(p.CFiles) == 0 {
			continue
		}
		for _, flag := range p.CgoLDFLAGS {
			require.NotRegexp(t, `^-l(X|xcb|wayland|GL|vulkan)`, flag, p.ImportPath)
		}
		flags := append(append([]string{"-I", p.Dir, "-I", scratch}, p.CgoCPPFLAGS...), p.CgoCFLAGS...)
		check := func(file string) {
			files++
			out, err := preprocess(p.Dir, file, flags...)
			require.NoError(t, err, "%s: %s\n%s", p.ImportPath, file, out)
		}
		for _, name := range p.CFiles {
			check(filepath.Join(p.Dir, name))
		}
		for _, name := range p.CgoFiles {
			check(write(preamble(t, filepath.Join(p.Dir, name))))
		}
	}
	require.Greater(t, files, 10, "there is C to look at")
}

// preamble is the comment above import "C", without the lines that are cgo's.
func preamble(t *testing.T, file string) string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
	require.NoError(t, err)
	for _, d := range f.Decls {
		d := d.(*ast.GenDecl) // imports are
		for _, s := range d.Specs {
			if s.(*ast.ImportSpec).Path.Value != `"C"` || d.Doc == nil {
				continue
			}
			var c strings.Builder
			for line := range strings.Lines(d.Doc.Text()) {
				if !strings.HasPrefix(strings.TrimSpace(line), "#cgo") {
					c.WriteString(line)
				}
			}
			return c.String()
		}
	}
	return ""
}
