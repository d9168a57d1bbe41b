package mnist

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrFile: a file that is no IDX file of bytes, or does not go with the others.
var ErrFile = errors.New("bad IDX file")

const (
	maxAxes = 4
	// maxBytes is far above the database, and low enough to be held in memory.
	maxBytes = 1 << 28
	ofBytes  = 8 // the only element type that the database uses
)

// ReadIDX reads the extents and the elements, in row-major order, of an IDX file of bytes,
// which may be gzipped. It must end there.
func ReadIDX(r io.Reader) (shape []int, data []byte, err error) {
	in := bufio.NewReader(r)
	if start, _ := in.Peek(2); len(start) == 2 && start[0] == 0x1f && start[1] == 0x8b {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrFile, err)
		}
		defer z.Close()
		in = bufio.NewReader(z)
	}
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, nil, fmt.Errorf("%w: no header: %w", ErrFile, err)
	}
	if head[0] != 0 || head[1] != 0 || head[2] != ofBytes || head[3] < 1 || head[3] > maxAxes {
		return nil, nil, fmt.Errorf("%w: it begins with % x, want 00 00 %02x and 1 to %d axes", ErrFile, head, ofBytes, maxAxes)
	}
	total := 1
	for axis := range head[3] {
		var b [4]byte
		if _, err := io.ReadFull(in, b[:]); err != nil {
			return nil, nil, fmt.Errorf("%w: axis %d has no extent: %w", ErrFile, axis, err)
		}
		extent := uint64(binary.BigEndian.Uint32(b[:]))
		if extent > maxBytes || uint64(total)*extent > maxBytes {
			return nil, nil, fmt.Errorf("%w: extents %v and %d are more than %d bytes", ErrFile, shape, extent, maxBytes)
		}
		total *= int(extent)
		shape = append(shape, int(extent))
	}
	// Grows as the file does: a header can promise anything.
	data, err = io.ReadAll(io.LimitReader(in, int64(total)+1))
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("%w: %w", ErrFile, err)
	case len(data) < total:
		return nil, nil, fmt.Errorf("%w: %d bytes, want %d for extents %v", ErrFile, len(data), total, shape)
	case len(data) > total:
		return nil, nil, fmt.Errorf("%w: more than the %d bytes of extents %v", ErrFile, total, shape)
	}
	return shape, data, nil
}
