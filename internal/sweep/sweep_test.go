package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/shim"
	"vkcompute/internal/sweep"
	"vkcompute/internal/testenv"
	"vkcompute/vk"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// bounded ends shortly before the test itself would be ended for taking too long: what
// hangs is then an error that names the call that failed. Nothing else depends on time.
func bounded(t *testing.T) (context.Context, context.CancelFunc) {
	if end, ok := t.Deadline(); ok {
		return context.WithDeadline(context.Background(), end.Add(-10*time.Second))
	}
	return context.WithCancel(context.Background())
}

// endured says why a call may fail with nobody being told; empty: it may not.
func endured(function string, result int32) string {
	switch function {
	case "vkCreateBuffer", "vkAllocateMemory", "vkBindBufferMemory", "vkMapMemory":
		if result != shim.ErrorUnknown {
			return "another type of memory does, or a smaller page"
		}
	case "vkGetSemaphoreCounterValue":
		if result != shim.ErrorDeviceLost {
			return "the progress is asked for again"
		}
		fallthrough
	case "vkWaitSemaphores":
		// Every later call would say so, and most of the path is calls.
		if result == shim.ErrorDeviceLost {
			return "all was done and read, and the streams of a lost device close like any others"
		}
	case "vkCreatePipelineCache":
		return "pipelines are compiled anew"
	case "vkSetDebugUtilsObjectNameEXT":
		return "an object goes without its name"
	}
	return ""
}

// results are those that a function can plausibly have.
func results(function string) []int32 {
	const invalidShader, layerMissing, incompatible = -1000012000, -6, -9
	memory := []int32{shim.ErrorOutOfHostMemory, shim.ErrorOutOfDeviceMemory}
	switch function {
	case "vkFreeDescriptorSets":
		return nil // Vulkan lets it succeed only
	case "vkEnumerateInstanceVersion", "vkSetDebugUtilsObjectNameEXT", "vkEnumerateInstanceLayerProperties", "vkEnumerateInstanceExtensionProperties":
		return memory[:1]
	case "vkCreateInstance":
		return append(memory, shim.ErrorInitializationFailed, layerMissing, incompatible)
	case "vkEnumeratePhysicalDevices":
		return append(memory, shim.ErrorInitializationFailed)
	case "vkCreateDevice":
		return append(memory, shim.ErrorInitializationFailed, shim.ErrorTooManyObjects, shim.ErrorDeviceLost)
	case "vkAllocateMemory":
		return append(memory, shim.ErrorTooManyObjects)
	case "vkMapMemory":
		return append(memory, shim.ErrorMemoryMapFailed)
	case "vkAllocateDescriptorSets":
		return append(memory, shim.ErrorFragmentedPool, shim.ErrorOutOfPoolMemory)
	case "vkCreateComputePipelines":
		return append(memory, invalidShader, shim.ErrorUnknown)
	case "vkQueueSubmit", "vkWaitSemaphores", "vkGetSemaphoreCounterValue", "vkDeviceWaitIdle", "vkQueueWaitIdle", "vkGetQueryPoolResults":
		return append(memory, shim.ErrorDeviceLost)
	}
	return append(memory, shim.ErrorUnknown)
}

// names are those that errors give to what is more than one function.
var names = map[string]string{
	"vkBeginCommandBuffer":           "recording a command buffer",
	"vkEndCommandBuffer":             "recording a command buffer",
	"vkCreateDebugUtilsMessengerEXT": "vkCreateInstance",
}

// carries looks for the failed call, with its result, anywhere in an error.
func carries(err error, function string, result int32) bool {
	if err == nil {
		return false
	}
	if e, ok := err.(*vk.Error); ok && e.Result == result {
		return e.Call == function || e.Call == names[function]
	}
	switch u := err.(type) {
	case interface{ Unwrap() error }:
		return carries(u.Unwrap(), function, result)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(u.Unwrap(), func(e error) bool { return carries(e, function, result) })
	}
	return false
}

type setting struct {
	profile    string
	validation vk.Validation
}

// options include whatever makes the path longer.
func (s setting) options(t *testing.T) vk.Options {
	return vk.Options{Validation: s.validation, PipelineCache: t.TempDir()}
}

func (s setting) driver(t *testing.T) *shim.Driver {
	require.NoError(t, shim.Install())
	d, err := shim.New(s.profile)
	require.NoError(t, err)
	return d
}

// clean is the path without a failure; it returns how often each function was called.
func clean(t *testing.T, s setting) []shim.Call {
	driver := s.driver(t)
	d, err := driver.Open(s.options(t))
	require.NoError(t, err)
	require.NoError(t, sweep.Run(context.Background(), d))
	require.NoError(t, d.Close())
	calls := driver.Calls()
	require.NoError(t, driver.Close())
	return calls
}

// failing is the path with one failure.
func failing(t *testing.T, s setting, function string, k int, result int32) {
	ctx, cancel := bounded(t)
	defer cancel()
	driver := s.driver(t)
	require.NoError(t, driver.Fail(function, k, result))
	o := s.options(t)
	d, err := driver.Open(o)
	told := err != nil
	if told {
		require.Zero(t, driver.Planned(), "no other failure")
		require.True(t, carries(err, function, result), "%v", err)
		d, err = driver.Open(o)
		require.NoError(t, err, "the next attempt succeeds")
	}
	err = sweep.Run(ctx, d)
	require.NotErrorIs(t, err, sweep.ErrWrong)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	came := driver.Planned() == 0
	if function != "vkGetPipelineCacheData" { // which comes when the device is closed
		driver.Unplan()
	}
	lost := came && result == shim.ErrorDeviceLost && function != "vkCreateDevice"
	switch {
	case err != nil && lost:
		require.ErrorIs(t, err, vk.ErrDeviceLost)
	case err != nil:
		require.True(t, came && !told, "no other failure: %v", err)
		require.True(t, carries(err, function, result), "%v", err)
	case came && !told && endured(function, result) == "":
		t.Errorf("call %d of %s failed with %d, and nobody was told", k, function, result)
	case came && !told:
		t.Log("endured: ", endured(function, result))
	}
	require.Equal(t, lost, d.Lost(), "%v", err)
	if lost {
		before := driver.Calls()
		require.ErrorIs(t, sweep.Run(ctx, d), vk.ErrDeviceLost)
		require.Equal(t, before, driver.Calls(), "a lost device is asked for nothing, least of all to wait")
	} else {
		require.NoError(t, sweep.Run(ctx, d), "the device goes on")
	}
	require.Empty(t, d.Alive())
	if err := d.Close(); err != nil { // the device is closed all the same
		require.True(t, function == "vkGetPipelineCacheData" && carries(err, function, result), "%v", err)
	}
	came = came || driver.Planned() == 0 && function == "vkGetPipelineCacheData"
	require.NoError(t, driver.Close(), "no leak, nothing destroyed twice")
	// How often the library waits, asks for progress and finds no free command buffer
	// depends on how fast the device is.
	if !came && !slices.Contains([]string{"vkWaitSemaphores", "vkGetSemaphoreCounterValue", "vkAllocateCommandBuffers"}, function) {
		t.Errorf("call %d of %s never came", k, function)
	}
}

// The last call of all.
func TestTheWaitBeforeClosingFails(t *testing.T) {
	s := setting{profile: shim.Plain}
	for _, result := range results("vkDeviceWaitIdle") {
		driver := s.driver(t)
		d, err := driver.Open(vk.Options{})
		require.NoError(t, err)
		require.NoError(t, driver.Fail("vkDeviceWaitIdle", 1, result))
		if err = d.Close(); result == shim.ErrorDeviceLost {
			require.NoError(t, err, "a lost device is closed like any other")
		} else {
			require.True(t, carries(err, "vkDeviceWaitIdle", result), "%v", err)
		}
		require.NoError(t, driver.Close())
	}
}

// extent is how much of the sweep runs.
type extent int

const (
	ends extent = iota // the first and the last call of each function, with one result, in turn
	some               // those and every second one between, with one result, in turn
	all
)

func (e extent) has(call, count, index, of int) bool {
	switch e {
	case ends:
		return (call == 1 || call == count) && index == call%of
	case some:
		return (call == 1 || call == count || call%2 == 0) && index == call/2%of
	}
	return true
}

// The whole sweep takes minutes: see testenv.Long.
func TestEveryCallFailsOnce(t *testing.T) {
	env := testenv.Require(t)
	// A device that stays open keeps the driver loaded: SwiftShader leaks one of the
	// process's 1024 thread-specific keys each time it is loaded, and ends with the last.
	require.NoError(t, shim.Install())
	kept, err := vk.Open(vk.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, kept.Close()) }()
	validation := vk.ValidationOff
	if env.Oracle {
		validation = vk.ValidationSync
	}
	settings := map[setting]extent{{shim.Plain, vk.ValidationOff}: ends}
	switch {
	case env.Profile != "":
		settings = map[setting]extent{{env.Profile, vk.ValidationOff}: ends}
	case testing.Short():
	case testenv.Long():
		for _, p := range shim.Profiles() {
			settings[setting{p.Name, vk.ValidationOff}] = all
		}
		settings[setting{shim.Plain, validation}] = all
	default:
		settings[setting{shim.Plain, validation}] = ends
		settings[setting{shim.NonCoherent, vk.ValidationOff}] = some // which makes the most of them
		if env.Driver == testenv.SwiftShader {
			settings[setting{shim.NonCoherent, vk.ValidationOff}] = ends // it compiles shaders slowly
		}
	}
	for s, extent := range settings {
		t.Run(fmt.Sprintf("%s/validation=%d", s.profile, s.validation), func(t *testing.T) {
			runs := 0
			for _, c := range clean(t, s) {
				if c.Function == "vkDeviceWaitIdle" {
					continue // once, when the device is closed
				}
				list := results(c.Function)
				for k := 1; k <= c.Count; k++ {
					for i, result := range list {
						if extent.has(k, c.Count, i, len(list)) {
							runs++
							t.Run(fmt.Sprintf("%s/%d/%d", c.Function, k, result), func(t *testing.T) { failing(t, s, c.Function, k, result) })
						}
					}
				}
			}
			t.Logf("%d failures", runs)
			require.Greater(t, runs, 40)
		})
	}
}

// An error that no call caused is none of the driver's: the search must be able to fail.
func TestCarriesTellsErrorsApart(t *testing.T) {
	e := &vk.Error{Call: "vkQueueSubmit", Result: -4}
	require.True(t, carries(fmt.Errorf("a: %w", errors.Join(errors.New("b"), e)), "vkQueueSubmit", -4))
	require.False(t, carries(e, "vkQueueSubmit", -1))
	require.False(t, carries(e, "vkCreateBuffer", -4))
	require.False(t, carries(errors.New("vkQueueSubmit"), "vkQueueSubmit", -4))
	require.False(t, carries(nil, "vkQueueSubmit", -4))
}
