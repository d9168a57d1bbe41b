package launch

import (
	"context"
	"errors"

	"vkcompute/internal/cfloor"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// submitter submits an empty command buffer and waits, through the lowest layer of the
// library and in plain C: what every submission costs whatever is in it.
type submitter struct {
	d        *vk.Device
	commands *vk.CommandPool
	timeline *vk.Timeline
	work     vk.Submission
	plain    *plain
	floor    *cfloor.Floor
}

func newSubmitter(d *vk.Device) (*submitter, error) {
	s := &submitter{d: d}
	var err error
	fail := func() (*submitter, error) {
		s.close()
		return nil, err
	}
	if s.commands, err = d.NewCommandPool(); err != nil {
		return fail()
	}
	if s.timeline, err = d.NewTimeline(); err != nil {
		return fail()
	}
	buffer, err := s.commands.New()
	if err != nil {
		return fail()
	}
	if err = s.commands.Record(buffer, vk.Simultaneous, &vk.Commands{}); err != nil {
		return fail()
	}
	s.work.Buffers = []vk.CommandBuffer{buffer}
	if s.plain, err = newPlain(d, shaders.Nop); err != nil {
		return fail()
	}
	if s.floor, err = s.plain.chain(1, cfloor.Barrier{}, cfloor.Barrier{}); err != nil {
		return fail()
	}
	return s, nil
}

func (s *submitter) run(ctx context.Context, shots int) error {
	for range shots {
		serial, err := s.d.Submit(&s.work, s.timeline)
		if err != nil {
			return err
		}
		if err := s.timeline.Wait(ctx, serial); err != nil {
			// The work is pending, and the timeline may not be destroyed before it ends.
			return errors.Join(err, s.d.WaitIdle())
		}
	}
	return nil
}

func (s *submitter) close() {
	if s.plain != nil {
		s.plain.close()
	}
	if s.timeline != nil {
		s.timeline.Close()
	}
	if s.commands != nil {
		s.commands.Close()
	}
}
