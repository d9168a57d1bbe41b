package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"vkcompute/cmd/vkbench/internal/scene"
	"vkcompute/cmdbuf"
)

type viewCommand struct {
	deviceFlags
	Scene   string `arg:"" optional:"" default:"heat" help:"heat, particles or mandelbrot."`
	Size    int    `default:"256" help:"Side of the picture that is computed, in pixels." placeholder:"PIXELS"`
	Window  int    `default:"768" help:"Side of the window at first, in pixels." placeholder:"PIXELS"`
	PauseAt int    `help:"Stand still after this frame." placeholder:"FRAME"`
	Frames  int    `help:"Close after this many frames." placeholder:"N"`
	Plain   bool   `help:"Write nothing onto the picture."`
}

// Help is shown by kong.
func (viewCommand) Help() string {
	return "Every frame is one replay of a graph recorded once. Space stops and goes on, escape and q close.\n\n" +
		"It is in a vkbench built with: go build -tags glfw ./cmd/vkbench"
}

// Validate is called by kong.
func (c *viewCommand) Validate() error {
	known := false
	var names []string
	for _, n := range scene.Names() {
		known = known || string(n) == c.Scene
		names = append(names, string(n))
	}
	switch {
	case !known:
		return fmt.Errorf("unknown scene %q: want %s", c.Scene, strings.Join(names, ", "))
	case c.Size < scene.MinSize || c.Size > scene.MaxSize:
		return fmt.Errorf("--size %d: want %d to %d", c.Size, scene.MinSize, scene.MaxSize)
	case c.Window < 64 || c.Window > 16384:
		return fmt.Errorf("--window %d: want 64 to 16384", c.Window)
	case c.PauseAt < 0 || c.Frames < 0:
		return errors.New("--pause-at and --frames: want 0 or more")
	}
	return c.deviceFlags.check()
}

// shown is what a window needs to know.
type shown struct {
	title   string
	size    int
	side    int
	pauseAt int
	frames  int
	frame   func(ctx context.Context, pixels []uint32) error
	label   func(pixels []uint32, took time.Duration)
}

func (c *viewCommand) Run(_ *streams, ctx *runContext) error {
	// Before a device is opened for nothing.
	if err := windows(); err != nil {
		return err
	}
	_, device, _, err := c.choose()
	if err != nil {
		return err
	}
	return withStream(job{device: device, emulated: c.emulated}, cmdbuf.Options{}, func(s *cmdbuf.Stream) error {
		pictures, err := scene.New(ctx, s, scene.Name(c.Scene), c.Size)
		if err != nil {
			return err
		}
		w := shown{title: "vkbench: " + c.Scene + ", " + device.Name, size: c.Size, side: c.Window, pauseAt: c.PauseAt, frames: c.Frames, frame: pictures.Frame}
		if !c.Plain {
			w.label = func(pixels []uint32, took time.Duration) {
				point := max(1, c.Size/192)
				scene.Write(pixels, c.Size, 3*point, 3*point, point, fmt.Sprintf("%.1f MS/FRAME, %d LAUNCHES", float64(took)/1e6, pictures.Launches()))
			}
		}
		return errors.Join(show(ctx, w), pictures.Close())
	})
}
