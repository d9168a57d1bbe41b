//go:build glfw

package window

/*
#cgo linux LDFLAGS: -lGL
#cgo windows LDFLAGS: -lopengl32
#cgo darwin LDFLAGS: -framework OpenGL
#cgo darwin CFLAGS: -DGL_SILENCE_DEPRECATION
#ifdef __APPLE__
#include <OpenGL/gl.h>
#else
#ifdef _WIN32
#include <windows.h>
#endif
#include <GL/gl.h>
#endif

static GLuint new_texture(void) {
	GLuint t;
	glGenTextures(1, &t);
	glBindTexture(GL_TEXTURE_2D, t);
	glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
	glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_LINEAR);
	glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, 0x812F); // clamp to edge
	glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, 0x812F);
	return t;
}

// draw fills the largest square in the middle of the window. Row 0 is the top.
static void draw(GLuint texture, int size, const void *pixels, int width, int height) {
	glViewport(0, 0, width, height);
	glClearColor(0.03f, 0.04f, 0.10f, 1);
	glClear(GL_COLOR_BUFFER_BIT);
	int side = width < height ? width : height;
	glViewport((width - side) / 2, (height - side) / 2, side, side);
	glEnable(GL_TEXTURE_2D);
	glBindTexture(GL_TEXTURE_2D, texture);
	glPixelStorei(GL_UNPACK_ALIGNMENT, 4);
	glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, size, size, 0, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
	glBegin(GL_QUADS);
	glTexCoord2f(0, 1); glVertex2f(-1, -1);
	glTexCoord2f(1, 1); glVertex2f(1, -1);
	glTexCoord2f(1, 0); glVertex2f(1, 1);
	glTexCoord2f(0, 0); glVertex2f(-1, 1);
	glEnd();
}

static int error(void) { return (int)glGetError(); }
*/
import "C"

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"github.com/go-gl/glfw/v3.3/glfw"
)

// ErrNoDisplay: there is no display to open a window on, or OpenGL does not work there.
var ErrNoDisplay = errors.New("no display")

// Options of Show.
type Options struct {
	Title string
	Size  int // of the picture, in pixels a side
	Side  int // of the window at first
	// Frame makes the next picture.
	Frame func(ctx context.Context, pixels []uint32) error
	// Label writes onto a picture before it is shown; took is how long Frame needed, on
	// average lately.
	Label func(pixels []uint32, took time.Duration)
	// PauseAt is the frame after which the picture stands still; 0: none.
	PauseAt int
	// Frames is how many frames are shown before the window closes; 0: no end.
	Frames int
	// Each is called after each turn of the loop, and may be nil.
	Each func(Control)
}

// Control is what Each can see and do.
type Control struct {
	Frame  int // pictures made so far
	Turn   int // turns of the loop, idle ones included
	window *glfw.Window
}

// Resize changes the window's size.
func (c Control) Resize(width, height int) { c.window.SetSize(width, height) }

// Minimise asks the window manager to minimise the window.
func (c Control) Minimise() { c.window.Iconify() }

// Minimised tells whether the window manager has.
func (c Control) Minimised() bool { return c.window.GetAttrib(glfw.Iconified) == glfw.True }

// Hide takes the window off the screen, and Restore brings it back, also when minimised.
func (c Control) Hide() { c.window.Hide() }

// Restore undoes Hide and Minimise.
func (c Control) Restore() { c.window.Show(); c.window.Restore() }

// Close closes the window, as the user's click does.
func (c Control) Close() { c.window.SetShouldClose(true) }

// Pixels is the size of what is drawn on.
func (c Control) Pixels() (width, height int) { return c.window.GetFramebufferSize() }

// start initialises GLFW. Without a display the binding writes a line to the standard
// logger and reports success; that nothing was initialised shows at the next call.
func start() (err error) {
	var said bytes.Buffer
	former := log.Writer()
	log.SetOutput(&said)
	defer log.SetOutput(former)
	defer func() {
		if r := recover(); r != nil {
			_, reason, _ := strings.Cut(said.String(), "PlatformError: ")
			err = fmt.Errorf("window: %w: %v: %s", ErrNoDisplay, r, strings.TrimSpace(reason))
		}
	}()
	if err := glfw.Init(); err != nil {
		return fmt.Errorf("window: %w: %v", ErrNoDisplay, err)
	}
	glfw.GetTime() // panics where Init did nothing
	return nil
}

// Show shows pictures until the window is closed, the user presses escape or q, or the
// context ends. Space stops and goes on.
func Show(ctx context.Context, o Options) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The binding panics for errors that it does not expect.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("window: GLFW: %v", r)
		}
	}()
	if err := start(); err != nil {
		return err
	}
	defer glfw.Terminate()
	glfw.WindowHint(glfw.ContextVersionMajor, 1)
	glfw.WindowHint(glfw.ContextVersionMinor, 1)
	w, err := glfw.CreateWindow(o.Side, o.Side, o.Title, nil, nil)
	if err != nil {
		return fmt.Errorf("window: %w: %v", ErrNoDisplay, err)
	}
	defer w.Destroy()
	w.SetSizeLimits(64, 64, glfw.DontCare, glfw.DontCare)
	w.MakeContextCurrent()
	glfw.SwapInterval(1)
	paused := false
	w.SetKeyCallback(func(_ *glfw.Window, key glfw.Key, _ int, action glfw.Action, _ glfw.ModifierKey) {
		switch {
		case action != glfw.Press:
		case key == glfw.KeyEscape || key == glfw.KeyQ:
			w.SetShouldClose(true)
		case key == glfw.KeySpace:
			paused = !paused
		}
	})
	texture := C.new_texture()
	clean, shown := make([]uint32, o.Size*o.Size), make([]uint32, o.Size*o.Size)
	var took time.Duration
	c := Control{window: w}
	// No wait below is longer than a tenth of a second, so the context's end is seen soon:
	// an event posted from its goroutine could come after GLFW has gone.
	for ; !w.ShouldClose() && ctx.Err() == nil; c.Turn++ {
		width, height := w.GetFramebufferSize()
		switch {
		case width == 0 || height == 0 || w.GetAttrib(glfw.Iconified) == glfw.True || w.GetAttrib(glfw.Visible) == glfw.False:
			glfw.WaitEventsTimeout(0.1)
		default:
			if still := paused || o.PauseAt > 0 && c.Frame >= o.PauseAt; !still {
				begin := time.Now()
				if err := o.Frame(ctx, clean); err != nil {
					if ctx.Err() != nil {
						return nil // the context's end closes the window, also in the middle of a frame
					}
					return err
				}
				last := time.Since(begin)
				if took += (last - took) / 16; c.Frame == 0 {
					took = last
				}
				c.Frame++
				copy(shown, clean)
				if o.Label != nil {
					o.Label(shown, took)
				}
			} else {
				glfw.WaitEventsTimeout(0.02)
			}
			C.draw(texture, C.int(o.Size), unsafe.Pointer(&shown[0]), C.int(width), C.int(height))
			if e := C.error(); e != 0 {
				return fmt.Errorf("window: OpenGL reports error %#x", int(e))
			}
			w.SwapBuffers()
			glfw.PollEvents()
		}
		if o.Frames > 0 && c.Frame >= o.Frames {
			break
		}
		if o.Each != nil {
			o.Each(c)
		}
	}
	return nil
}
