package pool_test

import (
	"context"
	"fmt"
	"log"

	"vkcompute/pool"
	"vkcompute/vk"
)

// A stream allocates, stamps what its batch uses, and releases. The range is
// free for the next command at once, and for the host when the serial completes.
func Example() {
	dev, err := vk.Open(vk.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	timeline, err := dev.NewTimeline()
	if err != nil {
		log.Fatal(err)
	}
	defer timeline.Close()
	m, err := pool.New(dev, timeline, pool.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	const serial = 1 // of the batch being recorded
	tensor, err := m.Alloc(4096)
	if err != nil {
		log.Fatal(err)
	}
	_ = tensor.Use(serial)
	_ = tensor.Release()

	next, err := m.Alloc(4096)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("same bytes:", next.Offset() == 0, "busy until serial", next.LastUse())
	fmt.Println("second release:", tensor.Release())
	fmt.Println(m.Install(pool.ExclusivePages()))

	_ = next.Release()
	if _, err := dev.Submit(&vk.Submission{}, timeline); err != nil {
		log.Fatal(err)
	}
	if err := timeline.Wait(context.Background(), serial); err != nil {
		log.Fatal(err)
	}
	fmt.Println("idle:", m.Install(pool.ExclusivePages()))
	// Output:
	// same bytes: true busy until serial 1
	// second release: release by user: pool: slice is released or was never allocated
	// pool: in use: 1 slices of 4096 bytes are alive, 0 of them held by graphs and 0 by the metadata cache; pages are busy until serial 1; release the slices, clear the cache, close the graphs and wait for the stream first
	// idle: <nil>
}

// What a layout needs can be asked without a device, for any device.
func ExampleDryRun() {
	const mib = 1 << 20
	laptop := vk.DeviceInfo{
		Limits:      vk.Limits{MinStorageBufferAlignment: 64, MaxMemoryAllocationCount: 4096},
		Heaps:       []vk.Heap{{Size: 500 * mib, DeviceLocal: true}},
		MemoryTypes: []vk.MemoryType{{Flags: vk.DeviceLocal | vk.HostVisible | vk.HostCoherent}},
	}
	weights := []pool.Demand{{Size: 3 * mib, Count: 100}, {Size: 1000, Count: 400}}
	for _, l := range []pool.Layout{pool.SubSlices(), pool.ExclusivePages()} {
		r, err := pool.DryRun(l, laptop, weights)
		fmt.Println(r.Stats.Total.Pages, "pages,", r.Heaps[0].Reserved/mib, "of", r.Heaps[0].Budget/mib, "MiB", err)
	}
	weights[0].Count = 200
	_, err := pool.DryRun(pool.SubSlices(), laptop, weights)
	fmt.Println(err != nil)
	// Output:
	// 45 pages, 353 of 400 MiB <nil>
	// 500 pages, 301 of 400 MiB <nil>
	// true
}
