package abi

/*
#cgo CFLAGS: -std=gnu11 -O2
#cgo linux LDFLAGS: -ldl -lpthread
#include "abi.h"

#cgo noescape vc_loader_open
#cgo nocallback vc_loader_open
#cgo noescape vc_instance_version
#cgo nocallback vc_instance_version
#cgo noescape vc_instance_layers
#cgo nocallback vc_instance_layers
#cgo noescape vc_instance_extensions
#cgo nocallback vc_instance_extensions
#cgo noescape vc_instance_new
#cgo nocallback vc_instance_new
#cgo nocallback vc_instance_free
#cgo nocallback vc_instance_handle
#cgo nocallback vc_messages_pending
#cgo noescape vc_messages_take
#cgo nocallback vc_messages_take
#cgo noescape vc_physical_list
#cgo nocallback vc_physical_list
#cgo noescape vc_physical_extensions
#cgo nocallback vc_physical_extensions
#cgo noescape vc_physical_query
#cgo nocallback vc_physical_query
#cgo noescape vc_physical_budget
#cgo nocallback vc_physical_budget
#cgo noescape vc_device_new
#cgo nocallback vc_device_new
#cgo nocallback vc_device_free
#cgo noescape vc_name
#cgo nocallback vc_name
#cgo noescape vc_memory_alloc
#cgo nocallback vc_memory_alloc
#cgo nocallback vc_buffer_address
#cgo noescape vc_shader_module
#cgo nocallback vc_shader_module
#cgo noescape vc_set_layout
#cgo nocallback vc_set_layout
#cgo noescape vc_pipeline_layout
#cgo nocallback vc_pipeline_layout
#cgo noescape vc_pipeline_cache
#cgo nocallback vc_pipeline_cache
#cgo noescape vc_compute_pipeline
#cgo nocallback vc_compute_pipeline
#cgo noescape vc_timeline
#cgo nocallback vc_timeline
#cgo noescape vc_timeline_value
#cgo nocallback vc_timeline_value
#cgo nocallback vc_timeline_wait
#cgo noescape vc_query_results
#cgo nocallback vc_query_results
#cgo noescape vc_descriptor_pool
#cgo nocallback vc_descriptor_pool
#cgo noescape vc_descriptor_sets
#cgo nocallback vc_descriptor_sets
#cgo noescape vc_descriptor_sets_free
#cgo nocallback vc_descriptor_sets_free
#cgo noescape vc_record
#cgo nocallback vc_record
#cgo noescape vc_submit
#cgo nocallback vc_submit
#cgo noescape vc_flush
#cgo nocallback vc_flush
#cgo noescape vc_invalidate
#cgo nocallback vc_invalidate
*/
import "C"

import (
	"fmt"
	"strings"
	"unsafe"
)

// Results that are not the driver's.
const (
	BadStream   int32 = C.VC_BAD_STREAM
	BadArgument int32 = C.VC_BAD_ARGUMENT
)

const (
	success              int32 = C.VC_SUCCESS
	incomplete           int32 = C.VC_INCOMPLETE
	initializationFailed int32 = C.VC_ERROR_INITIALIZATION_FAILED
)

func u64(p []uint64) *C.uint64_t { return (*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(p))) }
func u32(p []uint32) *C.uint32_t { return (*C.uint32_t)(unsafe.Pointer(unsafe.SliceData(p))) }

// flat joins names for the C side: each ends with a NUL, and an empty name ends the list.
func flat(names []string) []byte {
	return []byte(strings.Join(append(names[:len(names):len(names)], "", ""), "\x00"))
}

func cstring(b []byte) *C.char { return (*C.char)(unsafe.Pointer(unsafe.SliceData(b))) }

func gostring(b []byte) string {
	if i := strings.IndexByte(string(b), 0); i >= 0 {
		b = b[:i]
	}
	return strings.ToValidUTF8(string(b), "�")
}

// names calls f with a growing buffer until its NUL separated names fit.
func names(f func(out *C.char, size C.size_t, count *C.uint32_t) C.VcResult) ([]string, int32) {
	for size := 16 << 10; ; size *= 2 {
		buf := make([]byte, size)
		var count C.uint32_t
		r := int32(f(cstring(buf), C.size_t(size), &count))
		if r == incomplete && size < 16<<20 {
			continue
		}
		if r < 0 {
			return nil, r
		}
		list := make([]string, 0, count)
		for range count {
			s := gostring(buf)
			list = append(list, s)
			buf = buf[len(s)+1:]
		}
		return list, r
	}
}

// Loader is an open Vulkan loader library.
type Loader struct {
	get  unsafe.Pointer // vkGetInstanceProcAddr
	Name string         // the name under which it was found
}

// OpenLoader tries the library names in order.
func OpenLoader(libraries []string) (*Loader, error) {
	list := flat(libraries)
	var why, found [2048]byte
	p := C.vc_loader_open(cstring(list), cstring(why[:]), C.size_t(len(why)), cstring(found[:]), C.size_t(len(found)))
	if p == nil {
		return nil, fmt.Errorf("%s", gostring(why[:]))
	}
	return &Loader{get: p, Name: gostring(found[:])}, nil
}

// GivenLoader is the loader behind a vkGetInstanceProcAddr that the program brought along.
func GivenLoader(vkGetInstanceProcAddr unsafe.Pointer) *Loader {
	return &Loader{get: vkGetInstanceProcAddr, Name: "the loader given by the program"}
}

// ProcAddr is the loader's vkGetInstanceProcAddr.
func (l *Loader) ProcAddr() unsafe.Pointer { return l.get }

// Version is the highest Vulkan version the loader takes.
func (l *Loader) Version() (uint32, int32) {
	var v C.uint32_t
	r := C.vc_instance_version(l.get, &v)
	return uint32(v), int32(r)
}

// Layers lists the layers installed.
func (l *Loader) Layers() ([]string, int32) {
	return names(func(out *C.char, size C.size_t, count *C.uint32_t) C.VcResult {
		return C.vc_instance_layers(l.get, out, size, count)
	})
}

// Extensions lists the instance extensions of a layer, or with "" those of the loader
// and the drivers.
func (l *Loader) Extensions(layer string) ([]string, int32) {
	name := flat([]string{layer})
	return names(func(out *C.char, size C.size_t, count *C.uint32_t) C.VcResult {
		return C.vc_instance_extensions(l.get, cstring(name), out, size, count)
	})
}

// Validation says how much the validation layer checks.
type Validation uint32

const (
	ValidateOff  Validation = C.VC_VALIDATE_OFF
	ValidateCore Validation = C.VC_VALIDATE_CORE
	ValidateSync Validation = C.VC_VALIDATE_SYNC
)

// InstanceSpec is what an Instance is made from.
type InstanceSpec struct {
	APIVersion         uint32
	Validation         Validation
	Messages           bool // collect debug-utils messages
	Names              bool // VK_EXT_debug_utils is among the extensions: objects can be named
	Portability        bool // also list devices that are not fully conformant
	LayerSettings      bool // the validation layer takes VK_EXT_layer_settings
	ValidationFeatures bool // the validation layer takes VK_EXT_validation_features
	Prints             bool // the layer collects what shaders print
	Layers, Extensions []string
}

// Instance is a VkInstance with its function table and message ring, in C memory.
type Instance struct {
	c       *C.vc_instance
	pending *uint32
}

func flag(b bool) C.uint32_t {
	if b {
		return 1
	}
	return 0
}

// NewInstance makes an instance.
func (l *Loader) NewInstance(s InstanceSpec) (*Instance, int32) {
	spec := C.vc_instance_spec{
		api_version: C.uint32_t(s.APIVersion), validation: C.uint32_t(s.Validation), messages: flag(s.Messages), names: flag(s.Names),
		portability: flag(s.Portability), layer_settings: flag(s.LayerSettings), validation_features: flag(s.ValidationFeatures), prints: flag(s.Prints),
	}
	layers, extensions := flat(s.Layers), flat(s.Extensions)
	var out *C.vc_instance
	r := C.vc_instance_new(l.get, &spec, cstring(layers), C.uint32_t(len(s.Layers)), cstring(extensions), C.uint32_t(len(s.Extensions)), &out)
	if r < 0 {
		return nil, int32(r)
	}
	return &Instance{c: out, pending: (*uint32)(unsafe.Pointer(C.vc_messages_pending(out)))}, success
}

// Free destroys the instance. No device of it may be alive.
func (in *Instance) Free() {
	C.vc_instance_free(in.c)
	in.c, in.pending = nil, nil
}

// Handle is the VkInstance.
func (in *Instance) Handle() uint64 { return uint64(uintptr(C.vc_instance_handle(in.c))) }
