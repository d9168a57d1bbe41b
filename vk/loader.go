package vk

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

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
	if err := adopt(l); err != nil {
		return nil, err
	}
	return l, nil
}

// adopt makes a loader the process's. The caller holds the lock.
func adopt(l *abi.Loader) error {
	vulkan.SetGetInstanceProcAddr(l.ProcAddr())
	if err := vulkan.Init(); err != nil {
		return fmt.Errorf("vk: %w: %s lacks the functions of Vulkan 1.0: %w", ErrNoLoader, l.Name, err)
	}
	process.loader = l
	return nil
}

// SetProcAddr makes the process use this vkGetInstanceProcAddr, a C function pointer,
// instead of searching for a loader, as windowing libraries and drivers linked into the
// program need. It comes before everything else: once a loader is open it fails with
// ErrLoaderOpen.
func SetProcAddr(vkGetInstanceProcAddr unsafe.Pointer) error {
	if vkGetInstanceProcAddr == nil {
		return errors.New("vk: setting the loader: want a vkGetInstanceProcAddr, found nil")
	}
	process.Lock()
	defer process.Unlock()
	if process.loader != nil {
		return fmt.Errorf("vk: setting the loader: %w (%s): set it before the first device is opened or listed", ErrLoaderOpen, process.loader.Name)
	}
	return adopt(abi.GivenLoader(vkGetInstanceProcAddr))
}

// FindProcAddr searches for a loader as Open does and returns its vkGetInstanceProcAddr,
// for a layer that wants to stand before it and hands its own to SetProcAddr. The
// library stays loaded; the process does not use it yet.
func FindProcAddr() (unsafe.Pointer, error) {
	l, err := findLoader(libraries())
	if err != nil {
		return nil, err
	}
	return l.ProcAddr(), nil
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
