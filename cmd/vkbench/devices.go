package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"vkcompute/vk"
)

type devicesCommand struct {
	deviceFlags
	Cache  string `help:"Folder of pipeline caches, in which 'vkbench tune' leaves tunings. Without it: vkcompute in the user's folder of caches." placeholder:"DIR" type:"path"`
	Format string `enum:"table,json" default:"table" help:"table or json."`
	Output string `short:"o" help:"File to write to instead of standard output." placeholder:"FILE" type:"path"`
}

// deviceReport is the JSON form.
type deviceReport struct {
	Schema  int          `json:"schema"`
	Devices []deviceJSON `json:"devices"`
	Chosen  *int         `json:"chosen,omitempty"` // index
	Why     string       `json:"why"`
}

type deviceJSON struct {
	Index       int          `json:"index"`
	Name        string       `json:"name"`
	Type        string       `json:"type"`
	Driver      string       `json:"driver"`
	API         string       `json:"api"`
	UUID        string       `json:"uuid"`
	Refused     string       `json:"refused,omitempty"`
	Limits      vk.Limits    `json:"limits"`
	Features    vk.Features  `json:"features"`
	Heaps       []heapJSON   `json:"heaps"`
	MemoryTypes []memoryJSON `json:"memory_types"`
	Tuning      string       `json:"tuning,omitempty"` // what vkbench tune left
}

type heapJSON struct {
	Size        uint64 `json:"size"`
	DeviceLocal bool   `json:"device_local"`
}

type memoryJSON struct {
	Heap  int    `json:"heap"`
	Flags string `json:"flags"`
}

// Validate is called by kong.
func (c *devicesCommand) Validate() error { return c.check() }

func (c *devicesCommand) Run(s *streams) error {
	o := output{c.Output, s.out}
	if err := o.check(); err != nil {
		return err
	}
	list, chosen, why, choice := c.choose()
	if list == nil {
		return choice
	}
	r := deviceReport{Schema: 1, Why: why}
	if choice == nil {
		r.Chosen = &chosen.Index
	} else {
		r.Why = choice.Error()
	}
	folder, noFolder := cacheFolder(c.Cache)
	for _, d := range list {
		j := newDeviceJSON(&d)
		if noFolder == nil && d.Refused == "" {
			j.Tuning = tuningOf(folder, &d)
		}
		r.Devices = append(r.Devices, j)
	}
	err := o.write(func(w io.Writer) error {
		if c.Format == "json" {
			e := json.NewEncoder(w)
			e.SetEscapeHTML(false)
			e.SetIndent("", "  ")
			return e.Encode(&r)
		}
		return writeDevices(w, list, &r)
	})
	if err != nil {
		return err
	}
	return choice
}

func newDeviceJSON(d *vk.DeviceInfo) deviceJSON {
	j := deviceJSON{Index: d.Index, Name: d.Name, Type: d.Type.String(), Driver: d.Driver, API: d.API.String(), UUID: d.UUID.String(),
		Refused: d.Refused, Limits: d.Limits, Features: d.Features}
	for _, h := range d.Heaps {
		j.Heaps = append(j.Heaps, heapJSON(h))
	}
	for _, t := range d.MemoryTypes {
		j.MemoryTypes = append(j.MemoryTypes, memoryJSON{t.Heap, t.Flags.String()})
	}
	return j
}

func writeDevices(w io.Writer, list []vk.DeviceInfo, r *deviceReport) error {
	t := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, WidthMax: 100, WidthMaxEnforcer: text.WrapSoft}})
	for i, d := range list {
		if i > 0 {
			t.AppendSeparator()
		}
		l := &d.Limits
		row := func(name, format string, a ...any) { t.AppendRow(table.Row{name, fmt.Sprintf(format, a...)}) }
		row(fmt.Sprintf("device %d", d.Index), "%s", d.Name)
		row("type", "%v", d.Type)
		row("driver", "%s", d.Driver)
		row("Vulkan", "%v", d.API)
		row("UUID", "%v", d.UUID)
		if d.Refused != "" {
			row("refused", "%s", d.Refused)
		}
		row("workgroup", "%d invocations, %s, %s of shared memory; subgroup %d", l.MaxWorkgroupInvocations, product(l.MaxWorkgroupSize), byteSize(l.MaxSharedMemory), l.SubgroupSize)
		row("workgroups", "%s in a launch", product(l.MaxWorkgroupCount))
		row("bindings", "%s each, %d in a set, %d with dynamic offset, offsets by %d bytes", byteSize(l.MaxStorageBufferRange), l.MaxStorageBuffers, l.MaxDynamicStorageBuffers, l.MinStorageBufferAlignment)
		row("push constants", "%s", byteSize(l.MaxPushConstantsSize))
		row("allocations", "%d, of at most %s", l.MaxMemoryAllocationCount, byteSize(l.MaxMemoryAllocationSize))
		if l.TimestampBits > 0 {
			row("timestamps", "%d bits, %g ns a tick", l.TimestampBits, l.TimestampPeriod)
		} else {
			row("timestamps", "none")
		}
		row("features", "%s", features(d.Features))
		if t := r.Devices[i].Tuning; t != "" {
			row("tuning", "%s", t)
		}
		for n, h := range d.Heaps {
			local := ""
			if h.DeviceLocal {
				local = ", device-local"
			}
			row(fmt.Sprintf("heap %d", n), "%s%s", byteSize(h.Size), local)
		}
		for n, m := range d.MemoryTypes {
			row(fmt.Sprintf("memory type %d", n), "heap %d, %v", m.Heap, m.Flags)
		}
		for n, f := range d.Families {
			row(fmt.Sprintf("queue family %d", n), "%d queues: %s", f.Count, family(f))
		}
	}
	if _, err := fmt.Fprintln(w, t.Render()); err != nil {
		return err
	}
	taken := "taken: none: " + r.Why
	if r.Chosen != nil {
		taken = fmt.Sprintf("taken: device %d: %s", *r.Chosen, r.Why)
	}
	_, err := fmt.Fprintln(w, taken)
	return err
}

func product(n [3]uint32) string { return fmt.Sprintf("%d × %d × %d", n[0], n[1], n[2]) }

// bytes writes a size in the largest unit that leaves at least 1.
func byteSize(n uint64) string {
	v, unit := float64(n), "B"
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"} {
		if v < 1024 {
			break
		}
		v, unit = v/1024, u
	}
	return fmt.Sprintf("%.4g %s", v, unit)
}

func family(f vk.QueueFamily) string {
	var parts []string
	for _, p := range []struct {
		on   bool
		name string
	}{{f.Compute, "compute"}, {f.Graphics, "graphics"}, {f.Transfer, "transfer"}} {
		if p.on {
			parts = append(parts, p.name)
		}
	}
	return strings.Join(parts, ", ")
}

func features(f vk.Features) string {
	var parts []string
	for _, p := range []struct {
		on   bool
		name string
	}{
		{f.Float64, "float64"}, {f.Float16, "float16"}, {f.Int64, "int64"}, {f.Int16, "int16"}, {f.Int8, "int8"},
		{f.Storage16, "16-bit storage"}, {f.Storage8, "8-bit storage"}, {f.DeviceAddress, "device addresses"},
		{f.RobustAccess, "robust access"}, {f.RobustAccess2, "robust access 2"}, {f.HostQueryReset, "host query reset"}, {f.MemoryBudget, "memory budget"},
	} {
		if p.on {
			parts = append(parts, p.name)
		}
	}
	if len(parts) == 0 {
		return "none of the optional ones"
	}
	return strings.Join(parts, ", ")
}
