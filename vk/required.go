//go:build required

package vk

// The binding's C headers lie in folders that nothing else imports, and go mod vendor
// copies the folders of imported packages only. It looks at files of every build tag; the
// compiler never sees this one.
import (
	_ "github.com/vulkan-go/vulkan/android"
	_ "github.com/vulkan-go/vulkan/moltenVK"
	_ "github.com/vulkan-go/vulkan/vulkan"
	_ "github.com/vulkan-go/vulkan/windows"
)
