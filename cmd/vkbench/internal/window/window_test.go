//go:build glfw

package window

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vkcompute/cmd/vkbench/internal/xvfb"
)

// screen starts an X server without a screen, makes it the display, and gives the file in
// which it keeps what it shows.
func screen(t *testing.T) string {
	display, file := xvfb.Start(t, "800x600")
	t.Setenv("DISPLAY", display)
	t.Setenv("WAYLAND_DISPLAY", "")
	return file
}

// look reads a screen of Xvfb: an X window dump of 32 bits a pixel.
func look(file string) (*image.RGBA, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := io.ReadAll(f)
	if err != nil || len(all) < 100 {
		return nil, errors.Join(err, errors.New("no window dump"))
	}
	word := func(i int) int { return int(binary.BigEndian.Uint32(all[4*i:])) }
	// header size, …, width 4, height 5, …, byte order 7, bits per pixel 11, bytes per line 12, …, colours 19
	if word(11) != 32 {
		return nil, fmt.Errorf("%d bits a pixel", word(11))
	}
	width, height, line := word(4), word(5), word(12)
	at := word(0) + 12*word(19)
	m := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			p := all[at+y*line+4*x:]
			c := color.RGBA{p[2], p[1], p[0], 255}
			if word(7) == 1 { // the highest byte first
				c = color.RGBA{p[1], p[2], p[3], 255}
			}
			m.SetRGBA(x, y, c)
		}
	}
	return m, nil
}

// quarters is red, green, blue and white, from the upper left.
func quarters(size int) func(context.Context, []uint32) error {
	return func(_ context.Context, pixels []uint32) error {
		for i := range pixels {
			c := [2][2]uint32{{0xff0000ff, 0xff00ff00}, {0xffff0000, 0xffffffff}}
			pixels[i] = c[i/size/(size/2)][i%size/(size/2)]
		}
		return nil
	}
}

// shows waits until the screen has these colours at these places.
func shows(t *testing.T, file string, want map[image.Point]color.RGBA) {
	t.Helper()
	problem := ""
	for range 3000 {
		m, err := look(file)
		problem = ""
		if err != nil {
			problem = err.Error()
		} else {
			for p, c := range want {
				if found := m.RGBAAt(p.X, p.Y); found != c {
					problem = fmt.Sprintf("at %v: want %v, found %v", p, c, found)
				}
			}
		}
		if problem == "" {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal(problem)
}

var (
	red   = color.RGBA{255, 0, 0, 255}
	green = color.RGBA{0, 255, 0, 255}
	blue  = color.RGBA{0, 0, 255, 255}
	white = color.RGBA{255, 255, 255, 255}
	edge  = color.RGBA{8, 10, 26, 255} // beside the picture
)

func TestShowsThePicture(t *testing.T) {
	file := screen(t)
	looked := false
	err := Show(context.Background(), Options{Title: "test", Size: 64, Side: 300, Frame: quarters(64), Each: func(c Control) {
		if c.Frame < 3 || looked {
			return
		}
		looked = true
		shows(t, file, map[image.Point]color.RGBA{{20, 20}: red, {280, 20}: green, {20, 280}: blue, {280, 280}: white})
		c.Close()
	}})
	require.NoError(t, err)
	require.True(t, looked)
}

func TestResizing(t *testing.T) {
	file := screen(t)
	step, start := 0, time.Now()
	err := Show(context.Background(), Options{Title: "test", Size: 64, Side: 200, Frame: quarters(64), Each: func(c Control) {
		width, height := c.Pixels()
		switch {
		case step == 0:
			c.Resize(500, 300)
			step++
		case step == 1 && width == 500 && height == 300:
			step++ // one more turn, to draw at this size
		case step == 2:
			shows(t, file, map[image.Point]color.RGBA{{50, 150}: edge, {450, 150}: edge, {120, 20}: red, {380, 20}: green, {120, 280}: blue, {380, 280}: white})
			c.Close()
			step++
		}
		if time.Since(start) > time.Minute {
			t.Error("the window never had its size")
			c.Close()
		}
	}})
	require.NoError(t, err)
	require.Equal(t, 3, step)
}

// Off the screen no frame is made, and then it goes on.
func TestHiddenWindowRests(t *testing.T) {
	screen(t)
	hidden, back, turns := -1, false, 0
	err := Show(context.Background(), Options{Title: "test", Size: 64, Side: 200, Frame: quarters(64), Each: func(c Control) {
		switch {
		case c.Frame == 3 && hidden < 0:
			hidden = c.Frame
			c.Hide()
		case hidden >= 0 && !back:
			require.Equal(t, hidden, c.Frame, "a frame for nobody")
			if turns++; turns == 4 {
				back = true
				c.Restore()
			}
		case back && c.Frame > hidden+2:
			c.Close()
		}
	}})
	require.NoError(t, err)
	require.True(t, back)
}

func TestEnds(t *testing.T) {
	screen(t)
	frames := 0
	count := func(_ context.Context, _ []uint32) error { frames++; return nil }
	require.NoError(t, Show(context.Background(), Options{Size: 64, Side: 100, Frame: count, Frames: 4}))
	require.Equal(t, 4, frames)

	ctx, cancel := context.WithCancel(context.Background())
	require.NoError(t, Show(ctx, Options{Size: 64, Side: 100, Frame: count, Each: func(Control) { cancel() }}))

	frames = 0
	require.NoError(t, Show(context.Background(), Options{Size: 64, Side: 100, Frame: count, PauseAt: 2, Each: func(c Control) {
		if c.Turn == 8 {
			c.Close()
		}
	}}))
	require.Equal(t, 2, frames, "it stands still")

	boom := errors.New("boom")
	require.ErrorIs(t, Show(context.Background(), Options{Size: 64, Side: 100, Frame: func(context.Context, []uint32) error { return boom }}), boom)
}

func TestWithoutADisplay(t *testing.T) {
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	err := Show(context.Background(), Options{Size: 64, Side: 100, Frame: quarters(64)})
	require.ErrorIs(t, err, ErrNoDisplay)
}
