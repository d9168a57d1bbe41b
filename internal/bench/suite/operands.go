package suite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"

	"vkcompute/cmdbuf"
	"vkcompute/shaders"
)

// kernelCase is a kernel with operands, what it moves and computes, and the same in
// plain Go.
type kernelCase struct {
	kernel            *shaders.Kernel
	layout            string // of operands that are not contiguous
	bytes, operations float64
	reads             bool // and writes next to nothing
	args              []cmdbuf.Arg
	plain             func()
	outputs           []func(context.Context) error // compare a tensor with plain Go's
}

func (c *kernelCase) name() string {
	if c.layout != "" {
		return c.kernel.Name + "/" + c.layout
	}
	return c.kernel.Name
}

// verify launches once, runs plain Go once, and compares.
func (c *kernelCase) verify(ctx context.Context, s *cmdbuf.Stream) error {
	if err := s.Launch(c.kernel, c.args...); err != nil {
		return err
	}
	c.plain()
	for _, compare := range c.outputs {
		if err := compare(ctx); err != nil {
			return err
		}
	}
	return nil
}

// operands makes cases and keeps what has to be closed. The first error stays.
type operands struct {
	s       *cmdbuf.Stream
	err     error
	closers []func() error
	list    []kernelCase
	shared  map[sharing]any
}

// sharing names an operand that several cases use: by what fills it, its type and its
// length. An input is never written. An output is compared before the next case runs.
type sharing struct {
	fill uintptr
	kind reflect.Type
	n    int
}

// element is what the operands consist of.
type element interface {
	float32 | int32 | uint32 | shaders.Half
}

// both is a tensor and its numbers.
type both[T element] struct {
	device *cmdbuf.Tensor[T]
	host   []T
}

// common is tensor for an operand that other cases may use as well: the elements of a
// device are many times those of a case, and there are cases by the dozen.
func common[T element](b *operands, f func(i int) T, n int) (*cmdbuf.Tensor[T], []T) {
	key := sharing{reflect.ValueOf(f).Pointer(), reflect.TypeFor[T](), n}
	if x, ok := b.shared[key].(both[T]); ok {
		return x.device, x.host
	}
	t, host := tensor(b, f, n)
	if b.shared == nil {
		b.shared = map[sharing]any{}
	}
	b.shared[key] = both[T]{t, host}
	return t, host
}

func (b *operands) close() error {
	var err error
	for _, f := range b.closers {
		err = errors.Join(err, f())
	}
	return err
}

// tensor uploads what f gives, and returns the tensor and the numbers.
func tensor[T element](b *operands, f func(i int) T, shape ...int) (*cmdbuf.Tensor[T], []T) {
	n := 1
	for _, e := range shape {
		n *= e
	}
	host := make([]T, n)
	for i := range host {
		host[i] = f(i)
	}
	if b.err != nil {
		return nil, host
	}
	t, err := cmdbuf.Upload(b.s, host, shape...)
	if err != nil {
		b.err = err
		return nil, host
	}
	b.closers = append(b.closers, t.Close)
	return t, host
}

// add adds a case. Bytes and operations are per launch.
func (b *operands) add(k *shaders.Kernel, bytes, operations int, plain func(), args ...cmdbuf.Arg) *kernelCase {
	b.list = append(b.list, kernelCase{kernel: k, bytes: float64(bytes), operations: float64(operations), args: args, plain: plain})
	return &b.list[len(b.list)-1]
}

// reader is add for a kernel whose roof is that of reading.
func (b *operands) reader(k *shaders.Kernel, bytes, operations int, plain func(), args ...cmdbuf.Arg) *kernelCase {
	c := b.add(k, bytes, operations, plain, args...)
	c.reads = true
	return c
}

// gives says that a tensor of the case must hold what plain Go left in host, to a part
// of the larger of 1 and the number. The kernels' own bounds are tested elsewhere; this
// finds a kernel that did something else.
func gives[T element](c *kernelCase, t *cmdbuf.Tensor[T], host []T, tolerance float64) {
	c.outputs = append(c.outputs, func(ctx context.Context) error {
		found, err := t.Read(ctx)
		if err != nil {
			return err
		}
		for i := range host {
			want, got := float64(host[i]), float64(found[i])
			if !(math.Abs(want-got) <= tolerance*max(1, math.Abs(want))) && !(math.IsNaN(want) && math.IsNaN(got)) {
				return fmt.Errorf("%w: element %d: want %v as plain Go has it, found %v", ErrWrong, i, want, got)
			}
		}
		return nil
	})
}

// wave is a number of both signs between -2 and 2 that differs from its neighbours'.
func wave(i int) float32 { return float32(i*37%1009)/252 - 2 }

// positive is wave above 0.
func positive(i int) float32 { return float32(i*37%1009)/252 + 0.25 }

func zero[T element](int) T { return 0 }

func small(i int) int32 { return int32(i*11%7 - 3) }

func whole(i int) int32 { return int32(i*37%1009 - 500) }

// map1 is an element-wise kernel of one operand.
// The output is that of all cases of its type and length; zero fills nothing else.
func map1[A, R element](b *operands, k *shaders.Kernel, n int, from func(int) A, tolerance float64, plain func(out []R, x []A)) {
	x, hx := common(b, from, n)
	out, ho := common(b, zero[R], n)
	gives(b.add(k, 8*n, n, func() { plain(ho, hx) }, x, out), out, ho, tolerance)
}

// map2 is one of two.
func map2[A, R element](b *operands, k *shaders.Kernel, n int, from, second func(int) A, tolerance float64, plain func(out []R, x, y []A)) {
	x, hx := common(b, from, n)
	y, hy := common(b, second, n)
	out, ho := common(b, zero[R], n)
	gives(b.add(k, 12*n, n, func() { plain(ho, hx, hy) }, x, y, out), out, ho, tolerance)
}

// each1 and each2 apply a function that costs much more than its call.
func each1[A, R element](f func(A) R) func(out []R, x []A) {
	return func(out []R, x []A) {
		for i, v := range x {
			out[i] = f(v)
		}
	}
}

func each2[A, R element](f func(a, b A) R) func(out []R, x, y []A) {
	return func(out []R, x, y []A) {
		for i, v := range x {
			out[i] = f(v, y[i])
		}
	}
}

func in64(f func(float64) float64) func(out, x []float32) {
	return each1(func(x float32) float32 { return float32(f(float64(x))) })
}

func truth(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}
