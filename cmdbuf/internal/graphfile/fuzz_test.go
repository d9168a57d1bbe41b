package graphfile_test

import (
	"bytes"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf/internal/graphfile/graphfiletest"
)

func crc(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// check reads anything; what is accepted is the one way to write it.
func check(t *testing.T, b []byte) {
	f, c, err := decode(bytes.NewReader(b))
	if err != nil {
		requireFileError(t, err, "reading")
		return
	}
	again, err := encode(f, c)
	require.NoError(t, err)
	require.True(t, bytes.Equal(again, b[:min(len(again), len(b))]), "what was read is written otherwise")
}

// FuzzFile reads any bytes.
func FuzzFile(f *testing.F) {
	file, c := sample()
	b, err := encode(file, c)
	require.NoError(f, err)
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add(graphfiletest.Seal(nil))
	f.Fuzz(func(t *testing.T, b []byte) { check(t, b) })
}

// FuzzSections reads any sections, in a file whose checksums are right.
func FuzzSections(f *testing.F) {
	file, c := sample()
	b, err := encode(file, c)
	require.NoError(f, err)
	list, err := graphfiletest.Split(b)
	require.NoError(f, err)
	body := func(i int) []byte { return list[i].Body }
	f.Add(body(0), body(1), body(2), body(3), body(4), body(5), body(6), body(7), body(8), body(9), body(10))
	f.Fuzz(func(t *testing.T, note, code, kern, memo, layo, view, para, oper, host, first, second []byte) {
		bodies := [][]byte{note, code, kern, memo, layo, view, para, oper, host, first, second}
		for _, n := range []int{len(bodies), len(bodies) - 1, len(bodies) - 2} {
			var list []graphfiletest.Section
			for i, b := range bodies[:n] {
				name := "init"
				if i < len(graphfiletest.Names) {
					name = graphfiletest.Names[i]
				}
				list = append(list, graphfiletest.Section{Name: name, Body: b})
			}
			check(t, graphfiletest.Seal(list))
		}
	})
}
