//go:build !poolstacks

package pool

// recordsStacks tells the tests, since recording allocates.
const recordsStacks = false

// stacks records nothing in an ordinary build.
type stacks struct{}

func (stacks) record(*slot)     {}
func (stacks) forget(*slot)     {}
func (stacks) report() []string { return nil }
