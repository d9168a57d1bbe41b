package vk

import (
	"fmt"

	vulkan "github.com/vulkan-go/vulkan"

	"vkcompute/vk/internal/abi"
)

// Stage and access bits of barriers.
const (
	StageCompute  = uint32(vulkan.PipelineStageComputeShaderBit)
	StageTransfer = uint32(vulkan.PipelineStageTransferBit)
	StageIndirect = uint32(vulkan.PipelineStageDrawIndirectBit)
	StageHost     = uint32(vulkan.PipelineStageHostBit)
	StageTop      = uint32(vulkan.PipelineStageTopOfPipeBit)
	StageBottom   = uint32(vulkan.PipelineStageBottomOfPipeBit)

	AccessShaderRead    = uint32(vulkan.AccessShaderReadBit)
	AccessShaderWrite   = uint32(vulkan.AccessShaderWriteBit)
	AccessTransferRead  = uint32(vulkan.AccessTransferReadBit)
	AccessTransferWrite = uint32(vulkan.AccessTransferWriteBit)
	AccessIndirectRead  = uint32(vulkan.AccessIndirectCommandReadBit)
	AccessHostRead      = uint32(vulkan.AccessHostReadBit)
	AccessHostWrite     = uint32(vulkan.AccessHostWriteBit)
)

// Scope is one side of a barrier: which stages, and which of their accesses.
type Scope struct{ Stages, Access uint32 }

// Commands is a sequence of commands in the form the C side decodes (abi.h), built in
// Go without a crossing and recorded in one. The zero value is empty. Handles are
// those of Vulkan; offsets and sizes are in bytes and checked by the caller.
//
// What drivers would answer with a crash, such as a set bound with the wrong number of
// dynamic offsets, is not added: recording then fails and names the first such command.
type Commands struct {
	words []uint64
	count int
	fault string
}

func head(operation, words int, a uint32) uint64 {
	return uint64(operation) | uint64(words)<<8 | uint64(a)<<32
}

// Reset empties the sequence and keeps its memory.
func (c *Commands) Reset() { c.words, c.count, c.fault = c.words[:0], 0, "" }

// Len is the number of commands.
func (c *Commands) Len() int { return c.count }

// Words is the encoded form, to be read only.
func (c *Commands) Words() []uint64 { return c.words }

func (c *Commands) add(words ...uint64) {
	c.words = append(c.words, words...)
	c.count++
}

// refuse remembers the first command that cannot be recorded.
func (c *Commands) refuse(format string, args ...any) {
	if c.fault == "" {
		c.fault = fmt.Sprintf("command %d: ", c.count) + fmt.Sprintf(format, args...)
	}
}

// check returns what refuse remembered.
func (c *Commands) check() error {
	if c.fault == "" {
		return nil
	}
	return &Error{Call: callRecord, Result: abi.BadStream, Detail: c.fault}
}

// BindPipeline selects the shader of the following dispatches.
func (c *Commands) BindPipeline(p *Pipeline) { c.add(head(abi.OpPipeline, 2, 0), p.Handle()) }

// BindSet binds set 0 with one dynamic offset.
func (c *Commands) BindSet(p *Pipeline, set uint64, dynamicOffset uint32) {
	if p.dynamic != 1 || set == 0 {
		c.refuse("set %#x is bound with a dynamic offset: want a set of a layout with 1 dynamic binding, it has %d", set, p.dynamic)
		return
	}
	c.add(head(abi.OpSetDynamic, 3, dynamicOffset), p.Layout(), set)
}

// BindStaticSet binds set 0 of a layout without dynamic bindings.
func (c *Commands) BindStaticSet(p *Pipeline, set uint64) {
	if p.dynamic != 0 || set == 0 {
		c.refuse("set %#x is bound without a dynamic offset: want a set of a layout without dynamic bindings, it has %d", set, p.dynamic)
		return
	}
	c.add(head(abi.OpSet, 3, 0), p.Layout(), set)
}

// Push sets the push constants from offset 0; data is a whole number of 4-byte values.
func (c *Commands) Push(p *Pipeline, data []byte) {
	if len(data) == 0 || len(data)%4 != 0 || len(data) > int(p.push) {
		c.refuse("%d bytes of push constants: want a multiple of 4 up to the %d of the pipeline", len(data), p.push)
		return
	}
	c.add(head(abi.OpPush, 2+(len(data)+7)/8, uint32(len(data))), p.Layout())
	c.bytes(data)
}

// bytes appends data in the host's byte order, padded to whole words.
func (c *Commands) bytes(data []byte) {
	for len(data) > 0 {
		var w [8]byte
		n := copy(w[:], data)
		c.words = append(c.words, nativeWord(w))
		data = data[n:]
	}
}

// Dispatch runs x·y·z workgroups.
func (c *Commands) Dispatch(x, y, z uint32) {
	c.add(head(abi.OpDispatch, 2, x), uint64(y)|uint64(z)<<32)
}

// DispatchIndirect runs as many workgroups as three uint32 at offset say.
func (c *Commands) DispatchIndirect(buffer, offset uint64) {
	c.add(head(abi.OpDispatchIndirect, 3, 0), buffer, offset)
}

// Barrier is a global memory barrier.
func (c *Commands) Barrier(from, to Scope) {
	c.add(head(abi.OpBarrier, 3, 0), uint64(from.Stages)|uint64(to.Stages)<<32, uint64(from.Access)|uint64(to.Access)<<32)
}

// Copy copies size bytes between buffers; the ranges may not overlap.
func (c *Commands) Copy(source, sourceOffset, destination, destinationOffset, size uint64) {
	c.add(head(abi.OpCopy, 6, 0), source, destination, sourceOffset, destinationOffset, size)
}

// Fill repeats a 32-bit value; offset and size are multiples of 4.
func (c *Commands) Fill(buffer, offset, size uint64, value uint32) {
	c.add(head(abi.OpFill, 4, value), buffer, offset, size)
}

// Update writes at most 65536 bytes that travel in the command buffer; offset and
// length are multiples of 4.
func (c *Commands) Update(buffer, offset uint64, data []byte) {
	if len(data) == 0 || len(data)%4 != 0 || len(data) > abi.MaxUpdate {
		c.refuse("an update of %d bytes: want a multiple of 4 up to %d", len(data), abi.MaxUpdate)
		return
	}
	c.add(head(abi.OpUpdate, 3+(len(data)+7)/8, uint32(len(data))), buffer, offset)
	c.bytes(data)
}

// queries refuses a range that the pool does not hold.
func (c *Commands) queries(p *QueryPool, first, count uint32) bool {
	if p.pool == handle[vulkan.QueryPool](0) || count == 0 || uint64(first)+uint64(count) > uint64(p.count) {
		c.refuse("queries %d to %d: want at least one, and none beyond the %d of the pool, which is open", first, uint64(first)+uint64(count), p.count)
		return false
	}
	return true
}

// ResetQueries prepares queries for Timestamp.
func (c *Commands) ResetQueries(p *QueryPool, first, count uint32) {
	if c.queries(p, first, count) {
		c.add(head(abi.OpResetQueries, 3, first), bits(p.pool), uint64(count))
	}
}

// Timestamp writes the time when all earlier commands have passed stage.
func (c *Commands) Timestamp(p *QueryPool, query, stage uint32) {
	if c.queries(p, query, 1) {
		c.add(head(abi.OpTimestamp, 3, query), bits(p.pool), uint64(stage))
	}
}

// CopyQueries copies 64-bit results to a buffer, waiting for them on the device.
func (c *Commands) CopyQueries(p *QueryPool, first, count uint32, buffer, offset uint64) {
	if c.queries(p, first, count) {
		c.add(head(abi.OpCopyQueries, 5, first), bits(p.pool), uint64(count), buffer, offset)
	}
}
