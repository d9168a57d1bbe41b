package pool

// Exclusive reports whether the slice has its page, one buffer, to itself. What a shader
// does beyond the end of a binding of such a slice meets nobody else's bytes.
func (s Slice) Exclusive() bool {
	if s.s == nil {
		return false
	}
	pool := s.s.page.pool
	return s.s.gen.Load() == s.gen && s.Size() > 0 && pool.spec.Kind == Exclusive
}
