package scene

import (
	"context"
	"errors"
	"fmt"
	"math"

	"vkcompute/cmdbuf"
	"vkcompute/shaders"
)

// Name names a scene.
type Name string

const (
	Heat       Name = "heat"
	Particles  Name = "particles"
	Mandelbrot Name = "mandelbrot"
)

// Names are all scenes.
func Names() []Name { return []Name{Heat, Particles, Mandelbrot} }

const (
	// MinSize and MaxSize bound the side of the picture, in pixels.
	MinSize = 16
	MaxSize = 2048

	heatSteps = 16 // of diffusion in a frame
	particles = 1 << 14
	widest    = 2.6  // of the Mandelbrot set that is shown, at first
	zoom      = 0.97 // of the width, from a frame to the next
	narrowest = 4e-4 // where float32 begins to show; then it starts again
)

// Scene is a recorded picture that moves.
type Scene struct {
	name    Name
	size    int
	stream  *cmdbuf.Stream
	graph   *cmdbuf.Graph
	pixels  *cmdbuf.Tensor[uint32]
	width   float64 // of what the Mandelbrot set shows next
	closers []func() error
}

// New records a scene of size by size pixels.
func New(ctx context.Context, s *cmdbuf.Stream, name Name, size int) (*Scene, error) {
	if size < MinSize || size > MaxSize {
		return nil, fmt.Errorf("scene: a picture of %d pixels a side: want %d to %d", size, MinSize, MaxSize)
	}
	k, err := load()
	if err != nil {
		return nil, err
	}
	c := &Scene{name: name, size: size, stream: s, width: widest}
	if c.pixels, err = make1[uint32](c, nil, size*size); err == nil {
		switch name {
		case Heat:
			err = c.heat(ctx, k)
		case Particles:
			err = c.particles(ctx, k)
		case Mandelbrot:
			err = c.mandelbrot(ctx, k)
		default:
			err = fmt.Errorf("scene: there is no %q: want one of %q", name, Names())
		}
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// make1 makes a tensor of the scene: of n elements, or of host's.
func make1[T cmdbuf.Element](c *Scene, host []T, n int) (*cmdbuf.Tensor[T], error) {
	if host == nil {
		host = make([]T, n)
	}
	t, err := cmdbuf.Upload(c.stream, host, len(host))
	if err != nil {
		return nil, fmt.Errorf("scene: %w", err)
	}
	c.closers = append(c.closers, t.Close)
	return t, nil
}

func (c *Scene) record(ctx context.Context, f func(*cmdbuf.Capture) error) (err error) {
	if c.graph, err = c.stream.Capture(ctx, f); err != nil {
		return fmt.Errorf("scene %s: %w", c.name, err)
	}
	return nil
}

func (c *Scene) paint(r *cmdbuf.Capture, k kernels, field *cmdbuf.Tensor[float32], gain float32) error {
	return r.Launch(k.colour, cmdbuf.Uint32(uint32(c.size*c.size)), cmdbuf.Float32(gain), field, c.pixels)
}

func (c *Scene) heat(ctx context.Context, k kernels) error {
	a, err := make1[float32](c, nil, c.size*c.size)
	if err != nil {
		return err
	}
	b, err := make1[float32](c, nil, c.size*c.size)
	if err != nil {
		return err
	}
	return c.record(ctx, func(r *cmdbuf.Capture) error {
		for range heatSteps / 2 {
			if err := r.Launch(k.heat, cmdbuf.Uint32(uint32(c.size)), a, b); err != nil {
				return err
			}
			if err := r.Launch(k.heat, cmdbuf.Uint32(uint32(c.size)), b, a); err != nil {
				return err
			}
		}
		return c.paint(r, k, a, 1)
	})
}

// disc are the particles at first: on a disc around the middle, on their way round it.
func disc() []float32 {
	state := make([]float32, 4*particles)
	for i := range particles {
		// The golden angle spreads points evenly over a disc (Vogel, 1979).
		r := 0.42 * math.Sqrt((float64(i)+0.5)/particles)
		sin, cos := math.Sincos(float64(i) * math.Pi * (3 - math.Sqrt(5)))
		speed := 0.15 + 0.25*r
		state[4*i], state[4*i+1] = float32(0.5+r*cos), float32(0.5+r*sin)
		state[4*i+2], state[4*i+3] = float32(-speed*sin), float32(speed*cos)
	}
	return state
}

func (c *Scene) particles(ctx context.Context, k kernels) error {
	state, err := make1(c, disc(), 0)
	if err != nil {
		return err
	}
	count, err := make1[uint32](c, nil, c.size*c.size)
	if err != nil {
		return err
	}
	field, err := make1[float32](c, nil, c.size*c.size)
	if err != nil {
		return err
	}
	// As bright whatever the size of a pixel.
	gain := 0.06 * float32(c.size*c.size) / particles
	return c.record(ctx, func(r *cmdbuf.Capture) error {
		return errors.Join(
			r.Launch(shaders.Fill, cmdbuf.Uint32(0), count),
			r.Launch(k.particles, cmdbuf.Uint32(uint32(c.size)), cmdbuf.Uint32(particles), state, count),
			r.Launch(shaders.UintToFloat, count, field),
			c.paint(r, k, field, gain))
	})
}

func (c *Scene) mandelbrot(ctx context.Context, k kernels) error {
	field, err := make1[float32](c, nil, c.size*c.size)
	if err != nil {
		return err
	}
	return c.record(ctx, func(r *cmdbuf.Capture) error {
		if err := r.Launch(k.mandelbrot, cmdbuf.Uint32(uint32(c.size)), cmdbuf.Param("width", cmdbuf.Float32(widest)), field); err != nil {
			return err
		}
		return c.paint(r, k, field, 1)
	})
}

// Frame replays the graph and gives the picture, row by row from the top, red in the
// lowest byte. pixels has room for all.
func (c *Scene) Frame(ctx context.Context, pixels []uint32) error {
	if c.name == Mandelbrot {
		if err := c.graph.Set("width", cmdbuf.Float32(float32(c.width))); err != nil {
			return fmt.Errorf("scene: %w", err)
		}
		if c.width *= zoom; c.width < narrowest {
			c.width = widest
		}
	}
	if err := c.graph.Replay(); err != nil {
		return fmt.Errorf("scene: %w", err)
	}
	return c.pixels.ReadInto(ctx, pixels)
}

// Launches is how many a frame has.
func (c *Scene) Launches() int { return c.graph.Stats().Launches }

// Size is the side of the picture, in pixels.
func (c *Scene) Size() int { return c.size }

// Close gives back what the scene owns.
func (c *Scene) Close() error {
	var err error
	if c.graph != nil {
		err = c.graph.Close()
	}
	for _, f := range c.closers {
		err = errors.Join(err, f())
	}
	return err
}
