package llm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// ErrFile: a file that is no model, or no tokenizer.
var ErrFile = errors.New("bad file")

// The two forms of llama2.c with float32 weights. The old one has no magic number, seven
// words, and between norm and classifier the rotary factors, which nobody reads; a
// classifier of its own shows as a negative vocabulary. The new one is numbered 1.
const (
	magic      = 0x616b3432 // "ak42"
	oldHeader  = 7 * 4
	newHeader  = 256
	factors    = "rotary factors"
	classifier = "classifier"
)

func orderOld() []string {
	return []string{"embedding", "attention norm", "query", "key", "value", "output", "perceptron norm", "gate", "down", "up", "norm"}
}

func orderNew() []string {
	return []string{"attention norm", "perceptron norm", "norm", "embedding", "query", "key", "value", "output", "gate", "down", "up"}
}

// OpenModel reads a checkpoint from a file.
func OpenModel(path string) (*Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	m, err := ReadModel(f, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// ReadModel reads a checkpoint of llama2.c with float32 weights, the form without a
// version or version 1, of the given size in bytes. Nothing is allocated before the size
// was found to be what the header asks for.
func ReadModel(r io.Reader, size int64) (*Model, error) {
	var head [newHeader]byte
	if _, err := io.ReadFull(r, head[:oldHeader]); err != nil {
		return nil, fmt.Errorf("%w: %d bytes, want a header of %d: %w", ErrFile, size, oldHeader, err)
	}
	word := func(i int) int { return int(int32(binary.LittleEndian.Uint32(head[4*i:]))) }
	at, header, order := 0, oldHeader, orderOld()
	isNew := uint32(word(0)) == magic
	if isNew {
		if version := word(1); version != 1 {
			return nil, fmt.Errorf("%w: version %d, want 1: only float32 weights are read", ErrFile, version)
		}
		if _, err := io.ReadFull(r, head[oldHeader:]); err != nil {
			return nil, fmt.Errorf("%w: %d bytes, want a header of %d: %w", ErrFile, size, newHeader, err)
		}
		at, header, order = 2, newHeader, orderNew()
	}
	s := Shape{Dim: word(at), Hidden: word(at + 1), Layers: word(at + 2), Heads: word(at + 3), Groups: word(at + 4), Vocab: word(at + 5), Context: word(at + 6)}
	shared := s.Vocab > 0
	if isNew {
		shared = head[4*(at+7)] != 0
	} else if s.Vocab < 0 {
		s.Vocab = -s.Vocab
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	unread := 0 // after the blocks of order
	if !isNew {
		unread = s.Context * s.HeadSize()
	}
	want := int64(header) + 4*int64(s.Parameters()+unread)
	if !shared {
		want += 4 * int64(s.Vocab) * int64(s.Dim)
	}
	if size != want {
		return nil, fmt.Errorf("%w: %d bytes, want %d for a model of %+v", ErrFile, size, want, s)
	}
	m := &Model{Shape: s, Layers: make([]Layer, s.Layers)}
	read := func(name string, size int, part *[]float32) error {
		*part = make([]float32, size)
		if err := readFloats(r, *part); err != nil {
			return fmt.Errorf("%w: reading %s: %w", ErrFile, name, err)
		}
		return nil
	}
	if err := m.blocks(order, read); err != nil {
		return nil, err
	}
	if _, err := io.CopyN(io.Discard, r, 4*int64(unread)); err != nil {
		return nil, fmt.Errorf("%w: reading %s: %w", ErrFile, factors, err)
	}
	if shared {
		m.Classifier = m.Embedding
	} else if err := m.blocks([]string{classifier}, read); err != nil {
		return nil, err
	}
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	return m, nil
}

// readFloats reads little-endian words in pieces that stay in the processor's cache.
func readFloats(r io.Reader, to []float32) error {
	var buffer [1 << 14]byte
	for len(to) > 0 {
		n := min(len(to), len(buffer)/4)
		if _, err := io.ReadFull(r, buffer[:4*n]); err != nil {
			return err
		}
		for i := range n {
			to[i] = math.Float32frombits(binary.LittleEndian.Uint32(buffer[4*i:]))
		}
		to = to[n:]
	}
	return nil
}
