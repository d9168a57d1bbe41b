package vk

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	vulkan "github.com/vulkan-go/vulkan"

	"vkcompute/vk/internal/abi"
)

// Validation says how much of the Khronos validation layer runs beneath the library.
type Validation int

const (
	// ValidationOff is the default.
	ValidationOff Validation = iota
	// ValidationCore checks the use of the interface.
	ValidationCore
	// ValidationSync checks synchronization too: missing barriers between storage
	// buffers, with a layer of 2025 or later; older layers see some of them.
	ValidationSync
)

const (
	validationLayer    = "VK_LAYER_KHRONOS_validation"
	debugUtils         = "VK_EXT_debug_utils"
	layerSettings      = "VK_EXT_layer_settings"
	validationFeatures = "VK_EXT_validation_features"
	portability        = "VK_KHR_portability_enumeration"
	portabilitySubset  = "VK_KHR_portability_subset"
	memoryBudget       = "VK_EXT_memory_budget"
	creationFeedback   = "VK_EXT_pipeline_creation_feedback"
	robustness2        = "VK_EXT_robustness2"
	nonSemanticInfo    = "VK_KHR_shader_non_semantic_info"
)

// baseline is the oldest Vulkan version the library runs on, and printing the oldest in
// which every driver takes shaders that print.
var (
	baseline = vulkan.MakeVersion(1, 2, 0)
	printing = vulkan.MakeVersion(1, 3, 0)
)

// instance is a VkInstance and the messages that arrived from beneath it.
type instance struct {
	c      *abi.Instance
	logger *slog.Logger
	prints ShaderPrints

	mu       sync.Mutex
	messages []Message
	printed  []Print
}

func newInstance(v Validation, prints ShaderPrints, logger *slog.Logger) (*instance, error) {
	loader, err := openLoader()
	if err != nil {
		return nil, err
	}
	version, r := loader.Version()
	if r < 0 {
		return nil, &Error{Call: "vkEnumerateInstanceVersion", Result: r}
	}
	// A loader of Vulkan 1.0 refuses any other version; devices are listed all the same.
	spec := abi.InstanceSpec{APIVersion: version}
	if version >= vulkan.MakeVersion(1, 1, 0) {
		spec.APIVersion = baseline
		if prints != PrintsIgnored {
			spec.APIVersion = max(baseline, min(version, printing))
		}
	}
	extensions, r := loader.Extensions("")
	if r < 0 {
		// The loader asks the drivers, and has this answer too for a manifest that is not JSON.
		return nil, noDriver(&Error{Call: "vkEnumerateInstanceExtensionProperties", Result: r, Detail: "is a driver's manifest damaged?"})
	}
	if slices.Contains(extensions, portability) {
		spec.Portability = true
		spec.Extensions = append(spec.Extensions, portability)
	}
	// Debuggers that capture what a program does, such as RenderDoc, show names only where the
	// program enabled the extension by itself. It does not depend on validation.
	if slices.Contains(extensions, debugUtils) {
		spec.Names = true
		spec.Extensions = append(spec.Extensions, debugUtils)
	}
	if v != ValidationOff || prints != PrintsIgnored {
		layers, r := loader.Layers()
		if r < 0 {
			return nil, &Error{Call: "vkEnumerateInstanceLayerProperties", Result: r}
		}
		if !slices.Contains(layers, validationLayer) {
			return nil, fmt.Errorf("vk: %w: want %s, found %q, for %s; install it (Debian and Ubuntu: vulkan-validationlayers) or point VK_LAYER_PATH at its manifest", ErrNoValidation, validationLayer, layers, wanted(v))
		}
		of, r := loader.Extensions(validationLayer)
		if r < 0 {
			return nil, &Error{Call: "vkEnumerateInstanceExtensionProperties", Result: r, Detail: validationLayer}
		}
		spec.Layers = []string{validationLayer}
		spec.LayerSettings = slices.Contains(of, layerSettings)
		spec.ValidationFeatures = slices.Contains(of, validationFeatures)
		switch v {
		case ValidationCore:
			spec.Validation = abi.ValidateCore
		case ValidationSync:
			spec.Validation = abi.ValidateSync
		}
		spec.Prints = prints != PrintsIgnored
		if spec.Prints && !spec.LayerSettings && !spec.ValidationFeatures {
			return nil, fmt.Errorf("vk: %w: the layer %s can be told neither by %s nor by %s to collect what shaders print; install a later one",
				ErrUnsupported, validationLayer, layerSettings, validationFeatures)
		}
		spec.Messages = spec.Names || slices.Contains(of, debugUtils)
		if !spec.Messages {
			return nil, fmt.Errorf("vk: %w: %s has no %s, so its messages would be lost", ErrNoValidation, validationLayer, debugUtils)
		}
		if !spec.Names {
			spec.Names = true
			spec.Extensions = append(spec.Extensions, debugUtils)
		}
		if spec.ValidationFeatures && !spec.LayerSettings {
			spec.Extensions = append(spec.Extensions, validationFeatures)
		}
	}
	c, r := loader.NewInstance(spec)
	if r < 0 {
		e := &Error{Call: "vkCreateInstance", Result: r}
		if vulkan.Result(r) == vulkan.ErrorIncompatibleDriver {
			return nil, noDriver(e)
		}
		return nil, e
	}
	in := &instance{c: c, logger: logger, prints: prints}
	if err := fillTable(handle[vulkan.Instance](c.Handle())); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

func noDriver(err error) error {
	return fmt.Errorf("vk: %w: no Vulkan driver is installed or VK_DRIVER_FILES names none that works: %w; install one (Debian and Ubuntu: mesa-vulkan-drivers, which also holds one for the CPU)", ErrNoDevice, err)
}

func (in *instance) close() { in.c.Free() }

// Severity of a message.
type Severity int

const (
	SeverityInfo Severity = iota
	SeverityWarning
	SeverityError
)

func (s Severity) String() string {
	if s < SeverityInfo || s > SeverityError {
		return fmt.Sprintf("Severity(%d)", int(s))
	}
	return [...]string{"info", "warning", "error"}[s]
}

// Message is what the loader, a layer or a driver had to say.
type Message struct {
	Severity   Severity
	Validation bool   // from the validation layer's checks
	ID         string // such as VUID-vkCmdDispatch-None-08600 or SYNC-HAZARD-WRITE-AFTER-WRITE
	Text       string
}

func (m Message) String() string { return m.Severity.String() + ": " + m.ID + ": " + m.Text }

// keptMessages bounds what is held for a caller who never asks.
const keptMessages = 256

// drain moves messages from the ring on the C side to Go. It costs one load when there is none.
func (in *instance) drain() {
	if !in.c.MessagesPending() {
		return
	}
	raw, dropped := in.c.TakeMessages()
	raw = in.takePrints(raw)
	list := make([]Message, len(raw))
	for i, r := range raw {
		m := Message{ID: r.Name, Text: r.Text, Validation: r.Types&abi.TypeValidation != 0}
		switch {
		case r.Severity >= abi.SeverityError:
			m.Severity = SeverityError
		case r.Severity >= abi.SeverityWarning:
			m.Severity = SeverityWarning
		}
		list[i] = m
	}
	in.mu.Lock()
	kept := min(len(list), keptMessages-len(in.messages))
	in.messages = append(in.messages, list[:kept]...)
	in.mu.Unlock()
	if in.logger == nil {
		return
	}
	// Without the lock: what handles the log may ask for messages itself.
	for _, m := range list {
		level := slog.LevelWarn
		if m.Severity == SeverityError {
			level = slog.LevelError
		}
		in.logger.Log(context.Background(), level, "vulkan", "id", m.ID, "message", m.Text)
	}
	if dropped += len(list) - kept; dropped > 0 {
		in.logger.Warn("vulkan: messages dropped", "count", dropped)
	}
}

// take returns the messages collected so far and forgets them.
func (in *instance) take() []Message {
	in.drain()
	in.mu.Lock()
	defer in.mu.Unlock()
	list := in.messages
	in.messages = nil
	return list
}
