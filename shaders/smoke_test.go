package shaders

import "testing"

func TestBuiltinsLoad(t *testing.T) {
	for _, k := range []*Kernel{Add, Mul, Sum, MatMul, Fill, Nop} {
		if err := k.Err(); err != nil {
			t.Error(err)
			continue
		}
		t.Logf("%s %+v %+v %v", k.Name, k.Module.Bindings, k.Module.Entries, k.Module.Constants)
	}
}
