package vk

import "unsafe"

// The binding represents handles as pointers to opaque types. A handle that is not
// an address (many drivers count) must never become an unsafe.Pointer, on which the
// garbage collector would choke, so bits are reinterpreted in place.

// bits is the handle as the C side of this library takes it.
func bits[H any](h H) uint64 {
	if unsafe.Sizeof(h) == 8 {
		return *(*uint64)(unsafe.Pointer(&h))
	}
	return uint64(*(*uint32)(unsafe.Pointer(&h)))
}

// handle is the reverse of bits.
func handle[H any](b uint64) (h H) {
	if unsafe.Sizeof(h) == 8 {
		*(*uint64)(unsafe.Pointer(&h)) = b
	} else {
		*(*uint32)(unsafe.Pointer(&h)) = uint32(b)
	}
	return h
}

// commandBufferBits views command buffers as the integers they are.
func commandBufferBits(list []CommandBuffer) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(list))), len(list))
}

// nativeWord is eight bytes as a word in the host's byte order.
func nativeWord(b [8]byte) uint64 { return *(*uint64)(unsafe.Pointer(&b)) }
