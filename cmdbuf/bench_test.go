package cmdbuf_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/testenv"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// benchStream is a stream without the validation layer, which would be all one measures.
func benchStream(b *testing.B, o cmdbuf.Options) *cmdbuf.Stream {
	testenv.Require(b)
	d, err := vk.Open(vk.Options{})
	require.NoError(b, err)
	s, err := cmdbuf.NewStream(d, o)
	require.NoError(b, err)
	b.Cleanup(func() {
		require.NoError(b, s.Close(ctx))
		require.NoError(b, d.Close())
	})
	return s
}

// BenchmarkLaunch is a warm launch of a 64-element strided add, submitted every n. On
// the llvmpipe driver set LP_NUM_THREADS=0, or its thread pool is what one measures.
func BenchmarkLaunch(b *testing.B) {
	for _, n := range []int{16, 256} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			s := benchStream(b, cmdbuf.Options{BatchLimit: n})
			whole, z := zeros(b, s, 128), zeros(b, s, 64)
			x, err := whole.Range(0, 0, 128, 2)
			require.NoError(b, err)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := s.Launch(shaders.Add, x, z, z); err != nil {
					b.Fatal(err)
				}
				if i%n == n-1 {
					if err := s.Sync(ctx); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkRecord is the library's part of a launch: nothing is submitted while it is timed.
func BenchmarkRecord(b *testing.B) {
	s := benchStream(b, cmdbuf.Options{BatchLimit: 1 << 30})
	whole, z := zeros(b, s, 128), zeros(b, s, 64)
	x, err := whole.Range(0, 0, 128, 2)
	require.NoError(b, err)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := s.Launch(shaders.Add, x, z, z); err != nil {
			b.Fatal(err)
		}
		if i%1024 == 1023 {
			b.StopTimer()
			require.NoError(b, s.Sync(ctx))
			b.StartTimer()
		}
	}
}

// BenchmarkReplay is one replay of a graph of n launches, waited for every 16.
func BenchmarkReplay(b *testing.B) {
	for _, n := range []int{16, 256, 4096} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			s := benchStream(b, cmdbuf.Options{})
			z := zeros(b, s, 64)
			g, err := s.Capture(ctx, func(c *cmdbuf.Capture) error {
				for range n {
					if err := c.Launch(shaders.Add, z, z, z); err != nil {
						return err
					}
				}
				return nil
			})
			require.NoError(b, err)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := g.Replay(); err != nil {
					b.Fatal(err)
				}
				if i%16 == 15 {
					require.NoError(b, s.Sync(ctx))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/launch")
		})
	}
}
