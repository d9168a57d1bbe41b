//go:build !poolstacks

package pool

// stacks records nothing in an ordinary build.
type stacks struct{}

func (stacks) record(*slot)     {}
func (stacks) forget(*slot)     {}
func (stacks) report() []string { return nil }
