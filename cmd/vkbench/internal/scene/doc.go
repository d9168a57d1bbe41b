// Package scene records what vkbench view shows: heat that spreads, particles that three
// masses attract, and a way into the Mandelbrot set. A scene is a graph on a stream,
// recorded once; every frame is one replay of it, and leaves the frame's pixels in a
// tensor.
//
// A Scene belongs to one goroutine. It owns its tensors and its graph, and is closed
// before its stream.
package scene
