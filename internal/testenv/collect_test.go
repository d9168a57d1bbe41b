package testenv

import (
	"runtime"
	"sync/atomic"
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
}

// Once it has been stopped nothing is called any more, and no call is still on its way.
func TestRepeatEnds(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	var inside atomic.Bool
	calls := 0 // not atomic: stop comes after the last call, as the race detector sees
	stop := repeat(func() {
		calls++
		inside.Store(true)
		if calls == 3 {
			close(entered)
			<-leave
		}
		inside.Store(false)
	})
	<-entered
	go func() {
		for range 1000 { // while stop waits
			runtime.Gosched()
		}
		close(leave)
	}()
	stop()
	require.False(t, inside.Load(), "a call is still on its way")
	require.GreaterOrEqual(t, calls, 3)
}
