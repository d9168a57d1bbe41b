package cmdbuf_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/shim"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// A kernel of one's own that adds up within subgroups runs where the device does that, and
// is refused where it does not.
func TestSubgroupOperations(t *testing.T) {
	k, err := shaders.NewKernel(shaders.KernelSpec{
		Name: "subgroup", Module: loadWords(t, spirvWords(t, "subgroup.spv")),
		Params: []shaders.Param{{Name: "in", DType: shaders.Uint32, Access: shaders.Read, Binding: 1}, {Name: "out", DType: shaders.Uint32, Access: shaders.ReadWrite, Binding: 2}},
		Plan: func(_ shaders.Env, ops []shaders.Operand, p *shaders.Plan) error {
			p.Groups = [3]uint64{uint64(ops[0].Layout.Len()) / 64, 1, 1}
			return nil
		},
	})
	require.NoError(t, err)
	for _, profile := range []string{shim.Plain, shim.Bare} {
		t.Run(profile, func(t *testing.T) {
			d, _ := vktest.OpenProfile(t, profile)
			s, err := cmdbuf.NewStream(d, cmdbuf.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close(ctx)) })
			const n = 1 << 10
			host := make([]uint32, n)
			for i := range host {
				host[i] = uint32(i)
			}
			in, out := upload(t, s, host, n), upload(t, s, []uint32{7}, 1)
			err = s.Launch(k, in, out)
			if d.Info().Features.Subgroups&vk.SubgroupArithmetic == 0 {
				var e *cmdbuf.CapabilityError
				require.ErrorAs(t, err, &e)
				require.Equal(t, "GroupNonUniformArithmetic", e.Capability)
				require.Equal(t, []uint32{7}, read(t, out))
				return
			}
			require.NotEqual(t, shim.Bare, profile, "it has nothing that is optional")
			require.NoError(t, err)
			require.Equal(t, []uint32{7 + n*(n-1)/2}, read(t, out))
		})
	}
}
