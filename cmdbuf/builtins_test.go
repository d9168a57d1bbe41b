package cmdbuf

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/shaders"
)

// exported lists the exported variables of a file that are initialised by a call of one
// of these functions.
func exported(f *ast.File, makers ...string) (names []string) {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			for i, value := range v.Values {
				call, ok := value.(*ast.CallExpr)
				if !ok || !v.Names[i].IsExported() {
					continue
				}
				if f, ok := call.Fun.(*ast.Ident); ok && slices.Contains(makers, f.Name) {
					names = append(names, v.Names[i].Name)
				}
			}
		}
	}
	return names
}

// Every built-in kernel can be named by a saved graph, under a name of its own: a saved
// graph finds them by name in shaders.Builtins.
func TestBuiltinsAreComplete(t *testing.T) {
	set := token.NewFileSet()
	files, err := filepath.Glob("../shaders/*.go")
	require.NoError(t, err)
	want := map[string]bool{}
	for _, name := range files {
		f, err := parser.ParseFile(set, name, nil, 0)
		require.NoError(t, err)
		for _, name := range exported(f, "builtin", "operation") {
			want[name] = true
		}
	}
	require.Greater(t, len(want), 50)
	list, err := parser.ParseFile(set, "../shaders/builtin.go", nil, 0)
	require.NoError(t, err)
	have := map[string]bool{}
	for _, d := range list.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "Builtins" {
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if i, ok := n.(*ast.Ident); ok && i.Name != "Kernel" {
					have[i.Name] = true
				}
				return true
			})
		}
	}
	require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(have)), "shaders.Builtins lists the built-in kernels")

	names := map[string]bool{}
	for _, k := range shaders.Builtins() {
		require.NoError(t, k.Err())
		require.False(t, names[k.Name], "two kernels are named %s", k.Name)
		names[k.Name] = true
	}
}
