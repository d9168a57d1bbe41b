// Jacobi solves the heat equation on a square plate: the temperature of its rim is given,
// and inside each point tends to the mean of its four neighbours.
//
// One graph holds a number of steps and is replayed until the plate is at rest. Nothing is
// copied for the neighbours: each is a view of the plate, shifted by one. The rate at
// which a step approaches the mean is a parameter of the graph.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"strings"
	"time"

	"vkcompute/cmdbuf"
	"vkcompute/shaders"
	"vkcompute/vk"
)

func main() {
	size := flag.Int("size", 64, "points on a side, the rim included")
	device := flag.String("device", "", "device to use, as vk.Choose describes")
	flag.Parse()
	p, err := solve(context.Background(), *device, *size)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: at rest after %d steps, %d replays, %v\n", p.device, p.steps, p.replays, p.took.Round(time.Millisecond))
	fmt.Print(p)
}

const stepsPerReplay = 32

// plate is a solved problem.
type plate struct {
	device         string
	size           int
	heat           []float32
	steps, replays int
	took           time.Duration
}

func solve(ctx context.Context, device string, size int) (*plate, error) {
	if size < 3 {
		return nil, fmt.Errorf("a plate of %d points: want at least 3 on a side", size)
	}
	dev, err := vk.Open(vk.Options{Device: device})
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	stream, err := cmdbuf.NewStream(dev, cmdbuf.Options{})
	if err != nil {
		return nil, err
	}
	defer stream.Close(ctx)

	p := &plate{device: dev.Info().Name, size: size, heat: make([]float32, size*size)}
	for x := range size {
		p.heat[x] = float32(math.Sin(math.Pi * float64(x) / float64(size-1))) // the upper edge
	}
	whole, err := cmdbuf.Upload(stream, p.heat, size, size)
	if err != nil {
		return nil, err
	}
	defer whole.Close()

	// The points inside, and their neighbours.
	window := func(y, x int) *cmdbuf.Tensor[float32] {
		v, e := whole.Range(0, y, y+size-2, 1)
		if e == nil {
			v, e = v.Range(1, x, x+size-2, 1)
		}
		err = errors.Join(err, e)
		return v
	}
	inside, up, down, left, right := window(1, 1), window(0, 1), window(2, 1), window(1, 0), window(1, 2)
	if err != nil {
		return nil, err
	}
	rate, err := cmdbuf.New[float32](stream, 1)
	if err != nil {
		return nil, err
	}
	defer rate.Close()

	graph, err := stream.Capture(ctx, func(c *cmdbuf.Capture) error {
		sum, err := cmdbuf.Temp[float32](c, size-2, size-2)
		if err != nil {
			return err
		}
		other, err := cmdbuf.Temp[float32](c, size-2, size-2)
		if err != nil {
			return err
		}
		if err := c.Launch(shaders.Fill, cmdbuf.Param("rate", cmdbuf.Float32(0.25)), rate); err != nil {
			return err
		}
		for range stepsPerReplay {
			if err := errors.Join(
				c.Launch(shaders.Add, up, down, sum),
				c.Launch(shaders.Add, left, right, other), // beside the one above: no barrier
				c.Launch(shaders.Add, sum, other, sum),
				c.Launch(shaders.Mul, sum, rate, inside),
			); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	defer graph.Close()

	start := time.Now()
	for last := p.heat; ; {
		const replays = 8
		if err := graph.ReplayN(replays); err != nil {
			return nil, err
		}
		p.replays += replays
		if p.heat, err = whole.Read(ctx); err != nil {
			return nil, err
		}
		moved := 0.0
		for i, h := range p.heat {
			moved = max(moved, math.Abs(float64(h-last[i])))
		}
		if moved < 1e-5 || p.replays > 1<<14 {
			break
		}
		last = p.heat
	}
	p.steps, p.took = p.replays*stepsPerReplay, time.Since(start)
	return p, nil
}

// exact is the temperature that the equation gives: with the sine on one edge the
// solution is sin(πx)·sinh(π(1-y))/sinh(π) (separation of variables).
func exact(size, y, x int) float64 {
	n := float64(size - 1)
	return math.Sin(math.Pi*float64(x)/n) * math.Sinh(math.Pi*(1-float64(y)/n)) / math.Sinh(math.Pi)
}

// String draws the plate.
func (p *plate) String() string {
	const shades = " .:-=+*#%@"
	step := max(1, p.size/32)
	var b strings.Builder
	for y := 0; y < p.size; y += 2 * step {
		for x := 0; x < p.size; x += step {
			b.WriteByte(shades[min(int(p.heat[y*p.size+x]*float32(len(shades))), len(shades)-1)])
		}
		b.WriteByte('\n')
	}
	return b.String()
}
