package tunefile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"vkcompute/shaders"
)

// ErrFile: a file that is not the tuning of this device and version.
var ErrFile = errors.New("not a tuning of this device")

// Device tells a device, with its driver, from all others.
type Device struct {
	// Key is the same in every process, and another one on another device or driver.
	Key [sha256.Size]byte
	// Name is for people.
	Name string
}

// File is what a file holds.
type File struct {
	Device string `json:"device"`
	Key    string `json:"key"`
	// Comment says where the tuning comes from.
	Comment string         `json:"comment,omitempty"`
	Tuning  shaders.Tuning `json:"tuning"`
}

const (
	magic    = "vkcompute tuning 1\n"
	maxBytes = 1 << 16
)

// Path is where the tuning of a device lies in a folder.
func (d *Device) Path(folder string) string {
	return filepath.Join(folder, fmt.Sprintf("tuning-%x.txt", d.Key[:8]))
}

// Encode writes a file into memory.
func (d *Device) Encode(t shaders.Tuning, comment string) ([]byte, error) {
	body, err := json.MarshalIndent(File{Device: d.Name, Key: hex.EncodeToString(d.Key[:]), Comment: comment, Tuning: t}, "", "  ")
	if err != nil {
		return nil, err
	}
	body = append(body, '\n')
	return fmt.Appendf(nil, "%s%x\n%s", magic, sha256.Sum256(body), body), nil
}

// Decode reads what Encode wrote for the same device.
func (d *Device) Decode(data []byte) (f File, err error) {
	wrong := func(format string, a ...any) (File, error) {
		return File{}, fmt.Errorf("%w: %s", ErrFile, fmt.Sprintf(format, a...))
	}
	if len(data) > maxBytes {
		return wrong("want at most %d bytes", maxBytes)
	}
	rest, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok {
		return wrong("want %q at its beginning: it is of another version, or something else", magic)
	}
	sum, body, ok := bytes.Cut(rest, []byte("\n"))
	if !ok {
		return wrong("cut short at %d bytes", len(data))
	}
	if string(sum) != fmt.Sprintf("%x", sha256.Sum256(body)) {
		return wrong("damaged: the checksum of its %d bytes is another", len(body))
	}
	j := json.NewDecoder(bytes.NewReader(body))
	j.DisallowUnknownFields() // or a misspelt value would be taken for the default
	if err := j.Decode(&f); err != nil {
		return wrong("%v", err)
	}
	if _, err := j.Token(); err != io.EOF {
		return wrong("more than one value")
	}
	if want := hex.EncodeToString(d.Key[:]); f.Key != want {
		return wrong("want the key %s of %q, found %.80q of %.80q", want, d.Name, f.Key, f.Device)
	}
	return f, nil
}

// Read reads the tuning of a device from a folder.
func (d *Device) Read(folder string) (File, error) {
	f, err := os.Open(d.Path(folder))
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return File{}, err
	}
	return d.Decode(data)
}

// Write replaces the tuning of a device in a folder, which is made if need be.
func (d *Device) Write(folder string, t shaders.Tuning, comment string) (err error) {
	data, err := d.Encode(t, comment)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, "tuning-*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync() // or a crash may leave the new name with nothing in it
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), d.Path(folder))
}
