package pool

import (
	"fmt"

	"vkcompute/vk"
)

// memory is one buffer as the pages see it. The tests of bookkeeping, and managers
// of [NewVirtual], make it without a device.
type memory struct {
	buf      *vk.Buffer
	id       uint64
	size     uint64
	mapped   []byte
	coherent bool
	visible  bool // to the host
	heap     int
	close    func()
}

// memoryType is a memory type that is fit for a role.
type memoryType struct {
	index    int // -1: whatever the device takes
	heap     int
	heapSize uint64 // 0: unknown
	local    bool   // device-local
	coherent bool
	visible  bool // to the host
}

// mask returns the bit that names the type in [vk.BufferSpec].
func (t memoryType) mask() uint32 {
	if t.index < 0 {
		return 0
	}
	return 1 << t.index
}

// source makes memory.
type source interface {
	newMemory(spec vk.BufferSpec) (memory, error)
	// types returns the memory types fit for a role, best first. It never changes.
	types(role vk.MemoryRole) []memoryType
	// usage tells what is known of a heap now.
	usage(heap int) vk.HeapUsage
}

// device makes memory on a device.
type device struct {
	dev  Device
	info vk.DeviceInfo
}

func (d device) newMemory(spec vk.BufferSpec) (memory, error) {
	b, err := d.dev.NewBuffer(spec)
	if err != nil {
		return memory{}, err
	}
	return memory{
		buf: b, id: b.ID(), size: spec.Size, mapped: b.Mapped(), coherent: b.Coherent(),
		visible: b.Mapped() != nil, heap: b.HeapIndex(), close: b.Close,
	}, nil
}

func (d device) types(role vk.MemoryRole) []memoryType { return typesOf(&d.info, role) }

func (d device) usage(heap int) vk.HeapUsage {
	if list := d.dev.HeapUsages(); heap >= 0 && heap < len(list) {
		return list[heap]
	}
	return vk.HeapUsage{}
}

func typesOf(info *vk.DeviceInfo, role vk.MemoryRole) []memoryType {
	var list []memoryType
	for _, i := range info.TypesFor(role) {
		t := info.MemoryTypes[i]
		list = append(list, memoryType{
			index: i, heap: t.Heap, heapSize: info.Heaps[t.Heap].Size,
			local: t.Flags&vk.DeviceLocal != 0, coherent: t.Flags&vk.HostCoherent != 0, visible: t.Flags&vk.HostVisible != 0,
		})
	}
	return list
}

// BudgetPolicy says what a pool does when the memory that suits it best is at its
// budget, or the driver has no more of it.
type BudgetPolicy uint8

const (
	// BudgetDefault is BudgetFail for device memory, which is asked for because it is
	// fast, and BudgetSpill for staging and infos, which the host can reach in either place.
	BudgetDefault BudgetPolicy = iota
	// BudgetFail takes no memory farther from the device than the best type for the
	// role, nor nearer: device memory comes from the device alone.
	BudgetFail
	// BudgetSpill takes every memory type fit for the role, in order: device memory
	// ends up in the host's, where kernels run slower but run.
	BudgetSpill
	// BudgetAllow takes the types of BudgetFail past their budget, up to the
	// size of the heap. Others on this machine pay for it.
	BudgetAllow
)

func (b BudgetPolicy) String() string {
	switch b {
	case BudgetDefault:
		return "default"
	case BudgetFail:
		return "fail"
	case BudgetSpill:
		return "spill"
	case BudgetAllow:
		return "allow"
	}
	return fmt.Sprintf("BudgetPolicy(%d)", uint8(b))
}

// rule is the policy as the device knows it.
func (b BudgetPolicy) rule() vk.BudgetRule {
	if b == BudgetAllow {
		return vk.PassBudget
	}
	return vk.HoldBudget
}

// allowed returns the memory types that a pool may use for a class, best first.
func (m *Manager) allowed(p *subPool, c class) []memoryType {
	k := &m.kinds[c.role()]
	if p.spec.Budget == BudgetSpill {
		return k.all
	}
	return k.near
}

// spilled reports whether memory of a heap is farther from the device, or nearer, than what the
// role prefers.
func (m *Manager) spilled(role vk.MemoryRole, t memoryType) bool {
	return t.local != m.kinds[role].all[0].local
}

// kinds are the memory types of one role.
type kinds struct {
	all  []memoryType
	near []memoryType // those as near to the device as the first
}

const roles = int(vk.InfoMemory) + 1

func kindsOf(src source) (list [roles]kinds) {
	for r := range list {
		all := src.types(vk.MemoryRole(r))
		if len(all) == 0 {
			all = []memoryType{{index: -1}} // the device says why there is none
		}
		list[r].all = all
		for _, t := range all {
			if t.local == all[0].local {
				list[r].near = append(list[r].near, t)
			}
		}
	}
	return list
}
