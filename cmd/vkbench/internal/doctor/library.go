package doctor

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// findLibrary is where the dynamic linker finds a library by name, or "". A library of
// another architecture is passed over, as the linker does.
func (e *examination) findLibrary(name string) string {
	other := ""
	for _, dir := range e.folders {
		p := filepath.Join(dir, name)
		if !e.exists(p) {
			continue
		}
		if err := e.architecture(p); err != nil {
			other = p
			continue
		}
		return p
	}
	return other
}

var machines = map[string]struct {
	class   elf.Class
	machine elf.Machine
}{
	"amd64": {elf.ELFCLASS64, elf.EM_X86_64}, "386": {elf.ELFCLASS32, elf.EM_386},
	"arm64": {elf.ELFCLASS64, elf.EM_AARCH64}, "riscv64": {elf.ELFCLASS64, elf.EM_RISCV},
}

func (e *examination) architecture(p string) error {
	f, err := e.openLibrary(p)
	if err != nil {
		return err
	}
	defer f.Close()
	if want, ok := machines[e.Machine]; ok && (f.Class != want.class || f.Machine != want.machine) {
		return fmt.Errorf("it is for another processor: %v, want %v", f.Machine, want.machine)
	}
	return nil
}

func (e *examination) openLibrary(p string) (*elf.File, error) {
	f, err := elf.Open(e.resolve(p))
	var format *elf.FormatError
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, errors.New("it may not be read")
	case errors.As(err, &format):
		return nil, errors.New("it is no shared library")
	}
	if info, serr := os.Stat(e.resolve(p)); serr == nil && info.Size() == 0 {
		return nil, errors.New("it is an empty file")
	}
	return nil, errors.New("it is no shared library")
}

// loads reports why a library cannot be loaded: it or one that it needs is missing or is
// none. via are those that need it.
func (e *examination) loads(p string, via []string, depth int) error {
	if err := e.architecture(p); err != nil {
		return err
	}
	f, err := e.openLibrary(p)
	if err != nil {
		return err
	}
	defer f.Close()
	needed, err := f.DynString(elf.DT_NEEDED)
	if err != nil || depth > 8 {
		return nil // nothing is said of what it needs
	}
	var own []string
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		list, _ := f.DynString(tag)
		for _, l := range list {
			for _, d := range filepath.SplitList(l) {
				own = append(own, strings.NewReplacer("$ORIGIN", filepath.Dir(p), "${ORIGIN}", filepath.Dir(p)).Replace(d))
			}
		}
	}
	var missing []string
	for _, n := range needed {
		if slices.Contains(via, n) || strings.HasPrefix(n, "ld-linux") || strings.HasPrefix(n, "ld-musl") {
			continue
		}
		at := ""
		for _, d := range own {
			if q := filepath.Join(d, n); e.exists(q) {
				at = q
				break
			}
		}
		if at == "" {
			at = e.findLibrary(n)
		}
		if at == "" {
			missing = append(missing, n)
			continue
		}
		via = append(via, n)
		if err := e.loads(at, via, depth+1); err != nil {
			return fmt.Errorf("%s, which it needs: %w", at, err)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("it needs %s, which cannot be found", strings.Join(missing, ", "))
	}
	return nil
}
