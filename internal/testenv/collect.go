package testenv

import (
	"os"
	"runtime"
	"time"
)

// varCollect makes the garbage collector run all the time beside the tests, also while
// they wait for the device and allocate nothing, when a low GOGC alone does not.
const varCollect = "VKCOMPUTE_TEST_COLLECT"

// collect starts that and returns what ends it.
func collect() (stop func()) {
	if !on(os.Getenv(varCollect)) {
		return func() {}
	}
	return repeat(runtime.GC)
}

// repeat calls f again and again until stop, which returns when the last call has.
func repeat(f func()) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			case <-time.After(time.Millisecond): // or nothing else would get a core
				f()
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}
