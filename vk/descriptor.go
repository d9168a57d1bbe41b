package vk

import (
	vulkan "github.com/vulkan-go/vulkan"
)

// SetProgram describes descriptor sets to be allocated and written together, in one
// crossing. The zero value is empty; a program may be reused after Reset.
type SetProgram struct {
	words []uint64
	sets  int
	head  int // index of the current set's number of writes
}

// Reset empties the program and keeps its memory.
func (p *SetProgram) Reset() { p.words, p.sets = p.words[:0], 0 }

// Sets is the number of sets described.
func (p *SetProgram) Sets() int { return p.sets }

// Set begins a set of the pipeline's layout.
func (p *SetProgram) Set(of *Pipeline) {
	p.head = len(p.words) + 1
	p.sets++
	p.words = append(p.words, of.SetLayout(), 0)
}

// Write binds a range of a buffer, in bytes, in the set begun last. The range must obey
// the alignment and size limits of the device.
func (p *SetProgram) Write(binding uint32, kind DescriptorKind, buffer, offset, size uint64) {
	p.words[p.head]++
	p.words = append(p.words, uint64(binding)|uint64(kind)<<32, buffer, offset, size)
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

// Free frees sets. No command that binds them may be pending.
func (p *DescriptorPool) Free(sets []uint64) { p.d.c.FreeDescriptorSets(bits(p.pool), sets) }

// Close destroys the pool and its sets. No command that binds one may be pending.
func (p *DescriptorPool) Close() {
	if p.pool == handle[vulkan.DescriptorPool](0) {
		return
	}
	vulkan.DestroyDescriptorPool(p.d.device, p.pool, nil)
	p.pool = handle[vulkan.DescriptorPool](0)
	p.d.died(kindDescriptorPool)
}
