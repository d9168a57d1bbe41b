package page

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/bench"
)

// whole is a report with something of every workload.
func whole(scale float64) *bench.Report {
	r := &bench.Report{Schema: bench.Schema,
		Environment: bench.Environment{Device: "A <device>", Driver: "a driver 1.2", API: "1.3.0", Go: "go1.26", CPU: "a processor", OS: "linux/amd64", Commit: "abcdef012345", Setup: "alone, WITH_A_VERY_LONG_VARIABLE_THAT_HAS_NO_PLACE_TO_BREAK_=33554432"},
		Warnings:    []string{"a warning & <more>"},
		Unsupported: []bench.Unsupported{{Workload: "decode", Case: "110M", Reason: "want much, the <device> has little"}}}
	add := func(workload, name, metric, unit string, v float64) *bench.Result {
		v *= scale
		r.Results = append(r.Results, bench.NewFigure(workload, name, metric, unit, []float64{v * 0.95, v, v * 1.2}))
		return &r.Results[len(r.Results)-1]
	}
	for i, m := range []string{"rebuild", "cached", "replay"} {
		for _, n := range []int{1, 16, 256, 1024} {
			x := add("launch", fmt.Sprintf("%s/n=%d", m, n), "wall", "ns/launch", 2000+15000/float64(n)-300*float64(i))
			x.Against("c", bench.NewFigure("launch", "", "wall", "ns/launch", []float64{1900, 1950, 2000}))
		}
	}
	for _, name := range []string{"upload", "download", "copy", "fill"} {
		for _, size := range []string{"4KiB", "1MiB", "32MiB"} {
			add("transfer", name+"/size="+size, "bandwidth", "GB/s", 12)
		}
	}
	add("transfer", "first-touch/size=1MiB", "wall", "ns/op", 3e6)
	for _, n := range []int{64, 512, 4096, 32768} {
		x := add("metacache", fmt.Sprintf("miss/entries=%d", n), "wall", "ns/op", 100)
		x.Against("port", bench.NewFigure("metacache", "", "wall", "ns/op", []float64{float64(10 * n), float64(10 * n), float64(10 * n)}))
	}
	add("metacache", "scalar/in-key", "wall", "ns/launch", 120)
	for _, shape := range []string{"float×1", "float×12", "vec4×4"} {
		for _, u := range []int{1, 4, 16} {
			add("peak", fmt.Sprintf("fma/%s/unroll=%d", shape, u), "arithmetic", "GFLOP/s", 10*float64(u))
		}
	}
	add("peak", "read", "bandwidth", "GB/s", 7)
	for i := range 30 {
		x := add("kernels", fmt.Sprintf("kernel%d", i), "wall", "ns/launch", 1000*float64(i+1))
		x.Reference = map[string]float64{"roof": 900, "go": 1e5}
		x.Note = "9 % of what memory allows"
	}
	add("pool", "cycle/live=64", "wall", "ns/op", 80)
	add("zero", "nothing", "hits", "%", 0)
	return r
}

func made(t *testing.T, sources ...Source) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Write(&b, sources))
	return b.String()
}

func TestPageStandsAlone(t *testing.T) {
	for name, text := range map[string]string{"one": made(t, Source{"first", whole(1)}), "two": made(t, Source{"first", whole(1)}, Source{"second", whole(1.1)})} {
		require.NotRegexp(t, `https?://|//[a-z]|src=|@import|url\(|<link|<script`, strings.ReplaceAll(text, "</", "<"), name)
		require.Contains(t, text, `name="viewport"`)
		require.Contains(t, text, "prefers-color-scheme:dark")
		require.NotContains(t, text, "NaN", name)
		require.NotContains(t, text, "Inf", name)
		require.NotContains(t, text, "<device>", "what a report says is escaped")
		require.Contains(t, text, "A &lt;device&gt;")
	}
}

// Every plot is well-formed XML, inside its frame, and every figure is in a table.
func TestPlots(t *testing.T) {
	r := whole(1)
	text := made(t, Source{"first", r})
	svgs := regexp.MustCompile(`(?s)<svg viewBox="0 0 (\d+) (\d+)".*?</svg>`).FindAllStringSubmatch(text, -1)
	require.Greater(t, len(svgs), 9)
	numbers := regexp.MustCompile(` (x|x1|x2|cx)="([-0-9.]+)"`)
	for _, s := range svgs {
		d := xml.NewDecoder(strings.NewReader(s[0]))
		for {
			_, err := d.Token()
			if err == io.EOF {
				break
			}
			require.NoError(t, err, s[0])
		}
		for _, n := range numbers.FindAllStringSubmatch(s[0], -1) {
			var v float64
			fmt.Sscan(n[2], &v)
			require.True(t, v >= 0 && v <= width, "%s in %s", n[0], s[0][:200])
		}
	}
	for _, x := range r.Results {
		require.Contains(t, text, "<tr><td>"+html.EscapeString(x.Case))
	}
}

func TestWriteRefuses(t *testing.T) {
	require.Error(t, Write(io.Discard, nil))
	require.Error(t, Write(io.Discard, make([]Source, most+1)))
	bad := whole(1)
	bad.Results[0].Samples = nil
	require.ErrorIs(t, Write(io.Discard, []Source{{"bad", bad}}), bench.ErrReport)
}

func TestAxis(t *testing.T) {
	for _, c := range [][2]float64{{0, 0}, {1, 1}, {0.001, 1e9}, {3, 40}, {0, 7}, {-2, 5}, {1e-7, 2e-7}, {99, 1001}} {
		for _, a := range []axis{newAxis(c[0], c[1], 10, 200), logAxis(c[0], c[1], 10, 200)} {
			for _, v := range c {
				at := a.at(v)
				require.True(t, at >= 10-1e-9 && at <= 200+1e-9 && !math.IsNaN(at), "%v at %v", c, at)
			}
			ticks := a.ticks()
			require.NotEmpty(t, ticks, c)
			require.LessOrEqual(t, len(ticks), 9, "%v: %v", c, ticks)
		}
	}
	for v, want := range map[float64]string{0: "0", 0.5: "0.5", 1: "1", 12.34: "12.3", 1234: "1234", 12345: "12.3k", 1e6: "1M", 2.5e9: "2.5G", 100: "100"} {
		require.Equal(t, want, short(v))
	}
}

// skipBrowser, set to 1, is for machines without Chromium.
const skipBrowser = "VKCOMPUTE_SKIP_BROWSER"

// browser runs Chromium without a window on an HTML file.
func browser(t *testing.T, file string, flags ...string) []byte {
	t.Helper()
	if os.Getenv(skipBrowser) == "1" {
		t.Skip(skipBrowser + " is set: nobody looks at the page")
	}
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		t.Fatalf("want Chromium to look at the page, found none: install chromium, or set %s=1", skipBrowser)
	}
	args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1", "--virtual-time-budget=3000", "--user-data-dir=" + t.TempDir()}, flags...)
	c := exec.Command(path, append(args, "file://"+file)...)
	out, err := c.Output()
	require.NoError(t, err)
	return out
}

// A window without a head is at least 500 wide, so the phone is a frame.
func frame(t *testing.T, text, script string, wide, high int) string {
	file := filepath.Join(t.TempDir(), "frame.html")
	page := fmt.Sprintf(`<body style="margin:0;background:#f0f"><iframe id="phone" srcdoc="%s" style="border:0;width:%dpx;height:%dpx"></iframe>%s</body>`, html.EscapeString(text), wide, high, script)
	require.NoError(t, os.WriteFile(file, []byte(page), 0o644))
	return file
}

// On a phone nothing sticks out to the side, no plot is smaller than the screen, and no
// text in it is too small to read.
func TestPhone(t *testing.T) {
	const measure = `<pre id="found"></pre><script>
document.getElementById("phone").onload = e => {
  const d = e.target.contentDocument, r = d.documentElement
  const small = [...d.querySelectorAll("svg text")].map(x => x.getBoundingClientRect().height)
  const out = [...d.querySelectorAll("body *")].filter(x => !x.closest(".scroll") && !x.closest("details") && x.getBoundingClientRect().right > 375.5).map(x => x.tagName + ":" + x.textContent.slice(0, 30))
  document.getElementById("found").textContent = "width=" + r.scrollWidth + " least=" + Math.min(...small).toFixed(1) + " out=" + out.length + " " + out.slice(0, 3).join("|")
}</script>`
	for name, text := range map[string]string{"one": made(t, Source{"first", whole(1)}), "two": made(t, Source{"first", whole(1)}, Source{"second", whole(1.3)})} {
		out := string(browser(t, frame(t, text, measure, 375, 800), "--dump-dom"))
		m := regexp.MustCompile(`width=(\d+) least=([0-9.]+) out=(\d+) ?(.*)</pre>`).FindStringSubmatch(out)
		require.NotNil(t, m, "the page did not load")
		require.Equal(t, "375", m[1], name)
		require.Equal(t, "0", m[3], "%s: sticks out: %s", name, m[4])
		var least float64
		fmt.Sscan(m[2], &least)
		require.GreaterOrEqual(t, least, 11.0, "%s: height of the smallest text", name)
	}
}

// The page is light or dark as the viewer wants it, and what is on it stands out.
func TestSchemes(t *testing.T) {
	text := made(t, Source{"first", whole(1)})
	for scheme, paper := range map[string]color.RGBA{"light": {0xf6, 0xf5, 0xf1, 0xff}, "dark": {0x13, 0x13, 0x12, 0xff}} {
		shot := filepath.Join(t.TempDir(), "shot.png")
		flags := []string{"--screenshot=" + shot, "--window-size=800,1400"}
		if scheme == "dark" {
			flags = append(flags, "--blink-settings=preferredColorScheme=0")
		} else {
			flags = append(flags, "--blink-settings=preferredColorScheme=1")
		}
		browser(t, frame(t, text, "", 375, 1400), flags...)
		f, err := os.Open(shot)
		require.NoError(t, err)
		picture, err := png.Decode(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.Equal(t, paper, color.RGBAModel.Convert(picture.At(3, 3)), scheme)
		ink, colours := inks(picture, paper)
		require.Greater(t, ink, 3000, "%s: text", scheme)
		require.Greater(t, colours, 500, "%s: lines and bars", scheme)
		require.Equal(t, color.RGBA{0xff, 0, 0xff, 0xff}, color.RGBAModel.Convert(picture.At(790, 700)), "beside the phone")
	}
}

// inks counts pixels that stand out from the paper, and those of a colour.
func inks(p image.Image, paper color.RGBA) (ink, colours int) {
	for y := range 1400 {
		for x := range 375 {
			c := color.RGBAModel.Convert(p.At(x, y)).(color.RGBA)
			far := func(a, b uint8) int { return max(int(a)-int(b), int(b)-int(a)) }
			if far(c.R, paper.R)+far(c.G, paper.G)+far(c.B, paper.B) > 400 {
				ink++
			}
			if max(far(c.R, c.G), far(c.G, c.B), far(c.R, c.B)) > 100 {
				colours++
			}
		}
	}
	return ink, colours
}
