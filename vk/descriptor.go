package vk

import (
	"fmt"

	vulkan "github.com/vulkan-go/vulkan"

	"vkcompute/vk/internal/abi"
)

// SetProgram describes descriptor sets to be allocated and written together, in one
// crossing. The zero value is empty; a program may be reused after Reset.
//
// Each binding of a set's layout is written once: a driver reads through a descriptor
// nobody wrote, or writes one that the layout does not have, without looking. What does
// not fit is remembered and Make fails with the first such write.
type SetProgram struct {
	words   []uint64
	sets    int
	head    int       // index of the current set's number of writes
	of      *Pipeline // of the current set
	unwrote uint64    // its bindings not written yet, a bit each
	fault   string
}

// Reset empties the program and keeps its memory.
func (p *SetProgram) Reset() {
	p.words, p.sets, p.of, p.unwrote, p.fault = p.words[:0], 0, nil, 0, ""
}

// Sets is the number of sets described.
func (p *SetProgram) Sets() int { return p.sets }

// Set begins a set of the pipeline's layout.
func (p *SetProgram) Set(of *Pipeline) {
	p.complete()
	p.head = len(p.words) + 1
	p.sets++
	p.of = of
	p.unwrote = 1<<len(of.bindings) - 1 // all ones for 64, since the shift gives 0
	p.words = append(p.words, of.SetLayout(), 0)
}

// Write binds a range of a buffer, in bytes, in the set begun last. The range must obey
// the alignment and size limits of the device.
func (p *SetProgram) Write(binding uint32, kind DescriptorKind, buffer, offset, size uint64) {
	if p.of == nil {
		p.refuse("binding %d is written before any set was begun", binding)
		return
	}
	for i, b := range p.of.bindings {
		if b.Number != binding {
			continue
		}
		if b.Kind != kind || p.unwrote>>i&1 == 0 || buffer == 0 {
			p.refuse("binding %d is written with buffer %#x and descriptor kind %d: want it once, with a buffer and kind %d", binding, buffer, kind, b.Kind)
			return
		}
		p.unwrote &^= 1 << i
		p.words[p.head]++
		p.words = append(p.words, uint64(binding)|uint64(kind)<<32, buffer, offset, size)
		return
	}
	p.refuse("binding %d is written: the layout has no such binding", binding)
}

// complete refuses a set that was left unfinished.
func (p *SetProgram) complete() {
	if p.unwrote == 0 {
		return
	}
	for i, b := range p.of.bindings {
		if p.unwrote>>i&1 != 0 {
			p.refuse("binding %d was not written", b.Number)
			return
		}
	}
}

func (p *SetProgram) refuse(format string, args ...any) {
	if p.fault == "" {
		p.fault = fmt.Sprintf("set %d: ", p.sets) + fmt.Sprintf(format, args...)
	}
}

// PoolSize is the capacity of a descriptor pool. Drivers of CPU devices let a pool
// overflow; others fail, so the owner counts.
type PoolSize struct {
	Sets    uint32
	Storage uint32 // plain storage buffers in all sets together
	Dynamic uint32 // dynamic ones
}

// DescriptorPool holds descriptor sets. It belongs to one stream or graph and is not
// safe for concurrent use.
type DescriptorPool struct {
	d    *Device
	pool vulkan.DescriptorPool
	size PoolSize
}

// NewDescriptorPool makes a pool whose sets can be freed one by one.
func (d *Device) NewDescriptorPool(size PoolSize) (*DescriptorPool, error) {
	if err := d.usable("vkCreateDescriptorPool"); err != nil {
		return nil, err
	}
	if size.Sets == 0 {
		return nil, fmt.Errorf("vk: a descriptor pool for 0 sets: want at least 1")
	}
	pool, r := d.c.DescriptorPool(size.Sets, size.Storage, size.Dynamic, uint32(vulkan.DescriptorPoolCreateFreeDescriptorSetBit))
	if err := d.result(r, "vkCreateDescriptorPool", "%d sets, %d storage buffers, %d dynamic", size.Sets, size.Storage, size.Dynamic); err != nil {
		return nil, err
	}
	d.born(kindDescriptorPool)
	return &DescriptorPool{d: d, pool: handle[vulkan.DescriptorPool](pool), size: size}, nil
}

// Size is the pool's capacity.
func (p *DescriptorPool) Size() PoolSize { return p.size }

// Make allocates and writes the sets of a program; their handles are appended to dst in
// order. On an error none of them exists.
func (p *DescriptorPool) Make(program *SetProgram, dst []uint64) ([]uint64, error) {
	if err := p.d.usable("vkAllocateDescriptorSets"); err != nil {
		return dst, err
	}
	if p.pool == handle[vulkan.DescriptorPool](0) {
		return dst, fmt.Errorf("vk: vkAllocateDescriptorSets: the descriptor pool is %w", ErrClosed)
	}
	if program.complete(); program.fault != "" {
		return dst, &Error{Call: "vkUpdateDescriptorSets", Result: abi.BadStream, Detail: program.fault}
	}
	n := len(dst)
	for range program.sets {
		dst = append(dst, 0)
	}
	made, r := p.d.c.DescriptorSets(bits(p.pool), program.words, dst[n:])
	p.d.in.drain()
	if r < 0 {
		p.d.c.FreeDescriptorSets(bits(p.pool), dst[n:n+made])
		return dst[:n], p.d.result(r, "vkAllocateDescriptorSets", "set %d of %d", made+1, program.sets)
	}
	return dst, nil
}

// Free frees sets. No command that binds them may be pending. The sets of a closed pool
// are gone already.
func (p *DescriptorPool) Free(sets []uint64) {
	if p.pool != handle[vulkan.DescriptorPool](0) {
		p.d.c.FreeDescriptorSets(bits(p.pool), sets)
	}
}

// Close destroys the pool and its sets. No command that binds one may be pending.
func (p *DescriptorPool) Close() {
	if p.pool == handle[vulkan.DescriptorPool](0) {
		return
	}
	vulkan.DestroyDescriptorPool(p.d.device, p.pool, nil)
	p.pool = handle[vulkan.DescriptorPool](0)
	p.d.died(kindDescriptorPool)
}
