package vk

import (
	"unsafe"

	vulkan "github.com/vulkan-go/vulkan"

	"vkcompute/vk/internal/abi"
)

// What the tests of package vk_test see of the inside.

const (
	KeptMessages     = keptMessages
	MaxBindings      = abi.MaxBindings
	MaxBindingNumber = maxBindingNumber
	MaxTimestamps    = maxTimestamps
	BadStream        = abi.BadStream
	UsageDefault     = usageDefault
)

// Append adds words that nobody has checked.
func (c *Commands) Append(words ...uint64) { c.words = append(c.words, words...) }

// CheckPipeline is the check of NewPipeline on a made-up device.
func CheckPipeline(i DeviceInfo, s PipelineSpec) error { return i.checkPipeline(&s) }

// CheckShader is the part of it that reads the code.
func CheckShader(s PipelineSpec, f Features) error { return checkShader(&s, &f, "test") }

// FindLoader looks for a loader under other names.
func FindLoader(names ...string) error {
	_, err := findLoader(names)
	return err
}

// AtomRange grows a range to whole atoms.
var AtomRange = atomRange

// Physical is a physical device as the driver describes it.
type Physical = abi.Physical

type (
	PhysicalFamily = abi.QueueFamily
	PhysicalHeap   = abi.MemoryHeap
)

// NewInfo is what the library makes of it.
func NewInfo(p *Physical) DeviceInfo { return newInfo(0, 0, p, nil) }

// FakePipeline is a pipeline of made-up handles that no driver sees.
func FakePipeline(pipeline, layout, setLayout uint64, push uint32, bindings ...Binding) *Pipeline {
	p := &Pipeline{compiled: &compiled{
		pipeline: handle[vulkan.Pipeline](pipeline), layout: handle[vulkan.PipelineLayout](layout),
		setLayout: handle[vulkan.DescriptorSetLayout](setLayout), push: push, bindings: bindings,
	}}
	for _, b := range bindings {
		if b.Kind == StorageBufferDynamic {
			p.dynamic++
		}
	}
	return p
}

// FakeQueryPool is the same of a query pool.
func FakeQueryPool(pool uint64, count uint32) *QueryPool {
	return &QueryPool{pool: handle[vulkan.QueryPool](pool), count: count}
}

// Check returns the first command that was refused.
func (c *Commands) Check() error { return c.check() }

// Words is the encoded form of a program, and its first fault.
func (p *SetProgram) Words() ([]uint64, string) {
	p.complete()
	return p.words, p.fault
}

// SetLost makes the library believe that the device was lost.
func (d *Device) SetLost() { d.lost.Store(true) }

// FakeTimeline is a timeline without a device behind it.
func FakeTimeline() *Timeline { return &Timeline{d: &Device{}} }

func (t *Timeline) Next() uint64                         { return t.next() }
func (t *Timeline) Fail(serial uint64)                   { t.fail(serial) }
func (t *Timeline) Advance(value uint64) (uint64, error) { return t.advance(value) }
func (t *Timeline) Target(serial uint64) (uint64, bool, error) {
	return t.target(serial)
}
func (t *Timeline) Signalled(serial uint64) uint64 { return t.signalled(serial) }

// SizeofSubmission is of the structure both sides of the border share.
const SizeofSubmission = unsafe.Sizeof(abi.Submission{})

// Reserve and Settle are the books of device memory, on a made-up device.
func FakeDevice(i DeviceInfo) *Device {
	d := &Device{info: i}
	d.memory.init(d)
	return d
}

func (d *Device) Reserve(memoryType int, size uint64, rule BudgetRule) error {
	return d.reserve(memoryType, size, rule)
}
func (d *Device) Settle(memoryType int, size uint64, ok bool) { d.settle(memoryType, size, ok) }
func (d *Device) Unreserve(memoryType int, size uint64)       { d.unreserve(memoryType, size) }

// HandleRoundTrip turns a handle into the binding's type and back.
func HandleRoundTrip(b uint64) uint64 { return bits(handle[vulkan.Buffer](b)) }

// FakeBuffer is a buffer of a made-up device.
func FakeBuffer(d *Device, size, allocated uint64, memoryType int, mapped bool) *Buffer {
	b := &Buffer{d: d, size: size, allocated: allocated, memoryType: memoryType}
	if mapped {
		b.mapped = make([]byte, size)
	}
	return b
}

// Check is what Invalidate and Submit refuse.
func (r FlushRange) Check(d *Device) error { return r.check(d) }

// BarePipeline makes a pipeline and what it needs, and destroys it, with nothing of the
// library around it.
func BarePipeline(d *Device, s PipelineSpec) error {
	var numbers, kinds, spec []uint32
	for _, b := range s.Bindings {
		numbers, kinds = append(numbers, b.Number), append(kinds, uint32(b.Kind))
	}
	for _, c := range s.Constants {
		spec = append(spec, c.ID, c.Value)
	}
	set, r1 := d.c.SetLayout(numbers, kinds)
	layout, r2 := d.c.PipelineLayout(set, s.PushSize)
	module, r3 := d.c.ShaderModule(s.Code)
	p, r4 := d.c.ComputePipeline(0, module, s.Entry, layout, spec, nil)
	vulkan.DestroyShaderModule(d.device, handle[vulkan.ShaderModule](module), nil)
	vulkan.DestroyPipeline(d.device, handle[vulkan.Pipeline](p), nil)
	vulkan.DestroyPipelineLayout(d.device, handle[vulkan.PipelineLayout](layout), nil)
	vulkan.DestroyDescriptorSetLayout(d.device, handle[vulkan.DescriptorSetLayout](set), nil)
	return d.result(min(r1, r2, r3, r4), "a bare pipeline", "")
}

// BestRobustness is what Options.Untrusted would get on a made-up device.
func BestRobustness(f Features) (Robustness, error) {
	return (&DeviceInfo{Name: "test", Features: f}).robustness()
}

// Fold is what becomes of what drivers list; models are the vendor's numbers.
func Fold(list []DeviceInfo, models ...uint32) []DeviceInfo {
	for i, m := range models {
		list[i].deviceID = m
	}
	return fold(list)
}

// CountPhysical is how many devices the drivers list, the same one twice perhaps.
func CountPhysical() (int, error) {
	in, err := newInstance(ValidationOff, PrintsIgnored, nil)
	if err != nil {
		return 0, err
	}
	defer in.close()
	list, _ := in.c.Physicals()
	return len(list), nil
}

// ParsePrint finds what a shader printed in a message of the layer.
var ParsePrint = parsePrint
