package memstat_test

import (
	"testing"

	"vkcompute/internal/memstat"
)

// What leaks is seen, in small pieces and in large ones.
func TestInUseSeesLeaks(t *testing.T) {
	before, ok := memstat.InUse()
	if !ok {
		t.Skip("this C library keeps no such books")
	}
	for _, size := range []int{24, 1000, 1 << 20} {
		for range 100 {
			if !memstat.Leak(size) {
				t.Fatal("out of memory")
			}
		}
		after, _ := memstat.InUse()
		if after-before < int64(100*size) {
			t.Errorf("%d bytes leaked, %d seen", 100*size, after-before)
		}
		before = after
	}
}
