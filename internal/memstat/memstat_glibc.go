//go:build linux && cgo

package memstat

/*
#include <stdint.h>
#include <stdlib.h>
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 33)
#define HAVE_MALLINFO2 1
#include <malloc.h>
#endif
#endif

static int64_t in_use(void) {
#ifdef HAVE_MALLINFO2
	struct mallinfo2 m = mallinfo2();
	return (int64_t)(m.uordblks + m.hblkhd);
#else
	return -1;
#endif
}

static void *keep(size_t n) { return malloc(n); }
*/
import "C"

// InUse is the number of bytes of the C heap in use. ok is false where the C library does
// not tell.
func InUse() (bytes int64, ok bool) {
	n := int64(C.in_use())
	return n, n >= 0
}

// Leak allocates C memory that nobody frees.
func Leak(bytes int) bool { return C.keep(C.size_t(bytes)) != nil }
