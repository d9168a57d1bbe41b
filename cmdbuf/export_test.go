package cmdbuf

// StopPolling makes the stream ask for its progress as little as it ever does. What the
// host has seen complete the validation layer takes as ordered with everything that comes
// later, so a stream that asks with each submission hides barriers forgotten between them.
// It asks while it has no command buffer left, so it is given all that it may have.
func (s *Stream) StopPolling() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for b := &s.batch; b.buffers < maxBuffers; b.buffers++ {
		buffer, err := b.pool.New()
		if err != nil {
			return err
		}
		b.free = append(b.free, buffer)
	}
	return nil
}

// ForgetHazards makes the stream believe that nothing before has touched any memory.
func (s *Stream) ForgetHazards() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hazards.clear()
}
