package llm_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/llm"
)

type form uint8

const (
	old form = iota
	oldOwnClassifier
	version1
	version1OwnClassifier
)

// write is the model in a form of llama2.c.
func write(m *llm.Model, f form) []byte {
	var b bytes.Buffer
	put := func(v any) { binary.Write(&b, binary.LittleEndian, v) }
	vocab := int32(m.Vocab)
	if f == oldOwnClassifier {
		vocab = -vocab
	}
	if f >= version1 {
		put(uint32(0x616b3432))
		put(int32(1))
	}
	put([]int32{int32(m.Dim), int32(m.Hidden), int32(m.Shape.Layers), int32(m.Heads), int32(m.Groups), vocab, int32(m.Context)})
	layers := func(part func(l *llm.Layer) []float32) {
		for i := range m.Layers {
			put(part(&m.Layers[i]))
		}
	}
	norm := func(l *llm.Layer) []float32 { return l.Norm }
	mlpNorm := func(l *llm.Layer) []float32 { return l.MLPNorm }
	attention := func() {
		layers(func(l *llm.Layer) []float32 { return l.Query })
		layers(func(l *llm.Layer) []float32 { return l.Key })
		layers(func(l *llm.Layer) []float32 { return l.Value })
		layers(func(l *llm.Layer) []float32 { return l.Output })
	}
	perceptron := func() {
		layers(func(l *llm.Layer) []float32 { return l.Gate })
		layers(func(l *llm.Layer) []float32 { return l.Down })
		layers(func(l *llm.Layer) []float32 { return l.Up })
	}
	if f >= version1 {
		shared := byte(1)
		if f == version1OwnClassifier {
			shared = 0
		}
		put(shared)
		b.Write(make([]byte, 256-b.Len()))
		layers(norm)
		layers(mlpNorm)
		put(m.Norm)
		put(m.Embedding)
		attention()
		perceptron()
	} else {
		put(m.Embedding)
		layers(norm)
		attention()
		layers(mlpNorm)
		perceptron()
		put(m.Norm)
		put(make([]float32, m.Context*m.HeadSize()))
	}
	if f == oldOwnClassifier || f == version1OwnClassifier {
		put(m.Classifier)
	}
	return b.Bytes()
}

func read(data []byte) (*llm.Model, error) {
	return llm.ReadModel(bytes.NewReader(data), int64(len(data)))
}

func TestCheckpoints(t *testing.T) {
	for _, f := range []form{old, oldOwnClassifier, version1, version1OwnClassifier} {
		want := seeded(t, tiny)
		if f == oldOwnClassifier || f == version1OwnClassifier {
			want.Classifier = append([]float32(nil), want.Embedding...)
			want.Classifier[3]++
		}
		data := write(want, f)
		m, err := read(data)
		require.NoError(t, err)
		require.Equal(t, want, m, "form %d", f)
		for _, bad := range [][]byte{nil, data[:20], data[:100], data[:len(data)-1], append(bytes.Clone(data), 0)} {
			_, err := read(bad)
			require.ErrorIs(t, err, llm.ErrFile)
		}
		short := data[:len(data)-4]
		_, err = llm.ReadModel(bytes.NewReader(short), int64(len(data)))
		require.ErrorIs(t, err, llm.ErrFile, "a file that shrank")
	}
	data := write(seeded(t, tiny), old)
	binary.LittleEndian.PutUint32(data[400:], math.Float32bits(float32(math.NaN())))
	_, err := read(data)
	require.ErrorContains(t, err, "embedding is NaN, want a number")
	data = write(seeded(t, tiny), version1)
	data[4] = 2
	_, err = read(data)
	require.ErrorContains(t, err, "version 2, want 1")

	path := filepath.Join(t.TempDir(), "model.bin")
	require.NoError(t, os.WriteFile(path, write(seeded(t, tiny), old), 0o644))
	m, err := llm.OpenModel(path)
	require.NoError(t, err)
	require.Equal(t, tiny, m.Shape)
	_, err = llm.OpenModel(path + "x")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A header can ask for anything: nothing is allocated that the file does not hold.
func FuzzReadModel(f *testing.F) {
	small, err := llm.Seeded(llm.Shape{Dim: 4, Layers: 1, Heads: 2, Groups: 1, Hidden: 3, Vocab: 5, Context: 2}, 1)
	require.NoError(f, err)
	for _, k := range []form{old, oldOwnClassifier, version1, version1OwnClassifier} {
		f.Add(write(small, k))
	}
	f.Add([]byte("24ka"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := read(data)
		if err != nil {
			require.ErrorIs(t, err, llm.ErrFile)
			return
		}
		require.NoError(t, m.Validate())
		require.LessOrEqual(t, 4*m.Parameters(), len(data))
	})
}

// tokenizer is a file with these pieces.
func tokenizer(longest uint32, pieces ...string) []byte {
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, longest)
	for i, p := range pieces {
		binary.Write(&b, binary.LittleEndian, float32(-i))
		binary.Write(&b, binary.LittleEndian, uint32(len(p)))
		b.WriteString(p)
	}
	return b.Bytes()
}

func TestTokenizer(t *testing.T) {
	pieces := []string{"<unk>", "<s>", "</s>", " Once", " upon", "<0x0A>", "<0xZZ>", "é"}
	data := tokenizer(8, pieces...)
	k, err := llm.ReadTokenizer(bytes.NewReader(data), len(pieces))
	require.NoError(t, err)
	require.Equal(t, "Once upon\né<0xZZ>", k.Text(llm.Begin, []int{3, 4, 5, 7, 6}), "no space at the beginning, and a byte is a byte")
	require.Equal(t, " upon", k.Text(3, []int{4, llm.Begin, 4}), "a text ends where another begins")
	require.Empty(t, k.Text(3, []int{-1}))
	require.Empty(t, k.Text(3, []int{8}))
	for n := range len(data) {
		_, err := llm.ReadTokenizer(bytes.NewReader(data[:n]), len(pieces))
		require.ErrorIs(t, err, llm.ErrFile, "%d bytes", n)
	}
	_, err = llm.ReadTokenizer(bytes.NewReader(data), len(pieces)-1)
	require.ErrorContains(t, err, "another model's tokenizer")
	_, err = llm.ReadTokenizer(bytes.NewReader(tokenizer(3, pieces...)), len(pieces))
	require.ErrorContains(t, err, "token 0 has 5 bytes, the header says at most 3")
	_, err = llm.ReadTokenizer(bytes.NewReader(tokenizer(1<<30)), 1)
	require.ErrorContains(t, err, "want at most 4096")
}

func FuzzReadTokenizer(f *testing.F) {
	f.Add(tokenizer(5, "a", " bc", "<0x41>"[:5]), 3)
	f.Add([]byte{}, 0)
	f.Fuzz(func(t *testing.T, data []byte, vocab int) {
		k, err := llm.ReadTokenizer(bytes.NewReader(data), vocab%100)
		if err != nil {
			require.ErrorIs(t, err, llm.ErrFile)
			return
		}
		k.Text(llm.Begin, []int{0, 1, 2, 3, -5, 1 << 40})
	})
}
