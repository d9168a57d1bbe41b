package pool_test

import (
	"flag"
	"os"
	"testing"

	"vkcompute/internal/testenv"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("VKCOMPUTE_TEST_NO_DRIVER") != "" {
		// An example cannot skip itself, and this one opens a device.
		if err := flag.Set("test.skip", "^Example"); err != nil {
			panic(err)
		}
	}
	testenv.Main(m)
}
