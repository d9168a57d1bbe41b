package cfloor_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/cfloor"
	"vkcompute/internal/testenv"
	"vkcompute/internal/vktest"
	"vkcompute/shaders"
	"vkcompute/shaders/ref"
	"vkcompute/vk"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const elements = 64

// chain is two launches in turn, a+b→c and c+b→a, on every second element.
type chain struct {
	d        *vk.Device
	pipeline *vk.Pipeline
	buffers  [3]*vk.Buffer
	layout   shaders.Layout
	spec     cfloor.Spec
}

var between = cfloor.Barrier{
	From: vk.Scope{Stages: vk.StageCompute, Access: vk.AccessShaderWrite},
	To:   vk.Scope{Stages: vk.StageCompute, Access: vk.AccessShaderRead | vk.AccessShaderWrite},
}

var toHost = cfloor.Barrier{From: between.From, To: vk.Scope{Stages: vk.StageHost | vk.StageCompute, Access: vk.AccessHostRead | vk.AccessShaderRead | vk.AccessShaderWrite}}

func newChain(t *testing.T, launches int) *chain {
	c := &chain{d: vktest.Open(t)}
	k, l := shaders.Add, c.d.Limits()
	constants, workgroup := k.Spec(shaders.MaxWorkgroup{Invocations: uint32(l.MaxWorkgroupInvocations), Size: l.MaxWorkgroupSize})
	spec := vk.PipelineSpec{Code: k.Module.Words, Entry: k.Entry, Workgroup: workgroup, Name: k.Name,
		Bindings: []vk.Binding{{Kind: vk.StorageBufferDynamic}, {Number: 1, Kind: vk.StorageBuffer}, {Number: 2, Kind: vk.StorageBuffer}, {Number: 3, Kind: vk.StorageBuffer}}}
	for _, s := range constants {
		spec.Constants = append(spec.Constants, vk.SpecConstant{ID: s.ID, Value: s.Value})
	}
	var err error
	c.pipeline, err = c.d.NewPipeline(spec)
	require.NoError(t, err)
	t.Cleanup(c.pipeline.Close)

	c.layout = shaders.Contiguous(elements)
	c.layout.Stride[0] = 2
	var plan shaders.Plan
	op := shaders.Operand{Layout: c.layout, DType: shaders.Float32}
	require.NoError(t, k.Plan(shaders.Env{WorkgroupSize: workgroup}, []shaders.Operand{op, op, op}, &plan))
	for i := range c.buffers {
		c.buffers[i], err = c.d.NewBuffer(vk.BufferSpec{Size: 2 * elements * 4, Role: vk.ReadbackMemory})
		require.NoError(t, err)
		t.Cleanup(c.buffers[i].Close)
	}
	c.spec = cfloor.Spec{
		Pipeline: c.pipeline, Launches: launches, InfoRange: uint64(len(plan.Info)) * 8,
		Groups: [3]uint32{uint32(plan.Groups[0]), uint32(plan.Groups[1]), uint32(plan.Groups[2])},
		Begin:  between, Between: between, End: toHost,
	}
	for _, order := range [][3]int{{0, 1, 2}, {2, 1, 0}} {
		step := cfloor.Step{Info: plan.Info}
		for at, n := range order {
			step.Tensors = append(step.Tensors, cfloor.Tensor{Binding: uint32(at + 1), Buffer: c.buffers[n].Handle(), Range: c.buffers[n].Size()})
		}
		c.spec.Steps = append(c.spec.Steps, step)
	}
	return c
}

const gap = -7 // what lies between the elements

func (c *chain) reset(t *testing.T) {
	var flushes []vk.FlushRange
	for n, b := range c.buffers {
		m := b.Mapped()
		for i := range 2 * elements {
			v := float32(gap)
			if i%2 == 0 {
				v = float32((n + 1) * i)
			}
			binary.NativeEndian.PutUint32(m[4*i:], math.Float32bits(v))
		}
		flushes = append(flushes, vk.FlushRange{Buffer: b, Size: b.Size()})
	}
	// A submission of nothing but flushes.
	timeline, err := c.d.NewTimeline()
	require.NoError(t, err)
	defer timeline.Close()
	serial, err := c.d.Submit(&vk.Submission{Flushes: flushes}, timeline)
	require.NoError(t, err)
	require.NoError(t, timeline.Wait(context.Background(), serial))
}

func (c *chain) read(t *testing.T, n int) ref.Tensor {
	require.NoError(t, c.d.Invalidate(vk.FlushRange{Buffer: c.buffers[n], Size: c.buffers[n].Size()}))
	data := make([]float32, 2*elements)
	for i := range data {
		data[i] = math.Float32frombits(binary.NativeEndian.Uint32(c.buffers[n].Mapped()[4*i:]))
	}
	return ref.Tensor{Layout: c.layout, Data: data}
}

// want computes what the buffers hold after running the chain so many times.
func (c *chain) want(t *testing.T, shots int) [3]ref.Tensor {
	var v [3]ref.Tensor
	for n := range v {
		v[n] = c.read(t, n)
	}
	for range shots { // each begins with the first step
		for i := range c.spec.Launches {
			from, to := i%2*2, 2-i%2*2
			r := ref.Add(v[from], v[1], []int{elements})
			for at, x := range r.Value {
				v[to].Data[2*at] = float32(x)
			}
		}
	}
	return v
}

func TestEveryModeComputesTheChain(t *testing.T) {
	for _, launches := range []int{1, 2, 33} {
		for mode := cfloor.Rebuild; mode <= cfloor.Replay; mode++ {
			for _, binds := range []cfloor.Binds{cfloor.BindOnce, cfloor.BindEach} {
				t.Run(fmt.Sprintf("%v/%d/%d", mode, launches, binds), func(t *testing.T) {
					c := newChain(t, launches)
					c.spec.Binds = binds
					f, err := cfloor.New(c.d, c.spec)
					require.NoError(t, err)
					defer f.Close()
					c.reset(t)
					const shots = 3
					want := c.want(t, shots)
					require.NoError(t, f.Run(mode, shots))
					for n := range c.buffers {
						require.Equal(t, want[n].Data, c.read(t, n).Data, "buffer %d", n)
					}
					require.Equal(t, cfloor.Counts{Launches: launches, Barriers: launches + 1}, f.Recorded())
				})
			}
		}
	}
}

// A floor without its barriers is cheaper and wrong: the layer must see that.
func TestBarriersAreReal(t *testing.T) {
	if !testenv.Require(t).Oracle {
		t.Skip("the oracle was switched off on purpose")
	}
	c := newChain(t, 4)
	c.spec.Between = cfloor.Barrier{}
	f, err := cfloor.New(c.d, c.spec)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Run(cfloor.Cached, 1))
	require.Equal(t, 2, f.Recorded().Barriers)
	require.NotEmpty(t, c.d.Messages(), "the layer saw nothing")
}

func TestEmpty(t *testing.T) {
	c := newChain(t, 1)
	f, err := cfloor.New(c.d, c.spec)
	require.NoError(t, err)
	defer f.Close()
	c.reset(t)
	want := c.want(t, 0)
	require.NoError(t, f.Run(cfloor.Empty, 5))
	require.Equal(t, want[2].Data, c.read(t, 2).Data)
}

func TestNothingIsLeftBehind(t *testing.T) {
	c := newChain(t, 3)
	before := c.d.Alive()
	f, err := cfloor.New(c.d, c.spec)
	require.NoError(t, err)
	f.Close()
	f.Close()
	require.Equal(t, before, c.d.Alive())
}

func TestBadSpecs(t *testing.T) {
	c := newChain(t, 2)
	for name, change := range map[string]func(*cfloor.Spec){
		"no launches":           func(s *cfloor.Spec) { s.Launches = 0 },
		"too many launches":     func(s *cfloor.Spec) { s.Launches = 1 << 30 },
		"no pipeline":           func(s *cfloor.Spec) { s.Pipeline = nil },
		"no steps":              func(s *cfloor.Spec) { s.Steps = nil },
		"a tensor short":        func(s *cfloor.Spec) { s.Steps[1].Tensors = s.Steps[1].Tensors[:2] },
		"infos of two lengths":  func(s *cfloor.Spec) { s.Steps[1].Info = s.Steps[1].Info[:1] },
		"info beyond its range": func(s *cfloor.Spec) { s.InfoRange -= 8 },
	} {
		t.Run(name, func(t *testing.T) {
			s := c.spec
			s.Steps = append([]cfloor.Step(nil), s.Steps...)
			change(&s)
			_, err := cfloor.New(c.d, s)
			require.Error(t, err)
		})
	}
	f, err := cfloor.New(c.d, c.spec)
	require.NoError(t, err)
	defer f.Close()
	require.Error(t, f.Run(cfloor.Empty+1, 1))
	require.Error(t, f.Run(cfloor.Replay, 0))
}
