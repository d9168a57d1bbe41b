package cmdbuf

import (
	"fmt"
	"strings"
	"unsafe"

	"vkcompute/vk"
)

// SetCaching says what becomes of a descriptor set after its launch.
type SetCaching uint8

const (
	// CacheSets keeps sets by what they bind, for the next launch with the same arguments.
	CacheSets SetCaching = iota
	// RebuildSets makes a set for every launch and frees it when the launch is done: the
	// cost that the cache takes away, for measurements.
	RebuildSets
)

const (
	maxCachedSets = 4096 // per stream
	setsPerPool   = 64
)

// setCache keeps descriptor sets by their bindings. A set is written once, before its
// first use, and never again: it may be pending. It is freed by serial.
type setCache struct {
	dev     *vk.Device
	entries map[string]*cachedSet
	lru     cachedSet // ring: lru.next is the most recent
	classes map[setClass]*setPools
	retired []*cachedSet // left the cache, ascending by serial
	scratch vk.SetProgram
	made    uint64
}

// setClass is the shape of a set. Pools of one class never fragment.
type setClass struct{ storage, dynamic uint32 }

type setPools struct {
	class setClass
	pools []*setPool
}

type setPool struct {
	pool *vk.DescriptorPool
	free int
}

type cachedSet struct {
	set        uint64
	key        string
	serial     uint64 // of the last batch that binds it
	home       *setPool
	info, size uint64 // the info's buffer and range that the set names
	gone       bool   // retired
	prev, next *cachedSet
}

func newSetCache(d *vk.Device) *setCache {
	c := &setCache{dev: d, entries: map[string]*cachedSet{}, classes: map[setClass]*setPools{}}
	c.lru.prev, c.lru.next = &c.lru, &c.lru
	return c
}

// keyString views a key as the string it is hashed as, without a copy.
func keyString(k []uint64) string {
	return unsafe.String((*byte)(unsafe.Pointer(unsafe.SliceData(k))), len(k)*8)
}

func (e *cachedSet) unlink() { e.prev.next, e.next.prev = e.next, e.prev }

func (c *setCache) touch(e *cachedSet) {
	e.prev, e.next = &c.lru, c.lru.next
	e.prev.next, e.next.prev = e, e
}

// get returns the set of a launch, for a batch of the given serial.
func (c *setCache) get(l *launch, serial uint64, caching SetCaching) (uint64, error) {
	if caching == CacheSets {
		e := l.set
		if e == nil || e.gone || e.info != l.info.bufferID || e.size != l.info.size {
			e = c.entries[keyString(l.setKey())]
		}
		if e != nil {
			e.serial = serial
			e.unlink()
			c.touch(e)
			l.set = e
			return e.set, nil
		}
	}
	e, err := c.make(l)
	if err != nil {
		return 0, err
	}
	e.serial, e.info, e.size = serial, l.info.bufferID, l.info.size
	if caching == RebuildSets {
		c.retired = append(c.retired, e)
		return e.set, nil
	}
	e.key = strings.Clone(keyString(l.key))
	c.entries[e.key] = e
	c.touch(e)
	for len(c.entries) > maxCachedSets {
		c.retire(c.lru.prev)
	}
	return e.set, nil
}

func (c *setCache) make(l *launch) (*cachedSet, error) {
	class := setClass{l.program.storage, l.program.dynamic}
	pools := c.classes[class]
	if pools == nil {
		pools = &setPools{class: class}
		c.classes[class] = pools
	}
	home, err := pools.vacant(c.dev)
	if err != nil {
		return nil, err
	}
	c.scratch.Reset()
	l.describeSet(&c.scratch)
	var set [1]uint64
	if _, err := home.pool.Make(&c.scratch, set[:0]); err != nil {
		return nil, fmt.Errorf("cmdbuf: launch %s: %w", l.program.kernel.Name, err)
	}
	home.free--
	c.made++
	return &cachedSet{set: set[0], home: home}, nil
}

// vacant finds a pool with room. The last one that had any is at the end.
func (p *setPools) vacant(d *vk.Device) (*setPool, error) {
	for i := len(p.pools) - 1; i >= 0; i-- {
		if s := p.pools[i]; s.free > 0 {
			last := len(p.pools) - 1
			p.pools[i], p.pools[last] = p.pools[last], p.pools[i]
			return s, nil
		}
	}
	pool, err := d.NewDescriptorPool(vk.PoolSize{Sets: setsPerPool, Storage: setsPerPool * p.class.storage, Dynamic: setsPerPool * p.class.dynamic})
	if err != nil {
		return nil, fmt.Errorf("cmdbuf: descriptor pool: %w", err)
	}
	s := &setPool{pool: pool, free: setsPerPool}
	p.pools = append(p.pools, s)
	return s, nil
}

// retire takes an entry out of the cache; reclaim frees its set.
func (c *setCache) retire(e *cachedSet) {
	e.unlink()
	e.gone = true
	delete(c.entries, e.key)
	c.retired = append(c.retired, e)
}

// forget retires the sets that name a buffer which is gone.
func (c *setCache) forget(buffer uint64) {
	for e := c.lru.prev; e != &c.lru; {
		next := e.prev
		if e.names(buffer) {
			c.retire(e)
		}
		e = next
	}
}

// names tells whether the key holds a buffer: see setKey.
func (e *cachedSet) names(buffer uint64) bool {
	words := unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.StringData(e.key))), len(e.key)/8)
	if words[1] == buffer {
		return true
	}
	for i := 3; i < len(words); i += 3 {
		if words[i] == buffer {
			return true
		}
	}
	return false
}

// reclaim frees retired sets whose batches completed.
func (c *setCache) reclaim(completed uint64) {
	kept := c.retired[:0]
	for _, e := range c.retired {
		if e.serial > completed {
			kept = append(kept, e)
			continue
		}
		e.home.pool.Free([]uint64{e.set})
		e.home.free++
	}
	clear(c.retired[len(kept):])
	c.retired = kept
}

// close destroys everything. Nothing may be pending.
func (c *setCache) close() {
	for _, p := range c.classes {
		for _, s := range p.pools {
			s.pool.Close()
		}
	}
	c.entries, c.classes, c.retired = nil, nil, nil
	c.lru.prev, c.lru.next = &c.lru, &c.lru
}
