package cmdbuf

import (
	"hash/maphash"
	"strings"

	"vkcompute/shaders"
)

// memo remembers launches that were checked and worked out before. What a launch comes to
// depends on the kernel, on the views, which never change, and on the scalars; so one
// with the same of these is the same, and only its info and its descriptor set are
// looked up again.
//
// A launch is remembered the second time it is seen, or a scalar that changes every time
// would leave a copy behind each time.
type memo struct {
	launches map[string]*launch
	seed     maphash.Seed
	seen     [1024]uint64 // hashes of launches seen once
	key      []uint64
	usable   bool // the key is that of the launch at hand
}

// maxMemo bounds the launches remembered. A program that has more different ones forgets
// them all at once and learns anew: cheaper than an order of use for every launch.
const maxMemo = 4096

func newMemo() memo { return memo{launches: map[string]*launch{}, seed: maphash.MakeSeed()} }

// find builds the key of a launch and returns what is remembered of it. Arguments that
// are wrong in any way are left to prepare to explain.
func (m *memo) find(s *Stream, k *shaders.Kernel, args []Arg) *launch {
	m.usable = false
	p := s.programs[k]
	if p == nil {
		return nil
	}
	m.key = append(m.key[:0], p.id)
	for _, arg := range args {
		if a, ok := arg.(Scalar); ok {
			// Views count from 1, so no scalar looks like one.
			m.key = append(m.key, 0, uint64(a.dtype)<<32|uint64(a.bits))
			continue
		}
		v := viewOf(arg)
		if v == nil {
			return nil
		}
		if !v.alive() || v.stream.dev != s.dev {
			return nil
		}
		m.key = append(m.key, v.id)
	}
	m.usable = true
	return m.launches[keyString(m.key)]
}

// learn remembers the launch whose key was built last, if it has been seen before.
func (m *memo) learn(l *launch) {
	if !m.usable {
		return
	}
	key := keyString(m.key)
	h := maphash.String(m.seed, key)
	if slot := &m.seen[h%uint64(len(m.seen))]; *slot != h {
		*slot = h
		return
	}
	if len(m.launches) >= maxMemo {
		clear(m.launches)
	}
	m.launches[strings.Clone(key)] = &launch{
		program: l.program, groups: l.groups, bindings: append([]binding(nil), l.bindings...),
		plan: shaders.Plan{Info: append([]uint64(nil), l.plan.Info...), Push: append([]byte(nil), l.plan.Push...), Groups: l.plan.Groups},
	}
}
