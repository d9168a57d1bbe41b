package cmdbuf_test

import (
	"context"
	"fmt"
	"log"

	"vkcompute/cmdbuf"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// A launch, and then the same launch recorded once and replayed.
func Example() {
	ctx := context.Background()
	dev, err := vk.Open(vk.Options{}) // the best device; vk.Options{Device: "radeon"} to choose
	check(err)
	defer dev.Close()
	stream, err := cmdbuf.NewStream(dev, cmdbuf.Options{}) // pools and metadata cache inside
	check(err)
	defer stream.Close(ctx)
	x, err := cmdbuf.Upload(stream, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
	check(err)
	defer x.Close()
	y, err := cmdbuf.Upload(stream, []float32{10, 20, 30}, 3) // broadcasts
	check(err)
	defer y.Close()

	check(stream.Launch(shaders.Add, x, y, x)) // in place: the kernel declares it
	fmt.Println(x.Read(ctx))

	graph, err := stream.Capture(ctx, func(c *cmdbuf.Capture) error {
		return c.Launch(shaders.Add, x, y, x)
	})
	check(err)
	defer graph.Close()
	for range 1000 {
		check(graph.Replay())
	}
	fmt.Println(x.Read(ctx))
	// Output:
	// [11 22 33 14 25 36] <nil>
	// [10011 20022 30033 10014 20025 30036] <nil>
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
