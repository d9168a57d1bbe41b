package vk

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	vulkan "github.com/vulkan-go/vulkan"

	"vkcompute/vk/internal/abi"
)

// DeviceVariable is the environment variable that selects a device when Options.Device is empty.
const DeviceVariable = "VKCOMPUTE_DEVICE"

// Options of Open. The zero value opens the best device.
type Options struct {
	// Device selects a device as Choose describes. Empty: the environment variable
	// VKCOMPUTE_DEVICE, else the best one.
	Device string
	// Validation runs the Khronos validation layer beneath the library; its findings
	// come out of Device.Messages and go to Logger.
	Validation Validation
	// Prints says what becomes of what shaders print.
	Prints ShaderPrints
	// PipelineCache is a folder in which compiled shaders are kept from one process to the
	// next, one file for each device and driver. Empty: they are not kept. A file that is
	// damaged or of another driver is ignored, which the Logger is told. What else is kept for
	// a device lies there too, such as its tuning (package cmdbuf).
	PipelineCache string
	// Untrusted confines shaders that the library does not know: an access beyond the end of
	// a binding reaches no other data, as Device.Robustness says in detail. It costs something
	// on every access of every shader, and protects memory alone: a shader that never ends
	// still takes the device with it, and a module should have passed spirv-val before.
	// ErrUnsupported where the device cannot.
	Untrusted bool
	// Logger receives warnings: a CPU device chosen for want of another, messages of
	// the driver. Nil: nothing is logged.
	Logger *slog.Logger
}

// Device is an open logical device with its compute queue. Its methods may be called
// from several goroutines.
type Device struct {
	in     *instance
	c      *abi.Device
	device vulkan.Device
	info   DeviceInfo
	why    string
	family int
	robust Robustness
	folder string // Options.PipelineCache
	logger *slog.Logger

	queueMu sync.Mutex  // queues are externally synchronised
	closing []*Timeline // closed, and not destroyed yet
	queue   uint64

	lost, closed atomic.Bool
	live         [kindCount]atomic.Int64
	created      [kindCount]atomic.Uint64

	memory memoryAccount

	pipelineMu sync.Mutex
	pipelines  map[pipelineKey]*compiled
	cache      *pipelineCache // nil without Options.PipelineCache
}

// Open opens a device. On a machine with nothing but a CPU driver that one is taken,
// and the Logger told.
func Open(o Options) (*Device, error) {
	logger := o.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	in, err := newInstance(o.Validation, o.Prints, logger)
	if err != nil {
		return nil, err
	}
	d, err := open(in, o, logger)
	if err != nil {
		in.close()
		return nil, err
	}
	return d, nil
}

func open(in *instance, o Options, logger *slog.Logger) (*Device, error) {
	list, err := in.devices()
	if err != nil {
		return nil, err
	}
	selector, from := o.Device, ""
	if selector == "" {
		if selector = os.Getenv(DeviceVariable); selector != "" {
			from = " (from " + DeviceVariable + ")"
		}
	}
	info, why, err := Choose(list, selector)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, from)
	}
	if info.Type == CPU && selector == "" {
		logger.Warn("vk: no GPU can be used, computing on the CPU", "device", info.Name)
	}
	var extensions []string
	if slices.Contains(info.extensions, portabilitySubset) {
		extensions = append(extensions, portabilitySubset) // must be enabled where it exists
	}
	if info.Features.MemoryBudget {
		extensions = append(extensions, memoryBudget)
	}
	if o.Prints != PrintsIgnored {
		listed := slices.Contains(info.extensions, nonSemanticInfo)
		if listed {
			extensions = append(extensions, nonSemanticInfo)
		}
		info.warnUnprintable(logger, listed)
	}
	if o.PipelineCache != "" && info.Features.CreationFeedback {
		extensions = append(extensions, creationFeedback)
	}
	robust := NotRobust
	if o.Untrusted {
		if robust, err = info.robustness(); err != nil {
			return nil, err
		}
		if robust == RobustBinding {
			extensions = append(extensions, robustness2)
		}
	}
	family := info.computeFamily()
	c, missing, r := in.c.NewDevice(info.physical, uint32(family), 1, extensions, enable(info.Features, robust))
	if r < 0 {
		detail := fmt.Sprintf("device %q", info.Name)
		if missing != "" {
			detail += ": the driver has no " + missing
		}
		return nil, &Error{Call: "vkCreateDevice", Result: r, Detail: detail}
	}
	d := &Device{in: in, c: c, device: handle[vulkan.Device](c.Handle()), info: info, why: why + from, family: family, robust: robust, folder: o.PipelineCache, logger: logger}
	d.memory.init(d)
	var queue vulkan.Queue
	vulkan.GetDeviceQueue(d.device, uint32(family), 0, &queue)
	d.queue = bits(queue)
	if o.PipelineCache != "" {
		d.cache = d.openCache(o.PipelineCache)
	}
	return d, nil
}

// enable turns on what shaders and the library can use. Robust access is left off unless
// it was asked for: it costs on every access, and the library checks ranges before a launch.
func enable(f Features, robust Robustness) abi.Enable {
	var e abi.Enable
	for _, b := range []struct {
		on  bool
		bit abi.Enable
	}{
		{f.Float64, abi.EnableFloat64}, {f.Float16, abi.EnableFloat16}, {f.Int64, abi.EnableInt64}, {f.Int16, abi.EnableInt16},
		{f.Int8, abi.EnableInt8}, {f.Storage16, abi.EnableStorage16}, {f.Storage8, abi.EnableStorage8},
		{f.DeviceAddress, abi.EnableAddress}, {f.HostQueryReset, abi.EnableHostQueryReset},
		{robust == RobustBuffer, abi.EnableRobust}, {robust == RobustBinding, abi.EnableRobust2},
	} {
		if b.on {
			e |= b.bit
		}
	}
	return e
}

// Info is what is known of the device.
func (d *Device) Info() DeviceInfo { return d.info }

// Why says why this device was chosen.
func (d *Device) Why() string { return d.why }

// Limits are the device's, to be read only.
func (d *Device) Limits() *Limits { return &d.info.Limits }

// Logger is the one given to Open, or one that discards.
func (d *Device) Logger() *slog.Logger { return d.logger }

// Messages returns what the validation layer, the loader and the driver reported since
// the last call. Without validation there are none, and after Close neither.
func (d *Device) Messages() []Message { return d.in.take() }

// PipelineFolder is Options.PipelineCache, where what belongs to this device and driver is
// kept from one process to the next. Empty: nowhere.
func (d *Device) PipelineFolder() string { return d.folder }

// Lost reports whether the device was lost.
func (d *Device) Lost() bool { return d.lost.Load() }

// Crossings counts the calls into C on the path of a launch since the device was
// opened: one per batch, one per replay. Objects are made and destroyed by calls that it
// does not count: a stream makes a command buffer, which it then keeps, when all it has are
// in flight.
func (d *Device) Crossings() uint64 { return d.c.Crossings() }

// Close waits for the device to be idle and destroys it. It refuses, changing nothing,
// with ErrObjectsAlive while anything made from the device exists. Messages nobody has
// read become its error, and the device is closed all the same. It is the last call:
// those of other goroutines have returned. Closing twice does nothing.
func (d *Device) Close() error {
	if d.closed.Load() {
		return nil
	}
	d.destroyTimelines()
	if alive := d.Alive(); alive != "" {
		return fmt.Errorf("vk: closing %q: %w: %s; close them first", d.info.Name, ErrObjectsAlive, alive)
	}
	if d.closed.Swap(true) {
		return nil
	}
	err := d.cache.close()
	d.queueMu.Lock()
	if r := vulkan.DeviceWaitIdle(d.device); r < 0 && r != vulkan.ErrorDeviceLost {
		err = errors.Join(err, &Error{Call: "vkDeviceWaitIdle", Result: int32(r)})
	}
	vulkan.DestroyDevice(d.device, nil)
	d.queueMu.Unlock()
	d.in.drain()
	d.c.Free()
	for _, m := range d.in.take() { // what nobody asked for must not vanish
		err = errors.Join(err, fmt.Errorf("vk: unread message: %v", m))
	}
	d.in.close()
	return err
}

// kind is a kind of object, for the count of those alive.
type kind int

const (
	kindBuffer kind = iota
	kindMemory
	kindShader
	kindPipeline
	kindPipelineLayout
	kindSetLayout
	kindDescriptorPool
	kindCommandPool
	kindTimeline
	kindQueryPool
	kindPipelineCache
	kindCount
)

var kindNames = [kindCount]string{"buffers", "memory allocations", "shader modules", "pipelines", "pipeline layouts",
	"descriptor set layouts", "descriptor pools", "command pools", "timelines", "query pools", "pipeline caches"}

func (d *Device) born(k kind) { d.live[k].Add(1); d.created[k].Add(1) }
func (d *Device) died(k kind) { d.live[k].Add(-1) }

// Alive lists the objects made from the device and not yet destroyed, such as
// "2 buffers, 1 pipelines"; empty when there are none.
func (d *Device) Alive() string {
	var parts []string
	for k := range d.live {
		if kind(k) == kindPipelineCache {
			continue // the device's own
		}
		if n := d.live[k].Load(); n != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kindNames[k]))
		}
	}
	return strings.Join(parts, ", ")
}

// Created counts the objects made since the device was opened, by kind.
func (d *Device) Created() map[string]uint64 {
	m := make(map[string]uint64, kindCount)
	for k := range d.created {
		m[kindNames[k]] = d.created[k].Load()
	}
	return m
}

// name labels an object for debuggers and validation messages.
func (d *Device) name(objectType vulkan.ObjectType, h uint64, name string) {
	if name != "" {
		d.c.Name(int32(objectType), h, name)
	}
}
