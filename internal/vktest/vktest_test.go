package vktest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/testenv"
	"vkcompute/internal/vktest"
	"vkcompute/vk"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// recorder is a test that fails on paper only.
type recorder struct {
	testing.TB
	cleanups []func()
	failures []string
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Error(a ...any)   { r.failures = append(r.failures, fmt.Sprint(a...)) }
func (r *recorder) Errorf(f string, a ...any) {
	r.failures = append(r.failures, fmt.Sprintf(f, a...))
}

// end runs the cleanups as the end of a test does.
func (r *recorder) end() string {
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
	return strings.Join(r.failures, "\n")
}

func TestOpenClosesASilentDevice(t *testing.T) {
	r := &recorder{TB: t}
	d := vktest.Open(r)
	b, err := d.NewBuffer(vk.BufferSpec{Size: 64})
	require.NoError(t, err)
	r.Cleanup(b.Close)
	require.Empty(t, r.end())
	_, err = d.NewTimeline()
	require.ErrorIs(t, err, vk.ErrClosed)
}

// A device that its test closed, or lost, fails nothing.
func TestOpenTakesAClosedDevice(t *testing.T) {
	r := &recorder{TB: t}
	require.NoError(t, vktest.Open(r).Close())
	require.Empty(t, r.end())
}

func TestMessageFailsTheTest(t *testing.T) {
	if !testenv.Require(t).Oracle {
		t.Skip("the oracle was switched off on purpose")
	}
	r := &recorder{TB: t}
	d := vktest.Open(r)
	b, err := d.NewBuffer(vk.BufferSpec{Size: 64})
	require.NoError(t, err)
	pool, err := d.NewCommandPool()
	require.NoError(t, err)
	commands, err := pool.New()
	require.NoError(t, err)
	var c vk.Commands
	c.Fill(b.Handle(), 2, 4, 0) // recorded only: the offset is no multiple of 4
	require.NoError(t, pool.Record(commands, vk.OneTime, &c))
	pool.Close()
	b.Close()
	require.Contains(t, r.end(), "VUID-vkCmdFillBuffer-dstOffset-00025")
}

// It stays open, as the objects left behind are of it.
func TestObjectLeftBehindFailsTheTest(t *testing.T) {
	r := &recorder{TB: t}
	d := vktest.Open(r)
	_, err := d.NewTimeline()
	require.NoError(t, err)
	said := r.end()
	require.Contains(t, said, vk.ErrObjectsAlive.Error())
	require.Contains(t, said, "1 timelines")
}
