package vk_test

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/memstat"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// The binding copies structures to C memory and leaves freeing them to whoever calls it.
func TestObjectsLeakNoCMemory(t *testing.T) {
	vktest.Options(t)
	d, err := vk.Open(vk.Options{}) // the validation layer has books of its own that grow
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	if _, ok := memstat.InUse(); !ok {
		t.Skip("this C library keeps no such books")
	}
	l := labOn(t, d)
	pipeline, err := d.NewPipeline(kernelSpec(shaders.Add))
	require.NoError(t, err)
	t.Cleanup(pipeline.Close)
	sets, err := d.NewDescriptorPool(vk.PoolSize{Sets: 4, Storage: 12, Dynamic: 4})
	require.NoError(t, err)
	t.Cleanup(sets.Close)
	buffer := l.buffer(vk.BufferSpec{Size: 256})
	b := l.commandBuffer()
	closed := func(c interface{ Close() }, err error) {
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	var program vk.SetProgram
	var commands vk.Commands
	handles := make([]uint64, 0, 1)
	for _, c := range []struct {
		name  string
		cycle func()
	}{
		{"buffer", func() { closed(d.NewBuffer(vk.BufferSpec{Size: 256})) }},
		{"named buffer", func() { closed(d.NewBuffer(vk.BufferSpec{Size: 256, Name: "some name"})) }},
		{"buffer refused", func() {
			if _, err := d.NewBuffer(vk.BufferSpec{Size: 1 << 62}); err == nil {
				t.Fatal("made")
			}
		}},
		{"pipeline", func() { closed(d.NewPipeline(kernelSpec(shaders.Nop))) }},
		{"descriptor pool", func() { closed(d.NewDescriptorPool(vk.PoolSize{Sets: 4, Storage: 12, Dynamic: 4})) }},
		{"descriptor set", func() {
			program.Reset()
			program.Set(pipeline)
			program.Write(0, vk.StorageBufferDynamic, buffer.Handle(), 0, 256)
			for n := range uint32(3) {
				program.Write(n+1, vk.StorageBuffer, buffer.Handle(), 0, 256)
			}
			made, err := sets.Make(&program, handles)
			if err != nil {
				t.Fatal(err)
			}
			sets.Free(made)
		}},
		{"command pool", func() {
			p, err := d.NewCommandPool()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.New(); err != nil {
				t.Fatal(err)
			}
			p.Close()
		}},
		{"timeline", func() { closed(d.NewTimeline()) }},
		{"query pool", func() {
			if d.Limits().TimestampBits != 0 {
				closed(d.NewQueryPool(16))
			}
		}},
		{"recording", func() {
			commands.Reset()
			commands.Fill(buffer.Handle(), 0, 256, 1)
			if err := l.pool.Record(b, vk.OneTime, &commands); err != nil {
				t.Fatal(err)
			}
		}},
		{"submission", func() {
			s, err := d.Submit(&vk.Submission{}, l.timeline)
			if err != nil {
				t.Fatal(err)
			}
			l.wait(s)
		}},
		{"heap usage", func() { d.HeapUsages() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name != "pipeline" {
				grown, _ := growth(2000, c.cycle, func() {})
				t.Logf("%.3f bytes a cycle", grown)
				require.Less(t, grown, smallestLeak)
				return
			}
			// Some drivers leak each pipeline they compile (Mesa 22.3: 19 kB), in plain C
			// too. What is left is the library's.
			grown, drivers := growth(400, c.cycle, func() {
				if err := vk.BarePipeline(d, kernelSpec(shaders.Nop)); err != nil {
					t.Fatal(err)
				}
			})
			t.Logf("%.1f bytes a cycle, %.1f of them the driver's", grown, drivers)
			// Two measurements of so much differ by a little.
			require.Less(t, grown-drivers, smallestLeak+drivers/100)
		})
	}
}

// The smallest piece that can leak takes 24 bytes.
const smallestLeak = 12.0

// growth is the C heap's, in bytes a cycle, and what it is for a control. The number of cycles is fixed: of a
// few, as many as a slow machine does in some time, the noise alone would look like a leak.
func growth(cycles int, cycle, control func()) (grown, controls float64) {
	measured(cycles, cycle) // what is made once
	measured(cycles, control)
	// Threads of the driver come and go, and so does noise; a leak comes every time.
	grown, controls = math.Inf(1), math.Inf(1)
	for range 9 {
		// A driver that gives back what it took earlier leaks nothing all the same.
		grown, controls = min(grown, measured(cycles, cycle)), min(controls, max(measured(cycles, control), 0))
		if grown-controls < 1 {
			break
		}
	}
	return grown, controls
}

func measured(cycles int, cycle func()) float64 {
	before, _ := memstat.InUse()
	for range cycles {
		cycle()
	}
	after, _ := memstat.InUse()
	return float64(after-before) / float64(cycles)
}

// Instances and devices too, the list of devices included.
func TestDevicesLeakNoCMemory(t *testing.T) {
	vktest.Options(t)
	if _, ok := memstat.InUse(); !ok {
		t.Skip("this C library keeps no such books")
	}
	// Loaders and drivers lose a kilobyte or so each time, in plain C too. The
	// library's part of an instance, its ring of messages, is 200 kB.
	const cycles, most = 30, 30 * 8 << 10
	for name, cycle := range map[string]func(){
		"open": func() {
			d, err := vk.Open(vk.Options{})
			require.NoError(t, err)
			require.NoError(t, d.Close())
		},
		"list": func() {
			_, err := vk.Devices()
			require.NoError(t, err)
		},
		"refuse": func() {
			_, err := vk.Open(vk.Options{Device: "no such"})
			require.Error(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 5 {
				cycle()
			}
			// The first that shows no leak will do; a leak comes every time.
			best := int64(math.MaxInt64)
			for range 9 {
				if best < most {
					break
				}
				before, _ := memstat.InUse()
				for range cycles {
					cycle()
				}
				after, _ := memstat.InUse()
				best = min(best, after-before)
			}
			t.Logf("%d bytes a cycle", best/cycles)
			require.Less(t, best, int64(most))
		})
	}
}

// Another goroutine allocates and collects all the time while objects are made: C must
// never read what the collector has taken.
func TestCreationSurvivesTheCollector(t *testing.T) {
	vktest.Options(t)
	d, err := vk.Open(vk.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	l := labOn(t, d)
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		var keep [64][]byte
		for i := 0; !stop.Load(); i++ {
			keep[i%64] = make([]byte, 1+i%5000)
			for j := range keep[i%64] {
				keep[i%64][j] = 0xa5
			}
			if i%500 == 0 {
				runtime.GC()
			}
		}
	})
	defer wg.Wait()
	defer stop.Store(true)

	// Each object is used, so that what was made from damaged memory shows.
	from, to := l.buffer(vk.BufferSpec{Size: 256, Role: vk.UploadMemory}), l.buffer(vk.BufferSpec{Size: 256, Role: vk.ReadbackMemory})
	for i := range 200 {
		// The one that compiles fast, with more arrays for the C side to read; now and then
		// the others.
		spec := kernelSpec(shaders.Nop)
		spec.Bindings = append(spec.Bindings, bindings(100, 4, vk.StorageBuffer)...)
		spec.Constants = append(spec.Constants, vk.SpecConstant{ID: 99, Value: uint32(i)})
		if i%25 == 0 {
			spec = kernelSpec(kernels[i/25%len(kernels)])
		}
		p, err := d.NewPipeline(spec)
		require.NoError(t, err)
		require.Equal(t, spec.Workgroup, p.Workgroup())
		pool, err := d.NewDescriptorPool(vk.PoolSize{Sets: 1, Storage: 8, Dynamic: 1})
		require.NoError(t, err)
		var program vk.SetProgram
		program.Set(p)
		for _, b := range spec.Bindings {
			program.Write(b.Number, b.Kind, from.Handle(), 0, 256)
		}
		_, err = pool.Make(&program, nil)
		require.NoError(t, err)
		middle, err := d.NewBuffer(vk.BufferSpec{Size: 256})
		require.NoError(t, err)
		for j := range from.Mapped() {
			from.Mapped()[j] = byte(i + j)
		}
		var c vk.Commands
		c.Copy(from.Handle(), 0, middle.Handle(), 0, 256)
		c.Barrier(transferWrite, transfers)
		c.Copy(middle.Handle(), 0, to.Handle(), 0, 256)
		c.Barrier(transferWrite, hostRead)
		l.run(&c, whole(from))
		require.NoError(t, d.Invalidate(whole(to)))
		require.Equal(t, from.Mapped(), to.Mapped())
		middle.Close()
		pool.Close()
		p.Close()
	}
}
