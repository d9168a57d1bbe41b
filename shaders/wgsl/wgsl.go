// Package wgsl makes modules of WGSL, the shading language of WebGPU, within the
// process: no compiler has to be installed. It is apart from package shaders so
// that only programs that use it carry a compiler, github.com/gogpu/naga.
//
//	double, err := wgsl.Kernel("double", source)
//	err = stream.Launch(double, x, y)
//
// @group(0) only; @binding(0) is the info, `var<storage, read> info: array<u32>`,
// where the shader wants it; tensors are storage variables, `read` where that is
// true, because barriers are planned from it.
//
// A wrong program gives an *Error with line and column, which matches ErrWGSL.
// Compile keeps nothing and may be called by any number of goroutines.
package wgsl

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gogpu/naga"

	"vkcompute/shaders"
)

// ErrWGSL matches every *Error.
var ErrWGSL = errors.New("wgsl does not compile")

// Error tells where a program is wrong. Line and Column count from 1, columns in
// characters; both are 0 where the compiler does not know.
type Error struct {
	Line, Column int
	Message      string
	Text         string // the line
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("wgsl: %s", e.Message)
	}
	return fmt.Sprintf("wgsl: line %d, column %d: %s\n\t%s", e.Line, e.Column, e.Message, e.Text)
}

// Is matches ErrWGSL.
func (e *Error) Is(target error) bool { return target == ErrWGSL }

// Compile makes a module of WGSL.
func Compile(source string) (m *shaders.Module, err error) {
	// A compiler that gives up must not take the program with it.
	defer func() {
		if r := recover(); r != nil {
			m, err = nil, &Error{Message: fmt.Sprintf("the compiler failed: %v", r)}
		}
	}()
	if at := invalidUTF8(source); at >= 0 {
		line := 1 + strings.Count(source[:at], "\n")
		return nil, locate(source, line, 1+at-(strings.LastIndexByte(source[:at], '\n')+1), "want UTF-8")
	}
	code, err := naga.Compile(source)
	if err != nil {
		return nil, explain(source, err)
	}
	m, err = shaders.Load(code)
	if err != nil {
		return nil, fmt.Errorf("wgsl: what the compiler made: %w", err)
	}
	// The binaries carry no names, which messages are better with.
	for _, found := range binding.FindAllStringSubmatch(source, -1) {
		set, _ := strconv.Atoi(found[1])
		number, _ := strconv.Atoi(found[2])
		for i := range m.Bindings {
			if b := &m.Bindings[i]; b.Name == "" && int(b.Set) == set && int(b.Binding) == number {
				b.Name = found[3]
			}
		}
	}
	return m, nil
}

// Kernel makes a kernel of WGSL, as shaders.Elementwise does of a module.
func Kernel(name, source string, params ...shaders.Param) (*shaders.Kernel, error) {
	m, err := Compile(source)
	if err != nil {
		return nil, err
	}
	return shaders.Elementwise(name, m, params...)
}

func invalidUTF8(s string) int {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return i
			}
		}
	}
	return -1
}

var (
	parsing    = regexp.MustCompile(`line (\d+), column (\d+): (.*)`)
	binding    = regexp.MustCompile(`@group\(\s*(\d+)\s*\)\s*@binding\(\s*(\d+)\s*\)\s*var\s*<[^>]*>\s*([A-Za-z_][A-Za-z_0-9]*)`)
	position   = regexp.MustCompile(`(?:^|[ :])(\d+):(\d+): (.*)`)
	identifier = regexp.MustCompile(`(?:unresolved identifier|unknown function|unknown type|undefined [a-z]+|unresolved type):? '?"?([A-Za-z_][A-Za-z_0-9]*)`)
)

// explain makes an Error of what the compiler says.
func explain(source string, err error) error {
	text := err.Error()
	found := parsing.FindStringSubmatch(text)
	if found == nil {
		found = position.FindStringSubmatch(text)
	}
	if found == nil {
		return &Error{Message: text}
	}
	line, _ := strconv.Atoi(found[1])
	column, _ := strconv.Atoi(found[2])
	// Where a name is at fault the compiler tells where its function begins; the
	// name itself is more use.
	if name := identifier.FindStringSubmatch(found[3]); name != nil {
		if l, c, ok := find(source, line, name[1]); ok {
			line, column = l, c
		}
	}
	return locate(source, line, column, found[3])
}

// find looks for a name from a line on.
func find(source string, from int, name string) (line, column int, ok bool) {
	word := regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`)
	for i, text := range strings.Split(source, "\n") {
		code, _, _ := strings.Cut(text, "//")
		if at := word.FindStringIndex(code); i+1 >= from && at != nil {
			return i + 1, 1 + utf8.RuneCountInString(code[:at[0]]), true
		}
	}
	return 0, 0, false
}

func locate(source string, line, column int, message string) *Error {
	e := &Error{Line: line, Column: column, Message: message}
	if lines := strings.Split(source, "\n"); line >= 1 && line <= len(lines) {
		e.Text = strings.TrimRight(lines[line-1], "\r")
	}
	return e
}
