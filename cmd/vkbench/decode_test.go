package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"github.com/rogpeppe/go-internal/testscript"

	"vkcompute/internal/llm"
)

// writeCheckpoint makes a small model and its tokenizer: checkpoint MODEL TOKENIZER.
func writeCheckpoint(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: checkpoint MODEL TOKENIZER")
	}
	s := llm.Shape{Dim: 16, Layers: 1, Heads: 2, Groups: 1, Hidden: 8, Vocab: 5, Context: 12}
	var model, tokenizer bytes.Buffer
	put := func(b *bytes.Buffer, v any) { ts.Check(binary.Write(b, binary.LittleEndian, v)) }
	put(&model, []int32{int32(s.Dim), int32(s.Hidden), int32(s.Layers), int32(s.Heads), int32(s.Groups), int32(s.Vocab), int32(s.Context)})
	for i := range s.Parameters() + s.Context*s.HeadSize() {
		put(&model, float32(i*37%101-50)/64)
	}
	put(&tokenizer, uint32(4))
	for i := range s.Vocab {
		piece := fmt.Sprintf(" w%d", i)
		put(&tokenizer, float32(0))
		put(&tokenizer, uint32(len(piece)))
		tokenizer.WriteString(piece)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), model.Bytes(), 0o644))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), tokenizer.Bytes(), 0o644))
}
