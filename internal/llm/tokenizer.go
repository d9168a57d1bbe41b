package llm

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
)

// Begin is the token that begins a text; generating it ends one.
const Begin = 1

// Tokenizer turns tokens into text, by the table of a llama2.c tokenizer file.
type Tokenizer struct{ pieces []string }

// maxPiece is far above the longest piece of any vocabulary.
const maxPiece = 1 << 12

// OpenTokenizer reads a tokenizer from a file, for a vocabulary of this many tokens.
func OpenTokenizer(path string, vocab int) (*Tokenizer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := ReadTokenizer(f, vocab)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// ReadTokenizer reads the greatest length of a piece, and then for each token a score, a
// length and the bytes of its piece. The file must end there.
func ReadTokenizer(r io.Reader, vocab int) (*Tokenizer, error) {
	in := bufio.NewReader(r)
	word := func() (uint32, error) {
		var b [4]byte
		_, err := io.ReadFull(in, b[:])
		return binary.LittleEndian.Uint32(b[:]), err
	}
	longest, err := word()
	if err != nil {
		return nil, fmt.Errorf("%w: no header: %w", ErrFile, err)
	}
	if longest > maxPiece {
		return nil, fmt.Errorf("%w: pieces of up to %d bytes, want at most %d", ErrFile, longest, maxPiece)
	}
	t := &Tokenizer{}
	buffer := make([]byte, longest)
	for i := range vocab {
		score, err := word()
		if err != nil {
			return nil, fmt.Errorf("%w: %d tokens, want the model's %d: %w", ErrFile, i, vocab, err)
		}
		length, err := word()
		if err != nil {
			return nil, fmt.Errorf("%w: token %d has no length: %w", ErrFile, i, err)
		}
		if length > longest {
			return nil, fmt.Errorf("%w: token %d has %d bytes, the header says at most %d", ErrFile, i, length, longest)
		}
		if s := math.Float32frombits(score); s != s {
			return nil, fmt.Errorf("%w: the score of token %d is no number", ErrFile, i)
		}
		if _, err := io.ReadFull(in, buffer[:length]); err != nil {
			return nil, fmt.Errorf("%w: token %d ends early: %w", ErrFile, i, err)
		}
		t.pieces = append(t.pieces, string(buffer[:length]))
	}
	if _, err := in.ReadByte(); err != io.EOF {
		return nil, fmt.Errorf("%w: more follows after the model's %d tokens: is it another model's tokenizer?", ErrFile, vocab)
	}
	return t, nil
}

// Text is what the tokens say after a first one, up to the next Begin.
func (t *Tokenizer) Text(first int, tokens []int) string {
	var b strings.Builder
	before := first
	for _, token := range tokens {
		if token == Begin || token < 0 || token >= len(t.pieces) {
			break
		}
		piece := t.pieces[token]
		if before == Begin {
			// The vocabulary marks beginnings of words, that of a text among them.
			piece = strings.TrimPrefix(piece, " ")
		}
		if c, ok := rawByte(piece); ok {
			b.WriteByte(c)
		} else {
			b.WriteString(piece)
		}
		before = token
	}
	return b.String()
}

// rawByte is the byte that a piece such as <0x0A> stands for.
func rawByte(piece string) (byte, bool) {
	hex, ok := strings.CutPrefix(piece, "<0x")
	hex, closed := strings.CutSuffix(hex, ">")
	if !ok || !closed || len(hex) != 2 {
		return 0, false
	}
	v, err := strconv.ParseUint(hex, 16, 8)
	return byte(v), err == nil
}
