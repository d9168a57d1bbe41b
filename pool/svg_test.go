package pool

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vkcompute/vk"
)

var update = flag.Bool("update", false, "write the golden files anew")

// busyManager is a manager after some work, the same each time.
func busyManager(t testing.TB, l Layout, many int) *Manager {
	t.Helper()
	tl := &fakeTimeline{}
	m, err := NewVirtual(withWindow(400*mib, 200*mib, 1024*mib), tl, Options{Layout: l})
	require.NoError(t, err)
	rnd := rand.New(rand.NewPCG(3, 4))
	var live []Slice
	keep := func(s Slice, err error) Slice {
		require.NoError(t, err)
		live = append(live, s)
		return s
	}
	for range many {
		keep(m.Alloc(64 + rnd.Uint64N(8*kib)))
	}
	for range 30 {
		keep(m.Alloc(100_000 + rnd.Uint64N(900_000)))
	}
	for range 2 {
		keep(m.Alloc(3*mib + rnd.Uint64N(20*mib)))
	}
	keep(m.Alloc(36_864_000))
	for range 20 {
		keep(m.AllocRole(20_000+rnd.Uint64N(200_000), vk.UploadMemory))
	}
	for range many {
		s := keep(m.AllocInfo(16 + rnd.Uint64N(200)))
		if rnd.IntN(2) == 0 {
			require.NoError(t, s.HandOver(User, Cache))
		}
	}
	for i := range 12 {
		require.NoError(t, live[i].RetainAs(Graph))
	}
	for i := range live {
		if rnd.IntN(100) >= 35 {
			continue
		}
		require.NoError(t, live[i].Use(uint64(1+rnd.IntN(3))))
		err := live[i].Release()
		if errors.Is(err, ErrNotHeld) {
			err = live[i].ReleaseAs(Cache)
		}
		require.NoError(t, err)
	}
	tl.complete(1)
	m.Drain()
	return m
}

func pictures(t testing.TB) map[string]*Manager {
	empty, _, _ := newFake(t, Options{})
	return map[string]*Manager{
		"empty":  empty,
		"ladder": busyManager(t, Layout{}, 250),
		"crowd": busyManager(t, Layout{Pools: []PoolSpec{
			{Name: `<small> & "many"`, Kind: Sliced, PageSize: 16 * kib, MaxSlice: 9 * kib}, {Kind: Exclusive},
		}}, 800),
	}
}

func TestPictures(t *testing.T) {
	for name, m := range pictures(t) {
		t.Run(name, func(t *testing.T) {
			valid(t, m)
			require.NoError(t, m.Map().Validate())
			var b bytes.Buffer
			require.NoError(t, m.WriteSVG(&b))
			golden := filepath.Join("testdata", "map-"+name+".svg")
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(golden, b.Bytes(), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, b.Bytes()), "differs from %s; look at the new picture, then use -update", golden)
			checkSVG(t, b.String())
		})
	}
}

// checkSVG wants a document that is well-formed, stands alone, and whose parts lie on the page.
func checkSVG(t *testing.T, s string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(s))
	var width, height float64
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		e, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		require.Contains(t, []string{"svg", "style", "rect", "line", "text", "tspan", "title"}, e.Name.Local)
		at := map[string]float64{}
		for _, a := range e.Attr {
			require.NotContains(t, a.Name.Local, "href")
			var f float64
			if _, err := fmt.Sscanf(a.Value, "%g", &f); err == nil {
				at[a.Name.Local] = f
			}
			if a.Name.Local == "class" {
				require.Contains(t, svgStyle, "."+a.Value, "a class without a colour")
			}
		}
		if e.Name.Local == "svg" {
			width, height = at["width"], at["height"]
		}
		for _, k := range []string{"x", "x1", "x2"} {
			require.GreaterOrEqual(t, at[k], 0.0)
			require.LessOrEqual(t, at[k]+at["width"], width+.01, "%v", e.Attr)
		}
		for _, k := range []string{"y", "y1", "y2"} {
			require.GreaterOrEqual(t, at[k], 0.0)
			require.LessOrEqual(t, at[k]+at["height"], height+.01, "%v", e.Attr)
		}
	}
	require.NotContains(t, s, "NaN")
	require.NotContains(t, s, "Inf")
}

// Both schemes have a colour for everything.
func TestBothSchemesHaveAllColours(t *testing.T) {
	light, dark, found := strings.Cut(svgStyle, "@media")
	require.True(t, found)
	for _, class := range regexp.MustCompile(`\.[a-z]+[0-9]?\{(fill|stroke):#`).FindAllString(light, -1) {
		class, _, _ = strings.Cut(class, "{")
		assert.Contains(t, dark, class+"{")
	}
	for s := range rangeStates {
		assert.Contains(t, light, "."+svgClass[s]+"{", RangeState(s).String())
	}
	assert.Equal(t, "RangeState(99)", RangeState(99).String())
}

func TestSizesAsPeopleWriteThem(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0 bytes", 1: "1 bytes", 1023: "1023 bytes", 1024: "1 KiB", 1536: "1.5 KiB", 150 * kib: "150 KiB",
		36 * mib: "36 MiB", 1 << 40: "1 TiB", 1<<64 - 1: "16 EiB",
	} {
		assert.Equal(t, want, size(n))
	}
	assert.Equal(t, []string{"0 %", "0 %", "2.5 %", "50 %", "100 %"},
		[]string{percent(1, 0), percent(0, 5), percent(1, 40), percent(1, 2), percent(7, 7)})
}

// A page is covered to the last pixel whatever the sizes of its ranges.
func TestARangeMayBeTooNarrowForAPixel(t *testing.T) {
	m, err := NewVirtual(vk.DeviceInfo{}, nil, Options{Layout: Layout{Pools: []PoolSpec{{Kind: Sliced, PageSize: 64 * mib}}}})
	require.NoError(t, err)
	var live []Slice
	for range 40_000 {
		s, err := m.Alloc(16)
		require.NoError(t, err)
		live = append(live, s)
	}
	_, err = m.Alloc(60 * mib)
	require.NoError(t, err)
	for i := 0; i < len(live); i += 2 {
		require.NoError(t, live[i].Release())
	}
	var b bytes.Buffer
	require.NoError(t, m.WriteSVG(&b))
	assert.Less(t, b.Len(), 40_000, "narrow ranges share a column")
	checkSVG(t, b.String())
}
