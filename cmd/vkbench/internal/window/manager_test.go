//go:build glfw

package window

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// manager is the least of a window manager: it shows what wants to be shown, and minimises
// what asks for it, as the Inter-Client Communication Conventions say (4.1.3.1, 4.1.4). It
// speaks the X protocol (version 11) itself. Without a manager nobody minimises a window.
type manager struct {
	conn           net.Conn
	root           uint32
	state, change  uint32 // the atoms WM_STATE and WM_CHANGE_STATE
	iconic, normal atomic.Int32
	problem        atomic.Value
}

// Of the protocol: requests, events, and what they hold.
const (
	xChangeAttributes, xMap, xUnmap, xConfigure, xAtom, xProperty  = 2, 8, 10, 12, 16, 18
	xError, xReply, xMapRequest, xConfigureRequest, xClientMessage = 0, 1, 20, 23, 33

	eventMask, substructure  = 1 << 11, 1<<19 | 1<<20 // notify and redirect
	normalState, iconicState = 1, 3
)

// manage starts a manager on the display of the test, and ends it with the test.
func manage(t *testing.T) *manager {
	t.Helper()
	conn, err := net.Dial("unix", "/tmp/.X11-unix/X"+strings.TrimPrefix(os.Getenv("DISPLAY"), ":"))
	require.NoError(t, err)
	m := &manager{conn: conn}
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	require.NoError(t, m.begin())
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.run()
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
		if p := m.problem.Load(); p != nil {
			t.Error(p)
		}
	})
	return m
}

func (m *manager) begin() error {
	if _, err := m.conn.Write([]byte{'l', 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		return err
	}
	var head [8]byte
	if _, err := io.ReadFull(m.conn, head[:]); err != nil {
		return err
	}
	rest := make([]byte, 4*int(binary.LittleEndian.Uint16(head[6:])))
	if _, err := io.ReadFull(m.conn, rest); err != nil {
		return err
	}
	if head[0] != 1 {
		return fmt.Errorf("the X server refuses: %q", rest)
	}
	// The screens come after the vendor's name, padded, and the formats of 8 bytes each.
	vendor, formats := int(binary.LittleEndian.Uint16(rest[16:])), int(rest[21])
	m.root = binary.LittleEndian.Uint32(rest[32+(vendor+3)&^3+8*formats:])
	if err := m.send(xChangeAttributes, 0, m.root, eventMask, substructure); err != nil {
		return err
	}
	var err error
	if m.state, err = m.atom("WM_STATE"); err == nil {
		m.change, err = m.atom("WM_CHANGE_STATE")
	}
	return err
}

// send sends a request of 32-bit words.
func (m *manager) send(request, detail byte, words ...uint32) error {
	b := []byte{request, detail}
	b = binary.LittleEndian.AppendUint16(b, uint16(1+len(words)))
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	_, err := m.conn.Write(b)
	return err
}

// atom asks for the number of a name whose length is no more than 16.
func (m *manager) atom(name string) (uint32, error) {
	words := []uint32{uint32(len(name))}
	padded := append([]byte(name), 0, 0, 0)
	for i := 0; i < len(name); i += 4 {
		words = append(words, binary.LittleEndian.Uint32(padded[i:]))
	}
	if err := m.send(xAtom, 0, words...); err != nil {
		return 0, err
	}
	for {
		e, err := m.next()
		switch {
		case err != nil:
			return 0, err
		case e[0] == xError:
			return 0, fmt.Errorf("X error %d: is another manager there?", e[1])
		case e[0] == xReply:
			return binary.LittleEndian.Uint32(e[8:]), nil
		}
	}
}

func (m *manager) next() (e [32]byte, err error) {
	_, err = io.ReadFull(m.conn, e[:])
	return e, err
}

// run serves until the connection is closed. Errors of the server concern windows that
// have gone meanwhile.
func (m *manager) run() {
	for {
		e, err := m.next()
		if err != nil {
			return
		}
		word := func(at int) uint32 { return binary.LittleEndian.Uint32(e[at:]) }
		half := func(at int) uint32 { return uint32(binary.LittleEndian.Uint16(e[at:])) }
		switch e[0] & 0x7f { // the highest bit: another client sent it
		case xMapRequest:
			err = m.set(word(8), normalState)
		case xConfigureRequest:
			words := []uint32{word(8), half(26)}
			for i, v := range []uint32{half(16), half(18), half(20), half(22), half(24), word(12), uint32(e[1])} {
				if half(26)>>i&1 != 0 {
					words = append(words, v)
				}
			}
			err = m.send(xConfigure, 0, words...)
		case xClientMessage:
			if word(8) == m.change && word(12) == iconicState {
				err = m.set(word(4), iconicState)
			}
		}
		if err != nil {
			m.problem.Store(err)
			return
		}
	}
}

// set shows or minimises a window, and says so on it.
func (m *manager) set(window, state uint32) error {
	request, count := byte(xMap), &m.normal
	if state == iconicState {
		request, count = xUnmap, &m.iconic
	}
	// The window goes before it is said to be gone, and is said to be there before it comes.
	say := func() error { return m.send(xProperty, 0, window, m.state, m.state, 32, 2, state, 0) }
	show := func() error { return m.send(request, 0, window) }
	order := []func() error{say, show}
	if state == iconicState {
		order = []func() error{show, say}
	}
	for _, f := range order {
		if err := f(); err != nil {
			return err
		}
	}
	count.Add(1)
	return nil
}

// Minimised no frame is made, and restored it goes on. No wait is without an end: the
// window's context has one, and the X server, without which GLFW leaves the process, too.
func TestMinimisedWindowRests(t *testing.T) {
	screen(t)
	m := manage(t)
	ctx, end := context.WithTimeout(context.Background(), time.Minute)
	defer end()
	const (
		starting = iota
		asked
		resting
		restored
	)
	step, before, turns := starting, 0, 0
	err := Show(ctx, Options{Title: "test", Size: 64, Side: 200, Frame: quarters(64), Each: func(c Control) {
		switch step {
		case starting:
			if c.Frame == 3 {
				c.Minimise()
				step = asked
			}
		case asked: // frames go on until the manager has done it and the window has heard
			if c.Minimised() {
				step, before = resting, c.Frame
			}
		case resting:
			if c.Frame != before {
				t.Errorf("a frame for nobody: %d, want %d", c.Frame, before)
				c.Close()
			}
			if turns++; turns == 5 {
				c.Restore()
				step = restored
			}
		case restored:
			if c.Frame > before+2 {
				c.Close()
			}
		}
	}})
	require.NoError(t, err)
	require.NoError(t, ctx.Err(), "stuck at step %d: the manager minimised %d times and showed %d times", step, m.iconic.Load(), m.normal.Load())
	require.Equal(t, restored, step)
	require.EqualValues(t, 1, m.iconic.Load())
	require.GreaterOrEqual(t, m.normal.Load(), int32(2), "at first, and again")
}
