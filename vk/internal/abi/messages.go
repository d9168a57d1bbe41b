package abi

// #include "abi.h"
import "C"

import (
	"sync/atomic"
	"unsafe"
)

// Message is one message of the loader, a layer or a driver.
type Message struct {
	Severity, Types uint32 // VkDebugUtilsMessage… bits
	ID              int32
	Name, Text      string
	Object          string // name of the pipeline or shader module it is about
}

func chars(p *C.char, n int) string {
	return gostring(unsafe.Slice((*byte)(unsafe.Pointer(p)), n))
}

// MessagesPending says without a crossing whether TakeMessages would return any. A freed
// instance has none.
func (in *Instance) MessagesPending() bool {
	return in.pending != nil && atomic.LoadUint32(in.pending) != 0
}

// TakeMessages empties the ring, oldest first. dropped counts messages that found it full.
func (in *Instance) TakeMessages() (list []Message, dropped int) {
	buf := make([]C.vc_message, 8)
	for {
		var lost C.uint32_t
		n := C.vc_messages_take(in.c, unsafe.SliceData(buf), C.uint32_t(len(buf)), &lost)
		dropped += int(lost)
		for i := range buf[:n] {
			m := &buf[i]
			list = append(list, Message{
				Severity: uint32(m.severity), Types: uint32(m.types), ID: int32(m.id),
				Name: chars(&m.name[0], len(m.name)), Text: chars(&m.text[0], len(m.text)),
				Object: chars(&m.object[0], len(m.object)),
			})
		}
		if int(n) < len(buf) {
			return list, dropped
		}
	}
}
