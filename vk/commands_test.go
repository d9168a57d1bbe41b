package vk_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"vkcompute/internal/vktest"
	"vkcompute/vk"
	"vkcompute/vk/internal/decodertest"
)

var (
	dynamicPipeline = vk.FakePipeline(0xf1, 0x1a1, 0x5e1, 24, vk.Binding{Number: 0, Kind: vk.StorageBufferDynamic}, vk.Binding{Number: 2, Kind: vk.StorageBuffer})
	staticPipeline  = vk.FakePipeline(0xf2, 0x1a2, 0x5e2, 0, vk.Binding{Number: 5, Kind: vk.StorageBuffer})
	queries         = vk.FakeQueryPool(0x9, 10)
)

// command is one call of a method, and what the driver must be told.
type command struct {
	do   func(c *vk.Commands)
	want string
}

func commandsOf(a, b, c uint32, u, v, w uint64, data []byte) []command {
	push := data[:min(len(data), 24)]
	return []command{
		{func(s *vk.Commands) { s.BindPipeline(dynamicPipeline) }, "BindPipeline cb 1 f1"},
		{func(s *vk.Commands) { s.BindSet(dynamicPipeline, u|1, a) }, fmt.Sprintf("BindSets cb 1 1a1 0 %x +%d", u|1, a)},
		{func(s *vk.Commands) { s.BindStaticSet(staticPipeline, u|1) }, fmt.Sprintf("BindSets cb 1 1a2 0 %x", u|1)},
		{func(s *vk.Commands) { s.Push(dynamicPipeline, push) }, fmt.Sprintf("Push cb 1a1 20 0 %x", push)},
		{func(s *vk.Commands) { s.Dispatch(a, b, c) }, fmt.Sprintf("Dispatch cb %d %d %d", a, b, c)},
		{func(s *vk.Commands) { s.DispatchIndirect(u, v) }, fmt.Sprintf("DispatchIndirect cb %x %d", u, v)},
		{func(s *vk.Commands) { s.Barrier(vk.Scope{Stages: a, Access: b}, vk.Scope{Stages: c, Access: a}) }, fmt.Sprintf("Barrier cb %x %x 0 %x %x", a, c, b, a)},
		{func(s *vk.Commands) { s.Copy(u, v, w, uint64(a), uint64(b)) }, fmt.Sprintf("Copy cb %x %x %d %d %d", u, w, v, a, b)},
		{func(s *vk.Commands) { s.Fill(u, v, w, a) }, fmt.Sprintf("Fill cb %x %d %d %d", u, v, w, a)},
		{func(s *vk.Commands) { s.Update(u, v, data) }, fmt.Sprintf("Update cb %x %d %x", u, v, data)},
		{func(s *vk.Commands) { s.Timestamp(queries, a%10, b) }, fmt.Sprintf("Timestamp cb %x 9 %d", b, a%10)},
		{func(s *vk.Commands) { s.ResetQueries(queries, a%10, 1) }, fmt.Sprintf("ResetQueries cb 9 %d 1", a%10)},
		{func(s *vk.Commands) { s.CopyQueries(queries, a%10, 1, u, v) }, fmt.Sprintf("CopyQueries cb 9 %d 1 %x %d 8 3", a%10, u, v)},
	}
}

// What a method of Commands was given is what the decoder tells the driver.
func TestCommandsReachTheDriver(t *testing.T) {
	decoder := decodertest.Start(t, "internal/abi", "internal/decodertest")
	rapid.Check(t, func(rt *rapid.T) {
		u32, u64 := rapid.Uint32(), rapid.Uint64()
		var c vk.Commands
		want := []string{"Begin cb 2"}
		for range rapid.IntRange(0, 20).Draw(rt, "commands") {
			data := rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(rt, "data")
			data = append(data, make([]byte, (4-len(data)%4)%4)...)
			list := commandsOf(u32.Draw(rt, "a"), u32.Draw(rt, "b"), u32.Draw(rt, "c"), u64.Draw(rt, "u"), u64.Draw(rt, "v"), u64.Draw(rt, "w"), data)
			m := list[rapid.IntRange(0, len(list)-1).Draw(rt, "which")]
			m.do(&c)
			want = append(want, m.want)
		}
		require.NoError(rt, c.Check())
		require.Equal(rt, len(want)-1, c.Len())
		answer := decoder.Record(t, c.Words(), 2, 0)
		require.Zero(rt, answer.Result)
		require.Equal(rt, append(want, "End cb"), answer.Calls)
		c.Reset()
		require.Empty(rt, c.Words())
	})
}

func TestCommandsThatWouldCrash(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(c *vk.Commands)
		want string
	}{
		"dynamic set of a static layout": {func(c *vk.Commands) { c.BindSet(staticPipeline, 1, 0) }, "it has 0"},
		"static set of a dynamic layout": {func(c *vk.Commands) { c.BindStaticSet(dynamicPipeline, 1) }, "it has 1"},
		"no set":                         {func(c *vk.Commands) { c.BindSet(dynamicPipeline, 0, 0) }, "set 0x0"},
		"no static set":                  {func(c *vk.Commands) { c.BindStaticSet(staticPipeline, 0) }, "set 0x0"},
		"nothing pushed":                 {func(c *vk.Commands) { c.Push(dynamicPipeline, nil) }, "0 bytes"},
		"half a value pushed":            {func(c *vk.Commands) { c.Push(dynamicPipeline, make([]byte, 6)) }, "6 bytes"},
		"too much pushed":                {func(c *vk.Commands) { c.Push(dynamicPipeline, make([]byte, 28)) }, "up to the 24"},
		"nothing updated":                {func(c *vk.Commands) { c.Update(1, 0, nil) }, "0 bytes"},
		"half a value updated":           {func(c *vk.Commands) { c.Update(1, 0, make([]byte, 2)) }, "2 bytes"},
		"too much updated":               {func(c *vk.Commands) { c.Update(1, 0, make([]byte, 65540)) }, "up to 65536"},
		// 2^24 words and more would run into the operand of the head.
		"far too much updated":     {func(c *vk.Commands) { c.Update(1, 0, make([]byte, 1<<27)) }, "up to 65536"},
		"timestamp beyond":         {func(c *vk.Commands) { c.Timestamp(queries, 10, 1) }, "the 10 of the pool"},
		"reset beyond":             {func(c *vk.Commands) { c.ResetQueries(queries, 5, 6) }, "the 10 of the pool"},
		"reset of none":            {func(c *vk.Commands) { c.ResetQueries(queries, 5, 0) }, "at least one"},
		"copy that wraps":          {func(c *vk.Commands) { c.CopyQueries(queries, 1<<32-1, 2, 1, 0) }, "the 10 of the pool"},
		"queries of a closed pool": {func(c *vk.Commands) { c.ResetQueries(vk.FakeQueryPool(0, 10), 0, 1) }, "which is open"},
	} {
		t.Run(name, func(t *testing.T) {
			var s vk.Commands
			s.Dispatch(1, 1, 1)
			c.do(&s)
			s.Update(1, 0, nil) // the first one counts
			require.Equal(t, 1, s.Len(), "it is not added")
			err := s.Check()
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "command 1: ")
			var e *vk.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, vk.BadStream, e.Result)
			s.Reset()
			require.NoError(t, s.Check())
		})
	}
}

func TestSetProgramsReachTheDriver(t *testing.T) {
	decoder := decodertest.Start(t, "internal/abi", "internal/decodertest")
	var p vk.SetProgram
	for round := range uint64(2) {
		p.Set(dynamicPipeline)
		p.Write(2, vk.StorageBuffer, 20+round, 1, 2) // in any order
		p.Write(0, vk.StorageBufferDynamic, 10, 3, 4)
		p.Set(staticPipeline)
		p.Write(5, vk.StorageBuffer, 50, 5, 1<<40)
		require.Equal(t, 2, p.Sets())
		words, fault := p.Words()
		require.Empty(t, fault)
		answer := decoder.Sets(t, words, 2, 0)
		require.Equal(t, []string{
			"AllocateSets b001 5e1", fmt.Sprintf("UpdateSets 2 [2+0 7 %x 1 2] [0+0 8 a 3 4]", 20+round),
			"AllocateSets b001 5e2", "UpdateSets 1 [5+0 7 32 5 1099511627776]",
		}, replaceKind(answer.Calls))
		require.Equal(t, uint64(2), answer.At)
		p.Reset()
	}
}

// replaceKind writes 8 for VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC, whose number is 9.
func replaceKind(calls []string) []string {
	for i, c := range calls {
		calls[i] = string(bytes.ReplaceAll([]byte(c), []byte("+0 9 "), []byte("+0 8 ")))
	}
	return calls
}

func TestSetProgramsThatWouldCrash(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(p *vk.SetProgram)
		want string
	}{
		"before any set": {func(p *vk.SetProgram) { p.Write(0, vk.StorageBuffer, 1, 0, 4) }, "set 0: binding 0 is written before"},
		"left out":       {func(p *vk.SetProgram) { p.Set(dynamicPipeline); p.Write(0, vk.StorageBufferDynamic, 1, 0, 4) }, "set 1: binding 2 was not written"},
		"left out of the first": {func(p *vk.SetProgram) {
			p.Set(staticPipeline)
			p.Set(staticPipeline)
			p.Write(5, vk.StorageBuffer, 1, 0, 4)
		}, "set 1: binding 5 was not written"},
		"twice": {func(p *vk.SetProgram) {
			p.Set(staticPipeline)
			p.Write(5, vk.StorageBuffer, 1, 0, 4)
			p.Write(5, vk.StorageBuffer, 1, 0, 4)
		}, "want it once"},
		"of another kind": {func(p *vk.SetProgram) { p.Set(staticPipeline); p.Write(5, vk.StorageBufferDynamic, 1, 0, 4) }, "and kind 7"},
		"no buffer":       {func(p *vk.SetProgram) { p.Set(staticPipeline); p.Write(5, vk.StorageBuffer, 0, 0, 4) }, "buffer 0x0"},
		"not there":       {func(p *vk.SetProgram) { p.Set(staticPipeline); p.Write(6, vk.StorageBuffer, 1, 0, 4) }, "no such binding"},
	} {
		t.Run(name, func(t *testing.T) {
			var p vk.SetProgram
			c.do(&p)
			_, fault := p.Words()
			require.Contains(t, fault, c.want)
			p.Reset()
			_, fault = p.Words()
			require.Empty(t, fault)
		})
	}
	// As many bindings as a set can have.
	full := vk.FakePipeline(1, 2, 3, 0, bindings(0, vk.MaxBindings, vk.StorageBuffer)...)
	var p vk.SetProgram
	p.Set(full)
	for n := range uint32(vk.MaxBindings) {
		_, fault := (&vk.SetProgram{}).Words()
		require.Empty(t, fault)
		p.Write(n, vk.StorageBuffer, 1, 0, 4)
	}
	_, fault := p.Words()
	require.Empty(t, fault)
}

func TestRefusedCommandsReachNoDriver(t *testing.T) {
	l := newLab(t)
	b := l.commandBuffer()
	before := l.d.Crossings()
	var c vk.Commands
	c.Update(1, 0, nil)
	require.ErrorContains(t, l.pool.Record(b, vk.OneTime, &c), "an update of 0 bytes")
	serial, err := l.d.Submit(&vk.Submission{Record: b, Commands: &c, Buffers: []vk.CommandBuffer{b}}, l.timeline)
	require.ErrorContains(t, err, "an update of 0 bytes")
	require.Zero(t, serial)
	require.Zero(t, l.timeline.Submitted())
	require.ErrorContains(t, l.pool.Record(0, vk.OneTime, &vk.Commands{}), "found none")
	require.Equal(t, before, l.d.Crossings())

	pool, err := l.d.NewDescriptorPool(vk.PoolSize{Sets: 1, Storage: 1})
	require.NoError(t, err)
	defer pool.Close()
	var p vk.SetProgram
	p.Write(0, vk.StorageBuffer, 1, 0, 4)
	_, err = pool.Make(&p, nil)
	require.ErrorContains(t, err, "before any set was begun")
	require.Equal(t, before, l.d.Crossings())
}

// A stream that the decoder refuses half way leaves a command buffer that does nothing,
// rather than half of something.
func TestMalformedStreamLeavesNothingToRun(t *testing.T) {
	l := newLab(t)
	target := l.buffer(vk.BufferSpec{Size: 64, Role: vk.ReadbackMemory})
	clear(target.Mapped())
	var c vk.Commands
	c.Fill(target.Handle(), 0, 64, 0x01010101)
	c.Append(0xff)
	b := l.commandBuffer()
	err := l.pool.Record(b, vk.Simultaneous, &c)
	require.ErrorContains(t, err, "malformed command stream")
	require.ErrorContains(t, err, "word 4")
	serial, err := l.d.Submit(&vk.Submission{Buffers: []vk.CommandBuffer{b}, Flushes: []vk.FlushRange{whole(target)}}, l.timeline)
	require.NoError(t, err)
	l.wait(serial)
	require.NoError(t, l.d.Invalidate(whole(target)))
	require.Equal(t, make([]byte, 64), target.Mapped())
}

// A command buffer recorded for simultaneous use runs as often as it is submitted.
func TestRecordOnceRunOften(t *testing.T) {
	d := vktest.Open(t)
	l := labOn(t, d)
	from, to := l.buffer(vk.BufferSpec{Size: 64, Role: vk.UploadMemory}), l.buffer(vk.BufferSpec{Size: 64, Role: vk.ReadbackMemory})
	var c vk.Commands
	c.Barrier(hostRead, transfers) // the host has read the result of the run before
	c.Copy(from.Handle(), 0, to.Handle(), 0, 64)
	c.Barrier(transferWrite, hostRead)
	b := l.commandBuffer()
	require.NoError(t, l.pool.Record(b, vk.Simultaneous, &c))
	for round := range 5 {
		for i := range from.Mapped() {
			from.Mapped()[i] = byte(round + i)
		}
		serial, err := d.Submit(&vk.Submission{Buffers: []vk.CommandBuffer{b}, Flushes: []vk.FlushRange{whole(from)}}, l.timeline)
		require.NoError(t, err)
		l.wait(serial)
		require.NoError(t, d.Invalidate(whole(to)))
		require.Equal(t, from.Mapped(), to.Mapped())
	}
	// Recorded anew, it holds the new commands only.
	c.Reset()
	c.Fill(to.Handle(), 0, 64, 0)
	c.Barrier(transferWrite, hostRead)
	require.NoError(t, l.pool.Record(b, vk.OneTime, &c))
	serial, err := d.Submit(&vk.Submission{Buffers: []vk.CommandBuffer{b}}, l.timeline)
	require.NoError(t, err)
	l.wait(serial)
	require.NoError(t, d.Invalidate(whole(to)))
	require.Equal(t, make([]byte, 64), to.Mapped())
}
