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
	// pool: in use: 1 slices of 4096 bytes are alive, 0 of them held by graphs and 0 by the metadata cache; 0 released ones wait, and pages are busy until serial 1; release the slices, clear the cache, close the graphs and wait for the stream first
	// idle: <nil>
}
