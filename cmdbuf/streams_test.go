package cmdbuf_test

import (
	"context"
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"vkcompute/cmdbuf"
	"vkcompute/internal/shim"
	"vkcompute/internal/testenv"
	"vkcompute/internal/vktest"
	"vkcompute/pool"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// two gives streams of one device that a test may close in any order; at its end nothing
// of the device is alive.
func two(t testing.TB) (a, b *cmdbuf.Stream) {
	t.Helper()
	d := vktest.Open(t)
	a, err := cmdbuf.NewStream(d, cmdbuf.Options{})
	require.NoError(t, err)
	b, err = cmdbuf.NewStream(d, cmdbuf.Options{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, errors.Join(a.Close(ctx), b.Close(ctx)))
		require.Empty(t, d.Alive())
	})
	return a, b
}

// after orders what comes on one stream behind what was launched on the other.
func after(t require.TestingT, to, from *cmdbuf.Stream) {
	e, err := from.Record()
	require.NoError(t, err)
	require.NoError(t, to.WaitFor(e))
}

// A stream that has done its work, and that nobody asks, holds up no read of what it used.
func TestReadingWhatAnIdleStreamUsed(t *testing.T) {
	a, b := two(t)
	x := upload(t, a, []float32{1, 2}, 2)
	y := upload(t, b, []float32{0, 0}, 2)
	after(t, b, a)
	for _, flushed := range []bool{true, false} {
		require.NoError(t, b.Launch(shaders.Add, x, x, y))
		if flushed {
			require.NoError(t, b.Flush())
		}
		limited, cancel := context.WithTimeout(ctx, time.Minute)
		host, err := x.Read(limited)
		require.NoError(t, err)
		require.Equal(t, []float32{1, 2}, host)
		require.NoError(t, x.Map(limited, func(host []float32) { require.Equal(t, []float32{1, 2}, host) }))
		cancel()
	}
	require.Equal(t, []float32{2, 4}, read(t, y))
}

// An event whose stream was closed meanwhile has happened: the stream that waits for it goes on.
func TestEventsOfClosedStreams(t *testing.T) {
	a, b := two(t)
	x := upload(t, b, []float32{1}, 1)
	after(t, a, b)
	require.NoError(t, a.Launch(shaders.Add, x, x, x))
	e, err := a.Record()
	require.NoError(t, err)
	require.NoError(t, b.WaitFor(e))
	require.NoError(t, a.Close(ctx))
	require.NoError(t, b.Launch(shaders.Add, x, x, x))
	require.NoError(t, b.Sync(ctx), "waited for, then closed")
	require.NoError(t, b.WaitFor(e), "closed, then waited for")
	require.NoError(t, b.Launch(shaders.Add, x, x, x))
	require.Equal(t, []float32{8}, read(t, x))
}

// What another stream wrote before an event that this one has waited for is read when it
// is there, whoever knows of it: its launches, and its graphs, which tell nobody.
func TestReadingWhatAnotherStreamWrites(t *testing.T) {
	for _, replayed := range []bool{false, true} {
		d, driver := vktest.OpenProfile(t, shim.Plain)
		a, err := cmdbuf.NewStream(d, cmdbuf.Options{})
		require.NoError(t, err)
		b, err := cmdbuf.NewStream(d, cmdbuf.Options{})
		require.NoError(t, err)
		x, other := upload(t, a, []float32{1}, 1), upload(t, a, []float32{1}, 1)
		require.Equal(t, []float32{1}, read(t, x))
		g, err := b.Capture(ctx, func(c *cmdbuf.Capture) error { return c.Launch(shaders.Add, x, x, x) })
		require.NoError(t, err)
		after(t, b, a)
		driver.Hang()
		if replayed {
			require.NoError(t, g.Replay())
		} else {
			require.NoError(t, b.Launch(shaders.Add, x, x, x))
		}
		after(t, a, b)
		require.NoError(t, a.Launch(shaders.Add, other, other, other))
		require.NoError(t, a.Flush())
		soon, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
		_, err = x.Read(soon)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		cancel()
		written := upload(t, a, []float32{0}, 1)
		require.NoError(t, a.Copy(written, x))
		require.NoError(t, x.Write([]float32{5}))
		driver.Release()
		require.Equal(t, []float32{5}, read(t, x))
		require.Equal(t, []float32{2}, read(t, written), "written before the other stream's work was done")
		require.NoError(t, g.Close())
		require.NoError(t, errors.Join(x.Close(), other.Close(), written.Close(), a.Close(ctx), b.Close(ctx)))
	}
}

// More streams than one submission can wait for.
func TestWaitingForManyStreams(t *testing.T) {
	a, b := two(t)
	const n = vk.MaxWaits + 7
	x := zeros(t, a, n)
	after(t, b, a)
	for i := range n {
		s, err := cmdbuf.NewStream(a.Device(), cmdbuf.Options{})
		require.NoError(t, err)
		after(t, s, b)
		at, err := x.Range(0, i, i+1, 1)
		require.NoError(t, err)
		require.NoError(t, s.Launch(shaders.Fill, cmdbuf.Float32(float32(i)), at))
		after(t, a, s)
		defer func() { require.NoError(t, s.Close(ctx)) }()
	}
	require.NoError(t, a.Launch(shaders.Add, x, x, x))
	for i, v := range read(t, x) {
		require.Equal(t, float32(2*i), v)
	}
}

// An event of another device is refused, and nothing changes.
func TestEventsOfOtherDevices(t *testing.T) {
	a, _ := two(t)
	c, _ := two(t)
	x := upload(t, c, []float32{1}, 1)
	require.NoError(t, c.Launch(shaders.Add, x, x, x))
	e, err := c.Record()
	require.NoError(t, err)
	require.ErrorIs(t, a.WaitFor(e), cmdbuf.ErrForeign)
	y := upload(t, a, []float32{1}, 1)
	require.NoError(t, a.Launch(shaders.Add, y, y, y))
	require.Equal(t, []float32{2}, read(t, y))
}

// A stream closed while another one still uses what it has released loses nothing.
func TestClosingALender(t *testing.T) {
	for _, flushed := range []bool{true, false} {
		a, b := two(t)
		x, err := cmdbuf.Upload(a, []float32{3}, 1)
		require.NoError(t, err)
		y := upload(t, b, []float32{0}, 1)
		after(t, b, a)
		require.NoError(t, b.Launch(shaders.Add, x, x, y))
		if flushed {
			require.NoError(t, b.Flush())
		}
		require.NoError(t, x.Close())
		require.NoError(t, a.Close(ctx))
		require.Equal(t, []float32{6}, read(t, y))
	}
}

// Pools are installed though a stream that is done and idle has used their slices.
func TestInstallingWhatAnIdleStreamUsed(t *testing.T) {
	a, b := two(t)
	x, err := cmdbuf.Upload(a, []float32{3}, 1)
	require.NoError(t, err)
	y := upload(t, b, []float32{0}, 1)
	after(t, b, a)
	require.NoError(t, b.Launch(shaders.Add, x, x, y))
	require.NoError(t, x.Close())
	err = a.InstallPools(ctx, pool.ExclusivePages())
	require.ErrorIs(t, err, pool.ErrInUse, "it is not even submitted")
	e, err := b.Record()
	require.NoError(t, err)
	require.NoError(t, e.Wait(ctx))
	require.NoError(t, a.InstallPools(ctx, pool.ExclusivePages()))
	require.Equal(t, []float32{6}, read(t, y))
}

// Three streams work on tensors of each other's pools in any order that events allow, are
// idle for long, closed early and replaced. Every value is compared with a model, and at
// the end nothing is alive.
func TestStreamsTogether(t *testing.T) {
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue && !testenv.Long() {
		require.NoError(t, checks.Value.Set("20")) // streams are slow to make
		defer checks.Value.Set(checks.DefValue)
	}
	d := vktest.Open(t)
	rapid.Check(t, func(t *rapid.T) {
		type lane struct {
			s    *cmdbuf.Stream
			sees [3]int // up to which launch of each lane it is ordered behind
			last int    // launch
		}
		type thing struct {
			x       *cmdbuf.Tensor[float32]
			home    *cmdbuf.Stream
			value   float32
			written [3]int // the last launch of each lane that wrote it
			used    [3]int // or used it at all
		}
		var lanes [3]*lane
		open := func() *lane {
			s, err := cmdbuf.NewStream(d, cmdbuf.Options{BatchLimit: rapid.SampledFrom([]int{1, 3, 256}).Draw(t, "batch")})
			require.NoError(t, err)
			return &lane{s: s}
		}
		for i := range lanes {
			lanes[i] = open()
		}
		var things []*thing
		pick := func(what string) *thing {
			if len(things) == 0 {
				t.Skip("no tensors")
			}
			return rapid.SampledFrom(things).Draw(t, what)
		}
		number := func(what string) int { return rapid.IntRange(0, 2).Draw(t, what) }
		// order brings lane i behind what other lanes did with a tensor.
		order := func(i int, uses ...[3]int) {
			for j, l := range lanes {
				need := 0
				for _, u := range uses {
					need = max(need, u[j])
				}
				if j == i || need <= lanes[i].sees[j] {
					continue
				}
				e, err := l.s.Record()
				require.NoError(t, err)
				if rapid.Bool().Draw(t, "on the host too") {
					require.NoError(t, e.Wait(ctx))
				}
				require.NoError(t, lanes[i].s.WaitFor(e))
				lanes[i].sees[j] = l.last
			}
		}
		closeThing := func(x *thing) {
			require.NoError(t, x.x.Close())
			for i := range things {
				if things[i] == x {
					things = append(things[:i], things[i+1:]...)
					break
				}
			}
		}
		validate := func() {
			for _, l := range lanes {
				require.NoError(t, l.s.Validate())
			}
		}
		counter := 0
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { validate() },
			"new": func(t *rapid.T) {
				if len(things) > 6 {
					t.Skip("enough")
				}
				i := number("lane")
				v := float32(counter % 100)
				x, err := cmdbuf.Upload(lanes[i].s, []float32{v}, 1)
				require.NoError(t, err)
				counter++
				n := &thing{x: x, home: lanes[i].s, value: v}
				lanes[i].last++
				n.written[i], n.used[i] = lanes[i].last, lanes[i].last
				things = append(things, n)
			},
			"launch": func(t *rapid.T) {
				i, from, to := number("lane"), pick("from"), pick("to")
				if from == to {
					t.Skip("the same")
				}
				order(i, from.written, to.used)
				require.NoError(t, lanes[i].s.Launch(shaders.Copy, from.x, to.x))
				lanes[i].last++
				from.used[i] = lanes[i].last
				to.used[i], to.written[i] = lanes[i].last, lanes[i].last
				to.value = from.value
			},
			"replay": func(t *rapid.T) {
				i, x := number("lane"), pick("tensor")
				order(i, x.used)
				g, err := lanes[i].s.Capture(ctx, func(c *cmdbuf.Capture) error { return c.Launch(shaders.Neg, x.x, x.x) })
				require.NoError(t, err)
				require.NoError(t, g.ReplayN(3))
				require.NoError(t, g.Close())
				lanes[i].last++
				x.used[i], x.written[i] = lanes[i].last, lanes[i].last
				x.value = -x.value
			},
			"read": func(t *rapid.T) {
				x := pick("tensor")
				for i, l := range lanes {
					if l.s == x.home {
						order(i, x.written)
						host, err := x.x.Read(ctx)
						require.NoError(t, err)
						require.Equal(t, x.value, host[0])
					}
				}
			},
			"map": func(t *rapid.T) {
				x := pick("tensor")
				for i, l := range lanes {
					if l.s == x.home {
						order(i, x.used)
						require.NoError(t, x.x.Map(ctx, func(host []float32) {
							require.Equal(t, x.value, host[0])
							host[0]++
						}))
						x.value++
						l.last++
						x.used[i], x.written[i] = l.last, l.last
					}
				}
			},
			"close tensor": func(t *rapid.T) { closeThing(pick("tensor")) },
			"flush":        func(t *rapid.T) { require.NoError(t, lanes[number("lane")].s.Flush()) },
			"sync":         func(t *rapid.T) { require.NoError(t, lanes[number("lane")].s.Sync(ctx)) },
			"install": func(t *rapid.T) {
				i := number("lane")
				if err := lanes[i].s.InstallPools(ctx, pool.SubSlices()); err != nil {
					require.ErrorIs(t, err, pool.ErrInUse)
				}
			},
			"close stream": func(t *rapid.T) {
				i := number("lane")
				for k := len(things) - 1; k >= 0; k-- {
					if things[k].home == lanes[i].s {
						closeThing(things[k])
					}
				}
				e, err := lanes[i].s.Record()
				require.NoError(t, err)
				early := rapid.Bool().Draw(t, "waited for before")
				waitForAll := func() {
					for j, l := range lanes {
						if j != i {
							require.NoError(t, l.s.WaitFor(e))
							l.sees[i] = 0
						}
					}
				}
				if early {
					waitForAll()
				}
				require.NoError(t, lanes[i].s.Close(ctx))
				if !early {
					waitForAll()
				}
				lanes[i] = open()
				for _, x := range things { // all lanes are behind what the closed one did
					x.written[i], x.used[i] = 0, 0
				}
			},
		})
		for len(things) > 0 {
			closeThing(things[0])
		}
		for _, i := range rapid.Permutation([]int{0, 1, 2}).Draw(t, "closing order") {
			require.NoError(t, lanes[i].s.Close(ctx))
		}
		require.Empty(t, d.Alive())
	})
}
