package cmdbuf

import (
	"fmt"
	"slices"

	"vkcompute/pool"
	"vkcompute/shaders"
	"vkcompute/vk"
)

// On a device opened for untrusted shaders, every kernel that is not built in is taken for
// one that does anything its instructions can express, whatever it declares. What keeps it
// in: the driver holds its accesses to the binding, or to the buffer; the buffers it is
// given are then nobody else's; its info is its own, since infos are shared by their
// words, and a kernel that wrote to one would change the shapes that others see; barriers
// are planned for the whole buffer; and addresses, which no driver checks, are refused.

// untrusted tells whether a kernel has to be kept in.
func untrusted(d *vk.Device, k *shaders.Kernel) bool {
	return d.Robustness() != vk.NotRobust && !slices.Contains(shaders.Builtins(), k)
}

// What a module is searched for. The numbers are those of the SPIR-V specification.
const (
	spirvHeaderWords   = 5
	opMemoryModel      = 14
	opTypePointer      = 32
	opTypeForward      = 39
	opVariable         = 59
	addressingLogical  = 0
	storageInput       = 1
	storageUniform     = 2
	storageWorkgroup   = 4
	storagePrivate     = 6
	storageFunction    = 7
	storagePush        = 9
	storageBufferClass = 12
)

// confinable refuses a module with pointers to memory that no binding names. It looks at
// the types, since drivers may run a module that does not declare the capability.
func confinable(m *shaders.Module) error {
	if slices.Contains(m.Capabilities, shaders.CapPhysicalStorageAddress) {
		return fmt.Errorf("%w: it declares buffer device addresses, which no robust access covers; bind its buffers", ErrUntrusted)
	}
	refused := func(what string, value uint32) error {
		return fmt.Errorf("%w: it has %s %d, with which it could reach memory that is not bound; bind its buffers", ErrUntrusted, what, value)
	}
	for at := spirvHeaderWords; at < len(m.Words); {
		n, op := int(m.Words[at]>>16), m.Words[at]&0xffff
		if n == 0 || n > len(m.Words)-at {
			return fmt.Errorf("%w: its code is cut short at word %d", ErrUntrusted, at)
		}
		operand := func(i int) uint32 {
			if i >= n {
				return ^uint32(0) // nothing allowed has this value
			}
			return m.Words[at+i]
		}
		class := 0 // which operand is a storage class
		switch op {
		case opMemoryModel:
			if model := operand(1); model != addressingLogical {
				return refused("addressing model", model)
			}
		case opTypePointer, opTypeForward:
			class = 2
		case opVariable:
			class = 3
		}
		if class > 0 {
			switch c := operand(class); c {
			case storageInput, storageUniform, storageWorkgroup, storagePrivate, storageFunction, storagePush, storageBufferClass:
			default:
				return refused("pointers of storage class", c)
			}
		}
		at += n
	}
	return nil
}

// checkAlone refuses memory that an untrusted kernel would share with others.
func (l *launch) checkAlone() error {
	if !l.program.alone {
		return nil
	}
	for i := range l.bindings {
		b := &l.bindings[i]
		if !b.slice.Valid() {
			continue
		}
		if !b.slice.Exclusive() {
			return argumentError(l.program.kernel, int(b.param), fmt.Errorf("%w: it lies on a page with others, where the device %q does not hold an untrusted kernel to its own; make the stream with Options{Pools: pool.ExclusivePages()}", ErrUntrusted, l.program.device))
		}
		b.reach = b.slice.Buffer().Size()
	}
	return nil
}

// touches is what a command may do to the buffer of a binding.
func (b *binding) touches() (lo, hi uint64, access shaders.Access) {
	if b.reach != 0 {
		return 0, b.reach, shaders.ReadWrite
	}
	return b.offset, b.offset + b.size, b.access
}

// ownInfo allocates an info for a kernel that may write to it, or beyond its end: as large
// as the descriptor that names it, and out of the staging pools, where it can have a page
// of its own.
func (s *Stream) ownInfo(p *program, size uint64) (pool.Slice, error) {
	slice, err := s.pools.AllocRole(s.pools.InfoRange(size), vk.UploadMemory)
	if err == nil && p.alone && !slice.Exclusive() {
		slice.Release()
		return pool.Slice{}, fmt.Errorf("%w: the staging pools give it no page of its own, without which the device %q does not hold an untrusted kernel to it; make the stream with Options{Pools: pool.ExclusivePages()}", ErrUntrusted, p.device)
	}
	return slice, err
}
