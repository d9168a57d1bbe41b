package alloctrace

import "vkcompute/vk"

// The transformer of 15 million parameters whose shapes the small story models have.
const (
	dim        = 288
	layers     = 6
	heads      = 6
	inner      = 768
	vocabulary = 32_000
	firstRoom  = 16 // positions that a new key/value cache holds
)

// decoder is a program that generates text for several conversations in turn.
type decoder struct {
	builder
}

// conversation is one text being generated.
type conversation struct {
	prompt, tokens int // lengths
	from           int // the round in which it begins
	at, room       int // positions used and allocated in the caches
	keys, values   [layers]tensor
}

// Decode returns a modelled trace of generating text with a transformer of 15 million parameters: the weights
// are loaded, then three conversations that overlap read their prompts and generate a token in each round.
// Key/value caches double when they are full; attention scores grow with the position.
func Decode() *Trace {
	d := &decoder{}
	d.t.Comment = `Generation of text with a transformer of 15 million parameters in 32-bit floats
(width 288, 6 layers, 6 heads, inner width 768, 32000 words): the weights are loaded,
then three conversations that overlap read prompts of 13, 40 and 7 words and
generate 20, 12 and 16, one each in every round. Key/value caches begin with 16
positions and double by copying; scores grow with the position; the logits of each
word are read by the host. One launch and one tensor for each operation.
Modelled: no program ran.
`
	d.load()
	talks := []*conversation{{prompt: 13, tokens: 20}, {prompt: 40, tokens: 12, from: 6}, {prompt: 7, tokens: 16, from: 15}}
	for round := 0; ; round++ {
		busy := false
		for _, c := range talks {
			last := c.from + c.tokens
			busy = busy || round < last
			switch {
			case round == c.from:
				d.forward(c, c.prompt)
			case round > c.from && round < last:
				d.forward(c, 1)
			case round == last:
				d.free(c.keys[:]...)
				d.free(c.values[:]...)
			}
		}
		if !busy {
			break
		}
	}
	d.wait()
	return &d.t
}

func (d *decoder) load() {
	sizes := []int{vocabulary * dim}
	for range layers {
		sizes = append(sizes, dim, dim*dim, dim*dim, dim*dim, dim*dim, dim, inner*dim, inner*dim, dim*inner)
	}
	sizes = append(sizes, dim)
	for _, n := range sizes {
		d.upload(d.floats(n))
	}
	d.wait()
}

// op is a launch with a result of n floats. Its info is cached unless it tells the position.
func (d *decoder) op(kernel, n int, done ...tensor) tensor {
	r := d.floats(n)
	d.cached(kernel, n, 12)
	d.free(done...)
	return r
}

func (d *decoder) opAt(n int, done ...tensor) tensor {
	r := d.floats(n)
	d.fresh(17)
	d.free(done...)
	return r
}

// grow makes room for n more positions in the caches.
func (d *decoder) grow(c *conversation, n int) {
	room := max(c.room, firstRoom)
	for room < c.at+n {
		room *= 2
	}
	if room == c.room {
		return
	}
	for l := range layers {
		for _, cache := range []*tensor{&c.keys[l], &c.values[l]} {
			old := *cache
			*cache = d.floats(room * dim)
			if c.room > 0 {
				d.launched() // copies what is there
				d.free(old)
			}
		}
	}
	c.room = room
}

// forward runs n words through the model and reads the logits of the last.
func (d *decoder) forward(c *conversation, n int) {
	d.grow(c, n)
	words := d.alloc(uint64(n)*word, vk.DeviceMemory)
	d.upload(words)
	x := d.op(gather, n*dim, words)
	for range layers {
		norm := d.op(reduce, n*dim)
		q, k, v := d.op(matmul, n*dim), d.op(matmul, n*dim), d.op(matmul, n*dim)
		d.free(norm)
		q = d.opAt(n*dim, q) // rotated by the position
		k = d.opAt(n*dim, k)
		d.fresh(14) // into the caches
		d.fresh(14)
		d.free(k, v)
		scores := d.opAt(heads*n*(c.at+n), q)
		scores = d.opAt(heads*n*(c.at+n), scores) // softmax
		o := d.opAt(n*dim, scores)
		o = d.op(matmul, n*dim, o)
		x = d.op(elementwise, n*dim, x, o)

		norm = d.op(reduce, n*dim)
		gate, up := d.op(matmul, n*inner), d.op(matmul, n*inner)
		d.free(norm)
		gate = d.op(elementwise, n*inner, gate) // silu
		gate = d.op(elementwise, n*inner, gate, up)
		down := d.op(matmul, n*dim, gate)
		x = d.op(elementwise, n*dim, x, down)
	}
	last := d.opAt(dim, x)
	last = d.op(reduce, dim, last)
	logits := d.op(matmul, vocabulary, last)
	d.read(logits)
	d.free(logits)
	c.at += n
}
