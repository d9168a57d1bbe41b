package testenv

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCollect(t *testing.T) {
	collections := func() uint32 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.NumForcedGC
	}
	t.Setenv(varCollect, "0")
	collect()()
	t.Setenv(varCollect, "1")
	before := collections()
	stop := collect()
	require.Eventually(t, func() bool { return collections() > before+3 }, time.Minute, time.Millisecond)
	stop()
	after := collections()
	time.Sleep(20 * time.Millisecond)
	require.Equal(t, after, collections(), "it has ended")
}
