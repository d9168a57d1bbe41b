package shim_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/shim"
	"vkcompute/internal/vktest"
	"vkcompute/vk"
)

func TestProfilesAreValid(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range shim.Profiles() {
		require.NoError(t, p.Validate())
		require.NotEmpty(t, p.Doc)
		require.False(t, seen[p.Name])
		seen[p.Name] = true
	}
	_, err := shim.ProfileNamed("huge")
	require.ErrorIs(t, err, shim.ErrUnknown)
	require.ErrorContains(t, err, "rebar-256")
	bad := shim.Profile{Memory: []shim.MemoryType{{Flags: shim.DeviceLocal, Heap: 1}}, Heaps: []shim.Heap{{Size: 1}}}
	require.Error(t, bad.Validate())
}

// What a device says of itself is never looser than the profile.
func TestDevicesPresentTheirProfile(t *testing.T) {
	for _, p := range shim.Profiles() {
		t.Run(p.Name, func(t *testing.T) {
			d, driver := vktest.OpenProfile(t, p.Name)
			require.Equal(t, p.Name, driver.Profile().Name)
			i := d.Info()
			if p.Name != shim.Plain {
				require.Contains(t, i.Name, " as "+p.Name)
			}
			if p.Type != shim.SameType {
				require.EqualValues(t, p.Type, i.Type)
			}
			atMost := func(most uint32, have uint64) {
				if most != 0 {
					require.LessOrEqual(t, have, uint64(most))
				}
			}
			l := i.Limits
			atMost(p.MaxStorageBufferRange, l.MaxStorageBufferRange)
			atMost(p.MaxPushConstants, l.MaxPushConstantsSize)
			atMost(p.MaxAllocations, l.MaxMemoryAllocationCount)
			atMost(p.MaxStorageBuffersPerStage, l.MaxStorageBuffers)
			atMost(p.MaxStorageBuffersPerSet, l.MaxStorageBuffers)
			atMost(p.MaxDynamicStorageBuffers, l.MaxDynamicStorageBuffers)
			atMost(p.MaxSharedMemory, l.MaxSharedMemory)
			atMost(p.MaxInvocations, l.MaxWorkgroupInvocations)
			for axis := range 3 {
				atMost(p.MaxGroupCount[axis], uint64(l.MaxWorkgroupCount[axis]))
				atMost(p.MaxGroupSize[axis], uint64(l.MaxWorkgroupSize[axis]))
			}
			atMost(uint32(p.MaxAllocationSize), l.MaxMemoryAllocationSize)
			require.GreaterOrEqual(t, l.MinStorageBufferAlignment, p.MinStorageBufferAlignment)
			require.GreaterOrEqual(t, l.NonCoherentAtomSize, p.NonCoherentAtomSize)
			if p.API != 0 {
				require.LessOrEqual(t, uint32(i.API), p.API)
			}
			if p.Memory != nil {
				require.Len(t, i.MemoryTypes, len(p.Memory))
				require.Len(t, i.Heaps, len(p.Heaps))
				for n, m := range p.Memory {
					require.EqualValues(t, m.Flags, i.MemoryTypes[n].Flags)
					require.EqualValues(t, m.Heap, i.MemoryTypes[n].Heap)
				}
				for n, h := range p.Heaps {
					require.LessOrEqual(t, i.Heaps[n].Size, h.Size)
					require.Equal(t, h.DeviceLocal, i.Heaps[n].DeviceLocal)
				}
				require.Equal(t, p.Heaps[0].Budget != 0, i.Features.MemoryBudget)
			}
			if p.Hide&shim.HideFeatures != 0 {
				require.Equal(t, vk.Features{RobustAccess: true, Subgroups: vk.SubgroupBasic}, i.Features, "what every device has")
			}
			if p.Hide&shim.HideTimestamps != 0 {
				require.Zero(t, l.TimestampBits)
			}
		})
	}
}

// The shim stands before every function of the library that can fail.
func TestNoFunctionIsMissed(t *testing.T) {
	list := shim.LibraryFunctions()
	require.Contains(t, list, "vkQueueSubmit")
	require.NotContains(t, list, "vkCmdDispatch")
	require.NotContains(t, list, "vkGetBufferDeviceAddress")
	for _, f := range list {
		require.True(t, shim.Wraps(f), f)
	}
	require.False(t, shim.Wraps("vkCmdDraw"))
}

// scripts/test names the profiles it runs the suite on.
func TestTheScriptKnowsEveryProfile(t *testing.T) {
	script, err := os.ReadFile("../../scripts/test")
	require.NoError(t, err)
	var names []string
	for _, p := range shim.Profiles() {
		if p.Name != shim.Plain {
			names = append(names, p.Name)
		}
	}
	require.Contains(t, string(script), "profiles='"+strings.Join(names, " ")+"'")
}
