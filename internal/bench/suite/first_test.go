package suite

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/shim"
	"vkcompute/internal/vktest"
	"vkcompute/vk"
)

func TestFirst(t *testing.T) {
	o := vktest.Options(t)
	driver := vktest.NewDriver(t, shim.Plain)
	opened := 0
	list, err := First(ctx, func(folder string) (*vk.Device, error) {
		opened++
		o.PipelineCache = folder
		return driver.Open(o)
	}, short())
	r := check(t, list, err)
	require.Greater(t, opened, 4)
	for _, name := range []string{"open", "result", "result/cache=cold", "result/cache=warm"} {
		require.NotNil(t, r.Find("first", name, "wall"), name)
	}
	require.Positive(t, r.Find("first", "result/cache=warm", "wall").Reference["cold"])

	_, err = First(ctx, func(string) (*vk.Device, error) { return driver.Open(o) }, short())
	require.ErrorIs(t, err, ErrWrong, "nothing was kept, so cold and warm are the same")
	broken := errors.New("broken")
	_, err = First(ctx, func(string) (*vk.Device, error) { return nil, broken }, short())
	require.ErrorIs(t, err, broken)
}
