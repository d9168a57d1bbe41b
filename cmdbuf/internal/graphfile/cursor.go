package graphfile

import (
	"encoding/binary"
	"fmt"

	"vkcompute/shaders"
)

// cursor reads the body of a section. After the first error it reads zeros.
type cursor struct {
	section string
	body    []byte
	at      int   // next byte of the body
	start   int64 // of the body in the file
	err     *Error
}

// fail notes what is wrong with the last n bytes read.
func (c *cursor) fail(n int, want, found string) {
	if c.err == nil {
		c.err = &Error{Offset: c.start + int64(c.at-n), Section: c.section, Want: want, Found: found}
	}
}

// take returns the next n bytes, or nil.
func (c *cursor) take(n int, what string) []byte {
	if c.err != nil {
		return nil
	}
	if left := len(c.body) - c.at; n < 0 || left < n {
		c.fail(0, fmt.Sprintf("%d bytes of %s", n, what), fmt.Sprintf("the end of the section after %d", left))
		return nil
	}
	c.at += n
	return c.body[c.at-n : c.at]
}

func (c *cursor) u8(what string) uint8 {
	if b := c.take(1, what); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u32(what string) uint32 {
	if b := c.take(4, what); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) u64(what string) uint64 {
	if b := c.take(8, what); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (c *cursor) str(what string) string {
	n := c.u32("the length of " + what)
	if left := len(c.body) - c.at; uint64(n) > uint64(left) {
		c.fail(4, fmt.Sprintf("the length of %s, at most %d", what, left), fmt.Sprint(n))
		return ""
	}
	return string(c.take(int(n), what))
}

// count reads the length of a list whose elements have at least size bytes.
func (c *cursor) count(size int, what string) int {
	n := c.u32("the number of " + what)
	if left := len(c.body) - c.at; uint64(n)*uint64(size) > uint64(left) {
		c.fail(4, fmt.Sprintf("the number of %s, at most %d in %d bytes", what, left/size, left), fmt.Sprint(n))
		return 0
	}
	return int(n)
}

// index reads a number below n.
func (c *cursor) index(n int, what string) int {
	i := c.u32(what)
	if c.err == nil && uint64(i) >= uint64(n) {
		c.fail(4, fmt.Sprintf("%s, one of %d", what, n), fmt.Sprint(i))
		return 0
	}
	return int(i)
}

// enum reads a number from 'first' to 'last'.
func (c *cursor) enum(first, last uint8, what string) uint8 {
	v := c.u8(what)
	if c.err == nil && (v < first || v > last) {
		c.fail(1, fmt.Sprintf("%s, %d to %d", what, first, last), fmt.Sprint(v))
		return first
	}
	return v
}

// dtype reads the element type of something that exists, which is never any type.
func (c *cursor) dtype(what string) shaders.DType {
	return shaders.DType(c.enum(uint8(shaders.Float32), uint8(shaders.Composite), "the element type of "+what))
}

// scalar reads the type of a scalar, which has 32 bits.
func (c *cursor) scalar(what string) shaders.DType {
	return shaders.DType(c.enum(uint8(shaders.Float32), uint8(shaders.Uint32), "the type of "+what))
}

// end checks that nothing is left.
func (c *cursor) end() error {
	if left := len(c.body) - c.at; left > 0 {
		c.fail(0, "the end of the section", fmt.Sprintf("%d more bytes", left))
	}
	if c.err != nil {
		return c.err
	}
	return nil
}
