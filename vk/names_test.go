package vk_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/shim"
	"vkcompute/internal/vktest"
	"vkcompute/vk"
)

// Names reach the driver, and so whatever debugger stands before it, without validation;
// messages are collected for nobody then. Where the extension is missing objects have none,
// unless the validation layer brings it.
func TestNamesNeedNoValidation(t *testing.T) {
	checked := vktest.Options(t)
	for _, c := range []struct {
		profile    string
		validation vk.Validation
		want       int
	}{
		{shim.Plain, vk.ValidationOff, 1},
		{shim.Bare, vk.ValidationOff, 0},
		{shim.Plain, checked.Validation, 1},
		{shim.Bare, checked.Validation, min(int(checked.Validation), 1)},
	} {
		driver := vktest.NewDriver(t, c.profile)
		d, err := driver.Open(vk.Options{Validation: c.validation})
		require.NoError(t, err)
		for _, name := range []string{"", "named"} {
			b, err := d.NewBuffer(vk.BufferSpec{Size: 64, Name: name})
			require.NoError(t, err)
			b.Close()
		}
		named, collected := 0, 0
		for _, call := range driver.Calls() {
			switch call.Function {
			case "vkSetDebugUtilsObjectNameEXT":
				named = call.Count
			case "vkCreateDebugUtilsMessengerEXT":
				collected = call.Count
			}
		}
		require.Equal(t, c.want, named, "%+v", c)
		require.Equal(t, min(int(c.validation), 1), collected, "%+v", c)
		require.Empty(t, d.Messages())
		require.NoError(t, d.Close())
	}
}
