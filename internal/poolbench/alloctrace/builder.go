package alloctrace

import "vkcompute/vk"

// tensor is an allocation of a model.
type tensor struct {
	id   uint32
	size uint64
}

const (
	word       = 4 // bytes of a float or an index
	chunk      = 4 << 20
	batchLimit = 256 // launches after which a stream submits by itself
)

// builder writes the trace of a program as a stream would make it.
type builder struct {
	t        Trace
	next     uint32
	launches int
	serial   uint64            // of the batch submitted last
	infos    map[[2]int]tensor // cached, by kernel and shape
}

func (b *builder) alloc(size uint64, role vk.MemoryRole) tensor {
	b.next++
	b.t.Events = append(b.t.Events, Event{Kind: Alloc, ID: b.next, Size: size, Role: role})
	return tensor{b.next, size}
}

// floats allocates a tensor of n floats.
func (b *builder) floats(n int) tensor { return b.alloc(uint64(n)*word, vk.DeviceMemory) }

func (b *builder) free(list ...tensor) {
	for _, t := range list {
		b.t.Events = append(b.t.Events, Event{Kind: Free, ID: t.id, Serial: b.serial + 1})
	}
}

// cached is a launch whose info the metadata cache holds after the first time. The
// words are shapes and strides: 8 bytes each, as many as the kernel's views have.
func (b *builder) cached(kernel, shape, words int) {
	key := [2]int{kernel, shape}
	if _, ok := b.infos[key]; !ok {
		if b.infos == nil {
			b.infos = make(map[[2]int]tensor)
		}
		b.infos[key] = b.alloc(uint64(words)*8, vk.InfoMemory)
	}
	b.launched()
}

// fresh is a launch whose info changes every time, so that nobody keeps it.
func (b *builder) fresh(words int) {
	b.free(b.alloc(uint64(words)*8, vk.InfoMemory))
	b.launched()
}

func (b *builder) launched() {
	if b.launches++; b.launches == batchLimit {
		b.submit()
	}
}

func (b *builder) submit() {
	b.serial++
	b.launches = 0
}

func (b *builder) wait() {
	b.submit()
	b.t.Events = append(b.t.Events, Event{Kind: Done, Serial: b.serial})
}

// upload fills a tensor from the host, in pieces when it is large.
func (b *builder) upload(t tensor) {
	for rest := t.size; rest > 0; {
		n := min(rest, chunk)
		b.free(b.alloc(n, vk.UploadMemory))
		b.launched()
		rest -= n
		if n == chunk {
			b.wait() // the host has no memory to spare for more
		}
	}
}

// read copies a tensor to the host and waits for it.
func (b *builder) read(t tensor) {
	for rest := t.size; rest > 0; {
		n := min(rest, chunk)
		back := b.alloc(n, vk.ReadbackMemory)
		b.wait()
		b.free(back)
		rest -= n
	}
}
