package cmdbuf_test

import (
	"bytes"
	"context"
	"fmt"

	"vkcompute/cmdbuf"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// A graph is saved, and loaded on a stream that knows nothing of the first one's tensors.
func ExampleLoad() {
	ctx := context.Background()
	dev, err := vk.Open(vk.Options{})
	check(err)
	defer dev.Close()
	stream, err := cmdbuf.NewStream(dev, cmdbuf.Options{})
	check(err)
	x, err := cmdbuf.Upload(stream, []float32{1, 2, 3}, 3)
	check(err)
	graph, err := stream.Capture(ctx, func(c *cmdbuf.Capture) error {
		return c.Launch(shaders.Add, x, x, x)
	})
	check(err)
	var file bytes.Buffer
	check(graph.Save(ctx, &file, cmdbuf.SaveOptions{Contents: true, Views: map[string]cmdbuf.Arg{"x": x}}))
	check(graph.Close())
	check(x.Close())
	check(stream.Close(ctx))

	other, err := cmdbuf.NewStream(dev, cmdbuf.Options{})
	check(err)
	defer other.Close(ctx)
	loaded, err := cmdbuf.Load(ctx, other, &file, cmdbuf.LoadOptions{})
	check(err)
	defer loaded.Close()
	check(loaded.ReplayN(2))
	y, err := cmdbuf.TensorNamed[float32](loaded, "x")
	check(err)
	fmt.Println(y.Read(ctx))
	// Output:
	// [4 8 12] <nil>
}
