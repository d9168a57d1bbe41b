package vk

import (
	vulkan "github.com/vulkan-go/vulkan"
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
type Commands struct {
	words []uint64
	count int
}

// Operations, as in abi.h.
const (
	opPipeline = iota + 1
	opSet
	opSetDynamic
	opPush
	opDispatch
	opDispatchIndirect
	opBarrier
	opCopy
	opFill
	opUpdate
	opTimestamp
	opResetQueries
	opCopyQueries
)

func head(operation, words int, a uint32) uint64 {
	return uint64(operation) | uint64(words)<<8 | uint64(a)<<32
}

// Reset empties the sequence and keeps its memory.
func (c *Commands) Reset() { c.words, c.count = c.words[:0], 0 }

// Len is the number of commands.
func (c *Commands) Len() int { return c.count }

// Words is the encoded form, to be read only.
func (c *Commands) Words() []uint64 { return c.words }

func (c *Commands) add(words ...uint64) {
	c.words = append(c.words, words...)
	c.count++
}

// BindPipeline selects the shader of the following dispatches.
func (c *Commands) BindPipeline(p *Pipeline) { c.add(head(opPipeline, 2, 0), p.Handle()) }

// BindSet binds set 0 with one dynamic offset.
func (c *Commands) BindSet(p *Pipeline, set uint64, dynamicOffset uint32) {
	c.add(head(opSetDynamic, 3, dynamicOffset), p.Layout(), set)
}

// BindStaticSet binds set 0 of a layout without dynamic bindings.
func (c *Commands) BindStaticSet(p *Pipeline, set uint64) { c.add(head(opSet, 3, 0), p.Layout(), set) }

// Push sets the push constants from offset 0; data is a whole number of 4-byte values.
func (c *Commands) Push(p *Pipeline, data []byte) {
	c.add(head(opPush, 2+(len(data)+7)/8, uint32(len(data))), p.Layout())
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
	c.add(head(opDispatch, 2, x), uint64(y)|uint64(z)<<32)
}

// DispatchIndirect runs as many workgroups as three uint32 at offset say.
func (c *Commands) DispatchIndirect(buffer, offset uint64) {
	c.add(head(opDispatchIndirect, 3, 0), buffer, offset)
}

// Barrier is a global memory barrier.
func (c *Commands) Barrier(from, to Scope) {
	c.add(head(opBarrier, 3, 0), uint64(from.Stages)|uint64(to.Stages)<<32, uint64(from.Access)|uint64(to.Access)<<32)
}

// Copy copies size bytes between buffers; the ranges may not overlap.
func (c *Commands) Copy(source, sourceOffset, destination, destinationOffset, size uint64) {
	c.add(head(opCopy, 6, 0), source, destination, sourceOffset, destinationOffset, size)
}

// Fill repeats a 32-bit value; offset and size are multiples of 4.
func (c *Commands) Fill(buffer, offset, size uint64, value uint32) {
	c.add(head(opFill, 4, value), buffer, offset, size)
}

// Update writes at most 65536 bytes that travel in the command buffer; offset and
// length are multiples of 4.
func (c *Commands) Update(buffer, offset uint64, data []byte) {
	c.add(head(opUpdate, 3+(len(data)+7)/8, uint32(len(data))), buffer, offset)
	c.bytes(data)
}

// ResetQueries prepares queries for Timestamp.
func (c *Commands) ResetQueries(p *QueryPool, first, count uint32) {
	c.add(head(opResetQueries, 3, first), bits(p.pool), uint64(count))
}

// Timestamp writes the time when all earlier commands have passed stage.
func (c *Commands) Timestamp(p *QueryPool, query, stage uint32) {
	c.add(head(opTimestamp, 3, query), bits(p.pool), uint64(stage))
}

// CopyQueries copies 64-bit results to a buffer, waiting for them on the device.
func (c *Commands) CopyQueries(p *QueryPool, first, count uint32, buffer, offset uint64) {
	c.add(head(opCopyQueries, 5, first), bits(p.pool), uint64(count), buffer, offset)
}
