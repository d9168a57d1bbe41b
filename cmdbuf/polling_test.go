package cmdbuf_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/testenv"
	"vkcompute/shaders"
)

// A barrier is forgotten on purpose, between a submission and one that comes a few later.
// On a stream that does not poll the layer sees it, and nothing where there is a barrier.
func TestOracleSeesHazardsBetweenBatches(t *testing.T) {
	if !testenv.Require(t).Oracle {
		t.Skip("the oracle was switched off on purpose")
	}
	for _, forgotten := range []bool{false, true} {
		t.Run(map[bool]string{false: "with the barrier", true: "without"}[forgotten], func(t *testing.T) {
			s := newStream(t, cmdbuf.Options{})
			require.NoError(t, s.StopPolling())
			x, y := zeros(t, s, 64), zeros(t, s, 64)
			var others []*cmdbuf.Tensor[float32]
			for range 9 {
				others = append(others, zeros(t, s, 64))
			}
			require.NoError(t, s.Sync(ctx))
			require.NoError(t, s.Launch(shaders.Add, x, x, y))
			for _, o := range others { // batches that have no barrier, and so order nothing
				require.NoError(t, s.Flush())
				require.NoError(t, s.Launch(shaders.Fill, cmdbuf.Float32(1), o))
			}
			if forgotten {
				s.ForgetHazards()
			}
			require.NoError(t, s.Launch(shaders.Add, y, y, x))
			require.NoError(t, s.Flush())
			require.NoError(t, s.Device().WaitIdle())
			found := s.Device().Messages()
			require.Equal(t, forgotten, len(found) > 0, "%v", found)
			for _, m := range found {
				require.Contains(t, []string{"SYNC-HAZARD-READ-AFTER-WRITE", "SYNC-HAZARD-WRITE-AFTER-READ"}, m.ID, m.Text)
			}
		})
	}
}
