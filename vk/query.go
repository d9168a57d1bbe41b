package vk

import (
	"fmt"
	"math"
	"time"

	vulkan "github.com/vulkan-go/vulkan"
)

// QueryPool holds timestamps of the device's clock.
type QueryPool struct {
	d     *Device
	pool  vulkan.QueryPool
	count uint32
}

// maxTimestamps is what nobody needs more of; drivers end the process over 2^31.
const maxTimestamps = 1 << 20

// NewQueryPool makes a pool of timestamps. ErrUnsupported where the queue has none.
func (d *Device) NewQueryPool(count uint32) (*QueryPool, error) {
	if err := d.usable("vkCreateQueryPool"); err != nil {
		return nil, err
	}
	if d.info.Limits.TimestampBits == 0 {
		return nil, fmt.Errorf("vk: timestamps: %w: queue family %d of %q has none", ErrUnsupported, d.family, d.info.Name)
	}
	if count == 0 {
		return nil, fmt.Errorf("vk: a pool of 0 timestamps: want at least 1")
	}
	if err := checkLimit("timestamps of one pool", uint64(count), maxTimestamps, ""); err != nil {
		return nil, err
	}
	info := vulkan.QueryPoolCreateInfo{SType: vulkan.StructureTypeQueryPoolCreateInfo, QueryType: vulkan.QueryTypeTimestamp, QueryCount: count}
	defer info.Free()
	var pool vulkan.QueryPool
	if err := d.result(int32(vulkan.CreateQueryPool(d.device, &info, nil, &pool)), "vkCreateQueryPool", "%d timestamps", count); err != nil {
		return nil, err
	}
	d.born(kindQueryPool)
	return &QueryPool{d: d, pool: pool, count: count}, nil
}

// Ticks reads timestamps that have been written, in ticks of the device.
func (p *QueryPool) Ticks(first uint32, dst []uint64) error {
	if err := p.d.usable("vkGetQueryPoolResults"); err != nil {
		return err
	}
	if p.pool == handle[vulkan.QueryPool](0) {
		return fmt.Errorf("vk: vkGetQueryPoolResults: the query pool is %w", ErrClosed)
	}
	if len(dst) == 0 {
		return nil
	}
	if uint64(first)+uint64(len(dst)) > uint64(p.count) {
		return fmt.Errorf("vk: timestamps %d to %d: the pool has %d", first, uint64(first)+uint64(len(dst)), p.count)
	}
	r := p.d.c.QueryResults(bits(p.pool), first, dst)
	if vulkan.Result(r) == vulkan.NotReady {
		return fmt.Errorf("vk: timestamps %d to %d are not written yet: wait for the submission first", first, first+uint32(len(dst)))
	}
	return p.d.result(r, "vkGetQueryPoolResults", "%d timestamps", len(dst))
}

// Close destroys the pool. No command that writes it may be pending.
func (p *QueryPool) Close() {
	if p.pool == handle[vulkan.QueryPool](0) {
		return
	}
	vulkan.DestroyQueryPool(p.d.device, p.pool, nil)
	p.pool = handle[vulkan.QueryPool](0)
	p.d.died(kindQueryPool)
}

// Elapsed is the time between two timestamps of one device. Clocks have fewer than 64
// valid bits on some and wrap; the difference is right as long as it is shorter than
// one turn. What no Duration can hold is the largest one.
func (l *Limits) Elapsed(from, to uint64) time.Duration {
	ticks := to - from
	if l.TimestampBits < 64 {
		ticks &= 1<<l.TimestampBits - 1
	}
	ns := float64(ticks) * float64(l.TimestampPeriod)
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}
