package alloctrace

import "vkcompute/vk"

// The classifier: 784 pixels, one hidden layer, 10 digits.
const (
	pixels  = 784
	hidden  = 128
	digits  = 10
	samples = 60_000 // of the training set
	batch   = 128
	probes  = 1_000 // samples of one evaluation step
	steps   = 20    // full batches of each of the epochs here
	epochs  = 2
)

// Kernels, so far as infos depend on them.
const (
	matmul = iota
	elementwise
	reduce
	gather
)

// trainer is a program that trains the classifier with Adam, every operation a launch
// of its own with a tensor for its result.
type trainer struct {
	builder
	params [4]parameter // weights and bias of both layers
	scale  tensor       // learning rate and bias corrections of the step
}

type parameter struct {
	n       int
	w, m, v tensor // value, first and second moment
	g       tensor // gradient
}

// Train returns a modelled trace of training a classifier for handwritten digits: two short epochs of Adam on batches
// of 128, the last of each cut short as it is with 60,000 samples, and after each an evaluation
// on larger batches and a checkpoint.
func Train() *Trace {
	t := &trainer{}
	t.t.Comment = `Training of a classifier 784-128-10 with Adam in 32-bit floats, one launch and one
tensor for each operation, nothing done in place: parameters, moments and gradients
are new tensors in every step. Two epochs of 20 batches of 128 and one of 96, which is
what 60000 samples leave, each followed by an evaluation on four batches of 1000 and
a checkpoint of parameters and moments. The loss is read every tenth step.
Modelled: no program ran.
`
	for i, n := range []int{pixels * hidden, hidden, hidden * digits, digits} {
		p := &t.params[i]
		p.n = n
		p.w, p.m, p.v = t.floats(n), t.floats(n), t.floats(n)
		t.upload(p.w)
		t.cached(elementwise, n, 8) // fills
		t.cached(elementwise, n, 8)
	}
	for range epochs {
		for i := range steps {
			loss := t.step(batch)
			if i%10 == 9 {
				t.read(loss)
			}
			t.free(loss)
		}
		t.free(t.step(samples % batch))
		for range 4 {
			t.evaluate()
		}
		for i := range t.params {
			t.read(t.params[i].w)
			t.read(t.params[i].m)
			t.read(t.params[i].v)
		}
	}
	t.wait()
	return &t.t
}

// op is a launch with a result of n floats; its arguments are released if given.
func (t *trainer) op(kernel, n int, done ...tensor) tensor {
	r := t.floats(n)
	t.cached(kernel, n, 14)
	t.free(done...)
	return r
}

// input uploads a batch of images and labels.
func (t *trainer) input(n int) (x, y tensor) {
	x, y = t.floats(n*pixels), t.alloc(uint64(n)*word, vk.DeviceMemory)
	t.upload(x)
	t.upload(y)
	return x, y
}

// forward computes the two layers and the probabilities.
func (t *trainer) forward(x tensor, n int) (a1, h, p tensor) {
	z1 := t.op(matmul, n*hidden)
	a1 = t.op(elementwise, n*hidden, z1) // plus bias
	h = t.op(elementwise, n*hidden)      // rectified
	z2 := t.op(matmul, n*digits)
	a2 := t.op(elementwise, n*digits, z2)
	top := t.op(reduce, n)
	s := t.op(elementwise, n*digits, a2, top)
	e := t.op(elementwise, n*digits, s)
	sum := t.op(reduce, n)
	p = t.op(elementwise, n*digits, e, sum)
	return a1, h, p
}

func (t *trainer) step(n int) (loss tensor) {
	x, y := t.input(n)
	a1, h, p := t.forward(x, n)
	each := t.op(gather, n) // the probability of the label, then its logarithm
	each = t.op(elementwise, n, each)
	loss = t.op(reduce, 1, each)

	hot := t.op(gather, n*digits, y)
	d2 := t.op(elementwise, n*digits, p, hot)
	d2 = t.op(elementwise, n*digits, d2)
	t.params[2].g = t.op(matmul, hidden*digits)
	t.params[3].g = t.op(reduce, digits)
	dh := t.op(matmul, n*hidden, d2, h)
	mask := t.op(elementwise, n*hidden, a1)
	d1 := t.op(elementwise, n*hidden, dh, mask)
	t.params[0].g = t.op(matmul, pixels*hidden)
	t.params[1].g = t.op(reduce, hidden)
	t.free(d1, x)

	t.scale = t.floats(4)
	t.fresh(9) // carries the number of the step
	for i := range t.params {
		t.adam(&t.params[i])
	}
	t.free(t.scale)
	t.submit()
	return loss
}

// adam is one step of D. Kingma and J. Ba, "Adam: A Method for Stochastic Optimization", 2015.
func (t *trainer) adam(p *parameter) {
	moment := func(old, g tensor) tensor {
		a := t.op(elementwise, p.n, old)
		b := t.op(elementwise, p.n, g)
		return t.op(elementwise, p.n, a, b)
	}
	squared := t.op(elementwise, p.n)
	p.m = moment(p.m, p.g)
	p.v = moment(p.v, squared)
	mh := t.op(elementwise, p.n)
	vh := t.op(elementwise, p.n)
	root := t.op(elementwise, p.n, vh)
	root = t.op(elementwise, p.n, root) // plus epsilon
	delta := t.op(elementwise, p.n, mh, root)
	delta = t.op(elementwise, p.n, delta) // times the learning rate
	p.w = t.op(elementwise, p.n, p.w, delta)
}

func (t *trainer) evaluate() {
	x, y := t.input(probes)
	a1, h, p := t.forward(x, probes)
	t.free(x, a1, h)
	best := t.op(reduce, probes, p)
	hit := t.op(elementwise, probes, best, y)
	right := t.op(reduce, 1, hit)
	t.read(right)
	t.free(right)
}
