package lack_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/bench/lack"
	"vkcompute/pool"
	"vkcompute/vk"
)

func TestOf(t *testing.T) {
	for _, err := range []error{pool.ErrOutOfMemory, vk.ErrOutOfDeviceMemory, vk.ErrUnsupported, &vk.LimitError{Name: "a limit"}, &cmdbuf.CapabilityError{}} {
		require.True(t, lack.Of(fmt.Errorf("trying: %w", errors.Join(errors.New("closing"), err))), err)
	}
	for _, err := range []error{nil, vk.ErrDeviceLost, context.Canceled, cmdbuf.ErrClosed, errors.New("out of memory")} {
		require.False(t, lack.Of(err), err)
	}
}
