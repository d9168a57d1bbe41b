package builds

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The Go of the whole module has the right types on other systems, those without a C
// compiler here included: names that come from C are taken on trust. That the C is right
// there, and that anything runs, this does not show.
func TestTypesOnOtherSystems(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the standard library for each system")
	}
	for _, system := range []string{"windows/amd64", "darwin/arm64", "linux/arm64", "freebsd/amd64"} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			goos, goarch, _ := strings.Cut(system, "/")
			own := 0
			c := checker{goarch: goarch, done: map[string]*types.Package{"unsafe": types.Unsafe}}
			for _, p := range list(t, []string{"GOOS=" + goos, "GOARCH=" + goarch, "CGO_ENABLED=1"}) {
				c.check(t, p)
				if p.own() {
					own++
				}
			}
			require.Greater(t, own, 20)
			require.NotNil(t, c.done["vkcompute/cmdbuf"])
		})
	}
}

// A mistake on one system alone is found.
func TestTypesAreChecked(t *testing.T) {
	c := checker{goarch: "amd64"}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "wrong.go", "package wrong\nfunc f() int { return \"text\" }", 0)
	require.NoError(t, err)
	require.Len(t, c.types("wrong", set, []*ast.File{f}, false, c), 1)
}

// checker has the packages that were checked, by import path.
type checker struct {
	goarch string
	done   map[string]*types.Package
}

// Import is for types.Config; check replaces what vendoring renames.
func (c checker) Import(path string) (*types.Package, error) { return c.done[path], nil }

// renamed is a checker as one package sees it.
type renamed struct {
	checker
	names map[string]string
}

func (r renamed) Import(path string) (*types.Package, error) {
	if to, ok := r.names[path]; ok {
		path = to
	}
	return r.checker.Import(path)
}

func (c checker) check(t *testing.T, p *pkg) {
	t.Helper()
	if p.ImportPath == "unsafe" {
		return
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range append(p.GoFiles[:len(p.GoFiles):len(p.GoFiles)], p.CgoFiles...) {
		f, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, f)
	}
	errs := c.types(p.ImportPath, set, files, !p.own(), renamed{c, p.ImportMap})
	if !p.own() {
		return
	}
	for _, err := range errs {
		if !aboutC(t, err) {
			t.Error(err)
		}
	}
}

// aboutC tells whether an error comes of not knowing the types, sizes and values that are
// C's.
func aboutC(t *testing.T, err error) bool {
	e, ok := err.(types.Error)
	if !ok {
		return false
	}
	if strings.Contains(e.Msg, "invalid type") || strings.Contains(e.Msg, "duplicate key unknown") {
		return true
	}
	at := e.Fset.Position(e.Pos)
	text, err := os.ReadFile(at.Filename)
	require.NoError(t, err)
	return strings.Contains(strings.Split(string(text), "\n")[at.Line-1], "unsafe.Sizeof(C.")
}

// types checks the files of one package, with or without what is inside its functions.
func (c checker) types(path string, set *token.FileSet, files []*ast.File, outside bool, importer types.Importer) (errs []error) {
	config := types.Config{
		FakeImportC: true, IgnoreFuncBodies: outside, Importer: importer, Sizes: types.SizesFor("gc", c.goarch),
		Error: func(err error) { errs = append(errs, err) },
	}
	p, _ := config.Check(path, set, files, nil)
	if c.done != nil {
		c.done[path] = p
	}
	return errs
}
