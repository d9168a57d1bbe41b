package shim

/*
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"time"
	"unsafe"
)

// Results to fail with, as Vulkan numbers them.
const (
	ErrorOutOfHostMemory      int32 = -1
	ErrorOutOfDeviceMemory    int32 = -2
	ErrorInitializationFailed int32 = -3
	ErrorDeviceLost           int32 = -4
	ErrorMemoryMapFailed      int32 = -5
	ErrorTooManyObjects       int32 = -10
	ErrorFragmentedPool       int32 = -12
	ErrorUnknown              int32 = -13
	ErrorOutOfPoolMemory      int32 = -1000069000
)

// AnyFunction stands for all functions that return a VkResult.
const AnyFunction = ""

// Fail makes the k-th call from now, beginning with 1, of a function return result
// without reaching the driver. A lost device stays lost: every later call returns that.
// Up to 16 failures can be planned at a time.
func (d *Driver) Fail(function string, k int, result int32) error {
	index := C.int32_t(-1)
	if function != AnyFunction {
		name := C.CString(function)
		defer C.free(unsafe.Pointer(name))
		if index = C.sh_function_index(name); index < 0 {
			return fmt.Errorf("shim: failing %s: %w among those that return a VkResult", function, ErrUnknown)
		}
	}
	if k < 1 {
		return fmt.Errorf("shim: failing call %d of %s: want at least 1", k, function)
	}
	if C.sh_fail(d.c, index, C.uint64_t(k), C.int32_t(result)) == 0 {
		return fmt.Errorf("shim: failing %s: too many failures are planned", function)
	}
	return nil
}

// Planned is the number of failures that have not happened yet.
func (d *Driver) Planned() int { return int(C.sh_planned(d.c)) }

// Unplan forgets the failures that have not happened yet.
func (d *Driver) Unplan() { C.sh_unplan(d.c) }

// Call is a function that returns a VkResult, and how often it was called.
type Call struct {
	Function string
	Count    int
}

// Calls lists the functions that were called, in a fixed order.
func (d *Driver) Calls() []Call {
	var counts [C.SH_FN_COUNT]C.uint64_t
	C.sh_calls(d.c, &counts[0])
	var list []Call
	for i, n := range counts {
		if n != 0 {
			list = append(list, Call{C.GoString(C.sh_function_name(C.uint32_t(i))), int(n)})
		}
	}
	return list
}

// Hang makes the queues take submissions and run none of them. Timelines stand still.
func (d *Driver) Hang() { C.sh_hang(d.c) }

// Release lets hung queues go on, with what they have taken meanwhile. What a submission
// uses and was destroyed or recorded anew in the mean time the validation layer reports now.
// No device may be closed during the call.
func (d *Driver) Release() { C.sh_release(d.c) }

// Watchdog says how long a wait for a hung queue to be idle takes before the device is lost.
func (d *Driver) Watchdog(limit time.Duration) {
	C.sh_watchdog(d.c, C.uint64_t(limit.Milliseconds()))
}
