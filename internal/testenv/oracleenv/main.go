// Command oracleenv writes the validation layer's manifest into the module's
// cache folder and prints shell assignments that make any Vulkan program run on
// the chosen driver under that layer:
//
//	eval "$(VKCOMPUTE_TEST_DRIVER=lavapipe go run ./internal/testenv/oracleenv)"
//
// scripts/setup and scripts/test use it, so that they cannot disagree with
// what the tests set up for themselves.
package main

import (
	"fmt"
	"os"
	"strings"

	"vkcompute/internal/testenv"
)

func main() {
	e, err := testenv.Prepare("")
	if err != nil {
		fmt.Fprintln(os.Stderr, "oracleenv:", err)
		os.Exit(1)
	}
	for _, v := range e.Variables() {
		name, value, _ := strings.Cut(v, "=")
		fmt.Printf("export %s=%s\n", name, quote(value))
	}
}

// quote makes a word of any value, quotes included, for a POSIX shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
