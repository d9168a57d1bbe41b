package shaders

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
)

// BuiltinsDigest tells one state of the built-in kernels' code from every other: what was
// measured with some says nothing about others.
func BuiltinsDigest() [sha256.Size]byte { return builtinsDigest() }

// builtinsDigest hashes once: 0.3 MB, whenever a stream is made, are a millisecond.
var builtinsDigest = sync.OnceValue(func() [sha256.Size]byte { return digest(Builtins()) })

func digest(kernels []*Kernel) (sum [sha256.Size]byte) {
	h := sha256.New()
	var last *Module
	var buf []byte
	for _, k := range kernels {
		buf = append(buf[:0], k.Name...)
		buf = append(buf, 0)
		if k.Module != nil && k.Module != last { // neighbours of one module
			for _, w := range k.Module.Words {
				buf = binary.LittleEndian.AppendUint32(buf, w)
			}
			last = k.Module
		}
		h.Write(buf)
	}
	h.Sum(sum[:0])
	return sum
}
