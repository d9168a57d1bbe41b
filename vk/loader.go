package vk

import (
	"fmt"
	"runtime"
	"sync"

	vulkan "github.com/vulkan-go/vulkan"

	"vkcompute/vk/internal/abi"
)

// libraries are the names under which the loader is looked for, in order. The plain
// libvulkan.so is a link that only development packages install.
func libraries() []string {
	switch runtime.GOOS {
	case "windows":
		return []string{"vulkan-1.dll"}
	case "darwin", "ios":
		return []string{"libvulkan.1.dylib", "libvulkan.dylib", "libMoltenVK.dylib", "/usr/local/lib/libvulkan.1.dylib", "/opt/homebrew/lib/libvulkan.1.dylib"}
	case "android":
		return []string{"libvulkan.so"}
	}
	return []string{"libvulkan.so.1", "libvulkan.so"}
}

// The binding keeps its function table in package variables, so there is one loader per
// process; the functions in that table dispatch on the handle they are given and serve
// every instance.
var process struct {
	sync.Mutex
	loader *abi.Loader
	table  bool // the binding's table has been filled from an instance
}

// openLoader opens the loader once; a failure is tried again by the next call.
func openLoader() (*abi.Loader, error) {
	process.Lock()
	defer process.Unlock()
	if process.loader != nil {
		return process.loader, nil
	}
	l, err := findLoader(libraries())
	if err != nil {
		return nil, err
	}
	vulkan.SetGetInstanceProcAddr(l.ProcAddr())
	if err := vulkan.Init(); err != nil {
		return nil, fmt.Errorf("vk: %w: %s lacks the functions of Vulkan 1.0: %w", ErrNoLoader, l.Name, err)
	}
	process.loader = l
	return l, nil
}

func findLoader(names []string) (*abi.Loader, error) {
	l, err := abi.OpenLoader(names)
	if err != nil {
		return nil, fmt.Errorf("vk: %w: tried %q: %w; install it (Debian and Ubuntu: libvulkan1, Fedora: vulkan-loader, Arch: vulkan-icd-loader, macOS: MoltenVK)", ErrNoLoader, names, err)
	}
	return l, nil
}

// fillTable completes the binding's table, which needs an instance, once.
func fillTable(instance vulkan.Instance) error {
	process.Lock()
	defer process.Unlock()
	if process.table {
		return nil
	}
	if err := vulkan.InitInstance(instance); err != nil {
		return fmt.Errorf("vk: loading the instance's functions: %w", err)
	}
	process.table = true
	return nil
}
