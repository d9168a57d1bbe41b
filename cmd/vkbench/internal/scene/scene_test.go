package scene

import (
	"bytes"
	"context"
	"flag"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/cmdbuf"
	"vkcompute/internal/testenv"
	"vkcompute/internal/vktest"
)

var (
	ctx    = context.Background()
	update = flag.Bool("update", false, "write the golden pictures anew")
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestBinariesMatchTheirSources(t *testing.T) {
	const skip = "VKCOMPUTE_SKIP_DRIFT"
	if os.Getenv(skip) == "1" {
		t.Skip(skip + " is set: GLSL and SPIR-V may differ")
	}
	for _, tool := range []string{"glslc", "spirv-val"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("want %s to compile the sources, found none: install glslc and spirv-tools, or set %s=1", tool, skip)
		}
	}
	dir := t.TempDir()
	out, err := exec.Command("go", "run", "./compile", dir).CombinedOutput()
	require.NoError(t, err, string(out))
	sources, err := filepath.Glob("*.comp")
	require.NoError(t, err)
	have, err := filepath.Glob("spv/*.spv")
	require.NoError(t, err)
	require.Len(t, have, len(sources))
	for _, f := range have {
		fresh, err := os.ReadFile(filepath.Join(dir, filepath.Base(f)))
		require.NoError(t, err)
		committed, err := os.ReadFile(f)
		require.NoError(t, err)
		require.True(t, bytes.Equal(fresh, committed), "%s is not what its source compiles to: run go generate ./cmd/vkbench/internal/scene", f)
	}
}

func newScene(t *testing.T, name Name, size int) *Scene {
	t.Helper()
	s, err := cmdbuf.NewStream(vktest.Open(t), cmdbuf.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(ctx)) })
	c, err := New(ctx, s, name, size)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// colours mirror those of colour.comp.
func paint(v float64) [3]float64 {
	colours := [5][3]float64{{0.03, 0.04, 0.10}, {0.24, 0.10, 0.44}, {0.76, 0.22, 0.40}, {0.98, 0.60, 0.25}, {1.00, 0.97, 0.80}}
	v = 4 * math.Sqrt(min(max(v, 0), 1))
	k := min(int(v), 3)
	var c [3]float64
	for i := range c {
		c[i] = 255 * (colours[k][i] + (v-float64(k))*(colours[k+1][i]-colours[k][i]))
	}
	return c
}

// close3 compares a pixel with a colour.
func close3(p uint32, c [3]float64, tolerance float64) bool {
	for i := range c {
		if math.Abs(float64(p>>(8*i)&0xff)-c[i]) > tolerance {
			return false
		}
	}
	return p>>24 == 0xff
}

func TestHeatIsWhatPlainGoComputes(t *testing.T) {
	const n, frames = 48, 5
	c := newScene(t, Heat, n)
	require.Equal(t, heatSteps+1, c.Launches())
	pixels := make([]uint32, n*n)
	for range frames {
		require.NoError(t, c.Frame(ctx, pixels))
	}
	x, y := make([]float64, n*n), make([]float64, n*n)
	for range frames * heatSteps {
		for i := range x {
			px, py := i%n, i/n
			u, v := (float64(px)+0.5)/n, (float64(py)+0.5)/n
			switch {
			case px == 0 || py == 0 || px == n-1 || py == n-1:
				y[i] = 0
			case math.Hypot(u-0.30, v-0.35) < 0.06 || math.Hypot(u-0.72, v-0.30) < 0.04 || math.Hypot(u-0.55, v-0.74) < 0.08:
				y[i] = 1
			default:
				y[i] = x[i] + 0.24*(x[i-1]+x[i+1]+x[i-n]+x[i+n]-4*x[i])
			}
		}
		x, y = y, x
	}
	for i, v := range x {
		require.True(t, close3(pixels[i], paint(v), 2), "pixel %d: want %v, found %#x", i, paint(v), pixels[i])
	}
}

func TestMandelbrotIsWhatPlainGoComputes(t *testing.T) {
	const n, frames = 64, 3
	c := newScene(t, Mandelbrot, n)
	pixels := make([]uint32, n*n)
	for range frames {
		require.NoError(t, c.Frame(ctx, pixels))
	}
	width := widest * zoom * zoom
	wrong := 0
	for i := range pixels {
		cx := -0.743643 + ((float64(i%n)+0.5)/n-0.5)*width
		cy := 0.131825 + ((float64(i/n)+0.5)/n-0.5)*width
		var x, y, v float64
		k := 0
		for ; k < 160 && x*x+y*y < 64; k++ {
			x, y = x*x-y*y+cx, 2*x*y+cy
		}
		if k < 160 {
			v = (float64(k) + 1 - math.Log2(0.5*math.Log2(x*x+y*y))) / 160
		}
		if !close3(pixels[i], paint(v), 4) {
			wrong++
		}
	}
	// Where the set is chaotic, float32 and float64 part.
	require.Less(t, wrong, n*n/20)
}

func TestParticlesStayAndMove(t *testing.T) {
	const n = 64
	c := newScene(t, Particles, n)
	first, later := make([]uint32, n*n), make([]uint32, n*n)
	require.NoError(t, c.Frame(ctx, first))
	for range 20 {
		require.NoError(t, c.Frame(ctx, later))
	}
	require.NotEqual(t, first, later)
	lit := 0
	for _, p := range later {
		if !close3(p, paint(0), 2) {
			lit++
		}
	}
	require.Greater(t, lit, n*n/5)
	require.Less(t, lit, n*n*19/20)
}

// The pictures are those that somebody has looked at.
func TestGoldenPictures(t *testing.T) {
	const n = 128
	for _, name := range Names() {
		c := newScene(t, name, n)
		pixels := make([]uint32, n*n)
		for range 40 {
			require.NoError(t, c.Frame(ctx, pixels))
		}
		got := picture(pixels, n)
		path := filepath.Join("testdata", string(name)+".png")
		if *update {
			require.NoError(t, os.MkdirAll("testdata", 0o755))
			var b bytes.Buffer
			require.NoError(t, png.Encode(&b, got))
			require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
		}
		f, err := os.Open(path)
		require.NoError(t, err)
		want, err := png.Decode(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.Less(t, difference(want, got), 6.0, "%s: mean difference of blocks", name)
	}
}

func picture(pixels []uint32, n int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, n, n))
	for i, p := range pixels {
		m.SetRGBA(i%n, i/n, color.RGBA{uint8(p), uint8(p >> 8), uint8(p >> 16), uint8(p >> 24)})
	}
	return m
}

// difference is the mean over blocks of eight by eight pixels.
func difference(a, b image.Image) float64 {
	r := a.Bounds()
	sum, n := 0.0, 0.0
	for y := 0; y < r.Dy(); y += 8 {
		for x := 0; x < r.Dx(); x += 8 {
			var d [3]float64
			for j := range 8 {
				for i := range 8 {
					p, q := color.RGBAModel.Convert(a.At(x+i, y+j)).(color.RGBA), color.RGBAModel.Convert(b.At(x+i, y+j)).(color.RGBA)
					d[0] += float64(p.R) - float64(q.R)
					d[1] += float64(p.G) - float64(q.G)
					d[2] += float64(p.B) - float64(q.B)
				}
			}
			for _, v := range d {
				sum += math.Abs(v) / 64
				n++
			}
		}
	}
	return sum / n
}

func TestBadScenes(t *testing.T) {
	s, err := cmdbuf.NewStream(vktest.Open(t), cmdbuf.Options{})
	require.NoError(t, err)
	_, err = New(ctx, s, "nosuch", 64)
	require.ErrorContains(t, err, `there is no "nosuch"`)
	for _, n := range []int{-1, 0, MinSize - 1, MaxSize + 1} {
		_, err = New(ctx, s, Heat, n)
		require.ErrorContains(t, err, "want 16 to 2048")
	}
	require.NoError(t, s.Close(ctx), "nothing was left open")
}

func TestLetters(t *testing.T) {
	const n = 64
	pixels := make([]uint32, n*n)
	for i := range pixels {
		pixels[i] = 0xff808080
	}
	Write(pixels, n, 2, 2, 1, "T")
	require.Equal(t, uint32(0xffffffff), pixels[2*n+2])
	require.Equal(t, uint32(0xffffffff), pixels[6*n+3])
	require.Equal(t, uint32(0xff202020), pixels[6*n+2], "darker around it")
	require.Equal(t, uint32(0xff808080), pixels[40*n+40])
	Write(pixels, n, 50, 60, 3, "OVER THE EDGE") // and nothing happens
	for _, r := range strings.ToUpper("12.3 ms/frame, 17 launches") {
		if r != ' ' {
			require.Contains(t, letters, r, "no letter %q", r)
		}
	}
}
