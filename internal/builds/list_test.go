package builds

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pkg is what go list says of a package.
type pkg struct {
	ImportPath, Name, Dir              string
	Standard                           bool
	Module                             *struct{ Main bool }
	GoFiles, CgoFiles, CFiles, HFiles  []string
	CgoCFLAGS, CgoCPPFLAGS, CgoLDFLAGS []string
	Imports                            []string
	ImportMap                          map[string]string
	Error                              *struct{ Err string }
}

func (p *pkg) own() bool { return p.Module != nil && p.Module.Main }

// list runs go list on all packages of the module and what they import, in the order in
// which they can be built.
func list(t *testing.T, env []string, flags ...string) []*pkg {
	t.Helper()
	out := run(t, "../..", env, "go", append(append([]string{"list", "-deps", "-json"}, flags...), "./...")...)
	var packages []*pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &pkg{}
		err := d.Decode(p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		require.NoError(t, err)
		require.Nil(t, p.Error, p.ImportPath)
		packages = append(packages, p)
	}
}

// run returns the standard output.
func run(t *testing.T, dir string, env []string, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(name, args...)
	var out, message bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), env...), &out, &message
	require.NoError(t, cmd.Run(), "%s %s\n%s", name, strings.Join(args, " "), message.String())
	return out.Bytes()
}
