package vk

import (
	"fmt"

	vulkan "github.com/vulkan-go/vulkan"
)

// RecordUse says how often a command buffer may run.
type RecordUse uint32

const (
	// OneTime: submitted once, then recorded again.
	OneTime = RecordUse(vulkan.CommandBufferUsageOneTimeSubmitBit)
	// Simultaneous: may be pending several times at once.
	Simultaneous = RecordUse(vulkan.CommandBufferUsageSimultaneousUseBit)
)

// CommandBuffer is a VkCommandBuffer of a CommandPool; 0 is none.
type CommandBuffer uint64

// CommandPool holds command buffers. It belongs to one stream or graph and is not safe
// for concurrent use.
type CommandPool struct {
	d    *Device
	pool vulkan.CommandPool
}

// NewCommandPool makes a pool for the device's queue family. Its command buffers are
// reset one by one, by recording.
func (d *Device) NewCommandPool() (*CommandPool, error) {
	if err := d.usable("vkCreateCommandPool"); err != nil {
		return nil, err
	}
	info := vulkan.CommandPoolCreateInfo{
		SType: vulkan.StructureTypeCommandPoolCreateInfo, QueueFamilyIndex: uint32(d.family),
		Flags: vulkan.CommandPoolCreateFlags(vulkan.CommandPoolCreateResetCommandBufferBit),
	}
	defer info.Free()
	var pool vulkan.CommandPool
	if err := d.result(int32(vulkan.CreateCommandPool(d.device, &info, nil, &pool)), "vkCreateCommandPool", ""); err != nil {
		return nil, err
	}
	d.born(kindCommandPool)
	return &CommandPool{d: d, pool: pool}, nil
}

// usable is the device's, and refuses a pool that was closed.
func (p *CommandPool) usable(call string) error {
	if err := p.d.usable(call); err != nil {
		return err
	}
	if p.pool == handle[vulkan.CommandPool](0) {
		return fmt.Errorf("vk: %s: the command pool is %w", call, ErrClosed)
	}
	return nil
}

// callRecord names in errors what no single function of Vulkan does.
const callRecord = "recording a command buffer"

// New allocates a primary command buffer; it lives as long as the pool.
func (p *CommandPool) New() (CommandBuffer, error) {
	if err := p.usable("vkAllocateCommandBuffers"); err != nil {
		return 0, err
	}
	info := vulkan.CommandBufferAllocateInfo{
		SType: vulkan.StructureTypeCommandBufferAllocateInfo, CommandPool: p.pool, Level: vulkan.CommandBufferLevelPrimary, CommandBufferCount: 1,
	}
	defer info.Free()
	list := make([]vulkan.CommandBuffer, 1)
	if err := p.d.result(int32(vulkan.AllocateCommandBuffers(p.d.device, &info, list)), "vkAllocateCommandBuffers", ""); err != nil {
		return 0, err
	}
	return CommandBuffer(bits(list[0])), nil
}

// Record records commands in one crossing, dropping what the command buffer held. It
// must not be pending. After an error it holds nothing that can run.
func (p *CommandPool) Record(b CommandBuffer, use RecordUse, c *Commands) error {
	if err := p.usable("vkBeginCommandBuffer"); err != nil {
		return err
	}
	if b == 0 {
		return fmt.Errorf("vk: %s: want one that New returned, found none", callRecord)
	}
	if err := c.check(); err != nil {
		return err
	}
	at, r := p.d.c.Record(uint64(b), uint32(use), c.words)
	p.d.in.drain()
	return p.d.result(r, callRecord, "%d commands, word %d", c.count, at)
}

// Close destroys the pool and its command buffers. None may be pending.
func (p *CommandPool) Close() {
	if p.pool == handle[vulkan.CommandPool](0) {
		return
	}
	vulkan.DestroyCommandPool(p.d.device, p.pool, nil)
	p.pool = handle[vulkan.CommandPool](0)
	p.d.died(kindCommandPool)
}
