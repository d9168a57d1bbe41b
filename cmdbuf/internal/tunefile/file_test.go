package tunefile_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf/internal/tunefile"
	"vkcompute/shaders"
)

func device(name string) *tunefile.Device {
	return &tunefile.Device{Name: name, Key: sha256.Sum256([]byte(name))}
}

var sample = shaders.Tuning{Groups: 24, Reads: shaders.Scattered, Workgroup: 64, MatMul: shaders.Tile{Operands: shaders.StagedOperands, Rows: 8}}

func encoded(t testing.TB) []byte {
	b, err := device("one").Encode(sample, "by a test")
	require.NoError(t, err)
	return b
}

func TestRoundTrip(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "made", "anew")
	d := device("one")
	_, err := d.Read(folder)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, d.Write(folder, shaders.Tuning{}, ""))
	require.NoError(t, d.Write(folder, sample, "by a test"), "in place of the other")
	f, err := d.Read(folder)
	require.NoError(t, err)
	require.Equal(t, sample, f.Tuning)
	require.Equal(t, "by a test", f.Comment)
	require.Equal(t, "one", f.Device)
	list, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, list, 1, "nothing is left beside it")
	require.Contains(t, string(encoded(t)), `"scattered"`, "people read it")
	_, err = d.Encode(shaders.Tuning{Reads: shaders.Scattered + 1}, "")
	require.ErrorIs(t, err, shaders.ErrTuning)

	_, err = device("other").Read(folder)
	require.ErrorIs(t, err, fs.ErrNotExist, "each has its own")
	require.NoError(t, os.Rename(d.Path(folder), device("other").Path(folder)))
	_, err = device("other").Read(folder)
	require.ErrorIs(t, err, tunefile.ErrFile)
	require.ErrorContains(t, err, `of "one"`)
}

// A file that was cut short or changed anywhere is refused.
func TestDamageAtEveryByte(t *testing.T) {
	good := encoded(t)
	for i := range good {
		_, err := device("one").Decode(good[:i])
		require.ErrorIs(t, err, tunefile.ErrFile, "cut at %d", i)
		for _, flip := range []byte{1, 0x20, 0x80} {
			bad := bytes.Clone(good)
			bad[i] ^= flip
			_, err := device("one").Decode(bad)
			require.ErrorIs(t, err, tunefile.ErrFile, "byte %d ^ %#x", i, flip)
		}
	}
	_, err := device("one").Decode(append(bytes.Clone(good), '\n'))
	require.ErrorIs(t, err, tunefile.ErrFile)
	_, err = device("one").Decode(make([]byte, 1<<20))
	require.ErrorIs(t, err, tunefile.ErrFile)
}

// seal makes a file of a body, with the checksum it should have.
func seal(body string) []byte {
	return fmt.Appendf(nil, "vkcompute tuning 1\n%x\n%s", sha256.Sum256([]byte(body)), body)
}

// The checksum is no secret: what was sealed by hand is read with care all the same.
func TestSealedByHand(t *testing.T) {
	_, body, _ := bytes.Cut(encoded(t)[len("vkcompute tuning 1\n"):], []byte("\n"))
	good := string(body)
	_, err := device("one").Decode(seal(good))
	require.NoError(t, err)
	for name, bad := range map[string]string{
		"nothing":          "",
		"no JSON":          "groups: 24",
		"a list":           "[]",
		"another key":      strings.Replace(good, `"key": "`, `"key": "0`, 1),
		"an unknown value": strings.Replace(good, `"tuning": {`, `"tuning": {"Colour": 1,`, 1),
		"a negative":       strings.Replace(good, "24", "-24", 1),
		"a fraction":       strings.Replace(good, "24", "2.4", 1),
		"too large":        strings.Replace(good, "24", "24000000000", 1),
		"an unknown word":  strings.Replace(good, "scattered", "sideways", 1),
		"two values":       good + good,
	} {
		require.NotEqual(t, good, bad, name)
		_, err := device("one").Decode(seal(bad))
		require.ErrorIs(t, err, tunefile.ErrFile, name)
	}
}

// A folder that cannot be written, or a file that is a folder, is an error.
func TestNowhereToWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Error(t, device("one").Write(file, sample, ""))
	folder := t.TempDir()
	require.NoError(t, os.Mkdir(device("one").Path(folder), 0o700))
	require.Error(t, device("one").Write(folder, sample, ""))
	list, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, list, 1, "what was written beside it is gone")
	_, err = device("one").Read(folder)
	require.Error(t, err)
}

// FuzzDecode reads any body in a file whose checksum is right; what is accepted can be
// written and read again.
func FuzzDecode(f *testing.F) {
	_, body, _ := bytes.Cut(encoded(f)[len("vkcompute tuning 1\n"):], []byte("\n"))
	f.Add(string(body))
	f.Add("{}")
	f.Fuzz(func(t *testing.T, body string) {
		file, err := device("one").Decode(seal(body))
		if err != nil {
			require.ErrorIs(t, err, tunefile.ErrFile)
			return
		}
		b, err := device("one").Encode(file.Tuning, file.Comment)
		require.NoError(t, err)
		again, err := device("one").Decode(b)
		require.NoError(t, err)
		require.Equal(t, file.Tuning, again.Tuning)
	})
}
