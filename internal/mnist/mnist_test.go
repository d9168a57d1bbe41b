package mnist_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/mnist"
	files "vkcompute/testdata/mnist"
)

func idx(data []byte, shape ...int) []byte {
	b := []byte{0, 0, 8, byte(len(shape))}
	for _, e := range shape {
		b = binary.BigEndian.AppendUint32(b, uint32(e))
	}
	return append(b, data...)
}

func zipped(data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(data)
	z.Close()
	return b.Bytes()
}

func TestReadIDX(t *testing.T) {
	good := idx([]byte{1, 2, 3, 4, 5, 6}, 2, 3)
	for _, data := range [][]byte{good, zipped(good)} {
		shape, found, err := mnist.ReadIDX(bytes.NewReader(data))
		require.NoError(t, err)
		require.Equal(t, []int{2, 3}, shape)
		require.Equal(t, []byte{1, 2, 3, 4, 5, 6}, found)
		for n := range data {
			_, _, err := mnist.ReadIDX(bytes.NewReader(data[:n]))
			require.ErrorIs(t, err, mnist.ErrFile, "%d bytes", n)
		}
	}
	for _, bad := range [][]byte{append(bytes.Clone(good), 7), idx(nil, 1<<31, 1<<31), idx(nil, 1<<28, 2), {0, 0, 9, 1, 0, 0, 0, 0}, idx(nil), idx([]byte{1}, 1, 1, 1, 1, 1), zipped([]byte("no"))} {
		_, _, err := mnist.ReadIDX(bytes.NewReader(bad))
		require.ErrorIs(t, err, mnist.ErrFile)
	}
}

func TestLoad(t *testing.T) {
	train, test, err := mnist.Load(files.Files)
	require.NoError(t, err)
	require.Equal(t, 2000, train.Count)
	require.Equal(t, 500, test.Count)
	require.Equal(t, 784, train.Pixels)
	var seen [mnist.Classes]int
	for _, l := range train.Labels {
		seen[l]++
	}
	for digit, n := range seen {
		require.Greater(t, n, 150, "digit %d", digit)
	}

	dir := func(images, labels []byte) fstest.MapFS {
		return fstest.MapFS{
			"train-images-idx3-ubyte": {Data: images}, "train-labels-idx1-ubyte.gz": {Data: zipped(labels)},
			"t10k-images-idx3-ubyte": {Data: idx([]byte{1, 2}, 1, 2, 1)}, "t10k-labels-idx1-ubyte": {Data: idx([]byte{3}, 1)},
		}
	}
	train, _, err = mnist.Load(dir(idx([]byte{1, 2, 3, 4}, 2, 1, 2), idx([]byte{0, 9}, 2)))
	require.NoError(t, err)
	require.Equal(t, &mnist.Set{Count: 2, Pixels: 2, Images: []byte{1, 2, 3, 4}, Labels: []byte{0, 9}}, train)
	for message, d := range map[string]fstest.MapFS{
		"label 1 is 10":         dir(idx([]byte{1, 2, 3, 4}, 2, 1, 2), idx([]byte{0, 10}, 2)),
		"want 2 for as many":    dir(idx([]byte{1, 2, 3, 4}, 2, 1, 2), idx([]byte{0}, 1)),
		"want those of images":  dir(idx([]byte{1, 2, 3, 4}, 2, 2), idx([]byte{0, 1}, 2)),
		"images of 4 pixels":    dir(idx([]byte{1, 2, 3, 4}, 1, 2, 2), idx([]byte{0}, 1)),
		"does not exist":        {},
		"it begins with 01 02 ": dir([]byte{1, 2, 3, 4}, idx([]byte{0}, 1)),
	} {
		_, _, err := mnist.Load(d)
		require.ErrorContains(t, err, message)
	}
}

func FuzzReadIDX(f *testing.F) {
	f.Add(idx([]byte{1, 2, 3, 4, 5, 6}, 2, 3))
	f.Add(zipped(idx([]byte{1, 2}, 2)))
	f.Add(idx(nil, 0, 1<<20))
	f.Fuzz(func(t *testing.T, data []byte) {
		shape, found, err := mnist.ReadIDX(bytes.NewReader(data))
		if err != nil {
			require.ErrorIs(t, err, mnist.ErrFile)
			return
		}
		total := 1
		for _, e := range shape {
			total *= e
		}
		require.Len(t, found, total)
	})
}
