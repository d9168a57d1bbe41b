package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// output is where a result goes: standard output or a file. A file appears whole or not
// at all: it is written beside its place and renamed.
type output struct {
	path string
	out  io.Writer
}

// check fails early for a file that could not be written, rather than after minutes of
// measuring.
func (o output) check() error {
	if o.path == "" {
		return nil
	}
	if info, err := os.Stat(o.path); err == nil && info.IsDir() {
		return fmt.Errorf("output %s: want a file, it is a folder", o.path)
	}
	if special(o.path) {
		return nil
	}
	f, err := o.beside()
	if err != nil {
		return err
	}
	f.Close()
	return os.Remove(f.Name())
}

// special tells a device or a pipe, which is written in place: there is nothing to replace.
func special(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular()
}

func (o output) beside() (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(o.path), "."+filepath.Base(o.path)+".*")
	if err != nil {
		return nil, fmt.Errorf("output %s: %w", o.path, err)
	}
	return f, nil
}

// write calls f with where to write.
func (o output) write(f func(io.Writer) error) error {
	if o.path == "" {
		return f(o.out)
	}
	if special(o.path) {
		file, err := os.OpenFile(o.path, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("output: %w", err)
		}
		return finish(o.path, file, f)
	}
	file, err := o.beside()
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // fails once it is renamed
	if err := file.Chmod(0o644); err != nil {
		file.Close()
		return fmt.Errorf("output %s: %w", o.path, err)
	}
	if err := finish(o.path, file, f); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), o.path); err != nil {
		return fmt.Errorf("output %s: %w", o.path, err)
	}
	return nil
}

// finish writes and closes; a full disk may show at either, or at the flush between.
func finish(path string, file *os.File, f func(io.Writer) error) error {
	err := f(file)
	if err == nil {
		if info, serr := file.Stat(); serr == nil && info.Mode().IsRegular() {
			err = file.Sync()
		}
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("output %s: %w", path, err)
	}
	return nil
}
