package vk_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/shim"
	"vkcompute/internal/vktest"
	"vkcompute/vk"
)

func TestRobustnessIsTheBestThereIs(t *testing.T) {
	for _, c := range []struct {
		features vk.Features
		want     vk.Robustness
	}{
		{vk.Features{RobustAccess: true, RobustAccess2: true}, vk.RobustBinding},
		{vk.Features{RobustAccess: true}, vk.RobustBuffer},
	} {
		got, err := vk.BestRobustness(c.features)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	_, err := vk.BestRobustness(vk.Features{})
	require.ErrorIs(t, err, vk.ErrUnsupported)
	require.ErrorContains(t, err, "Options.Untrusted")
	require.Equal(t, "robust to the buffer", vk.RobustBuffer.String())
	require.Equal(t, "Robustness(9)", vk.Robustness(9).String())
}

// The driver agrees to what is turned on, with the extension and without.
func TestOpenUntrusted(t *testing.T) {
	for _, profile := range []string{shim.Plain, shim.Bare} {
		t.Run(profile, func(t *testing.T) {
			driver := vktest.NewDriver(t, profile)
			require.Equal(t, vk.NotRobust, vktest.OpenOn(t, driver).Robustness(), "it costs, so it has to be asked for")
			o := vktest.Options(t)
			o.Untrusted = true
			d, err := driver.Open(o)
			require.NoError(t, err)
			want := vk.RobustBuffer
			if d.Info().Features.RobustAccess2 {
				want = vk.RobustBinding
				require.NotEqual(t, shim.Bare, profile)
			}
			require.Equal(t, want, d.Robustness())
			require.NoError(t, d.Close())
		})
	}
}
