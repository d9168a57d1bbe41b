package abi_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// vulkan_abi.h is compared with the system's <vulkan/vulkan.h>: the test reads it, turns
// every constant, structure, field and function into static assertions, and compiles
// those. Nothing can be forgotten that way, and what the parser does not understand
// fails the test.

const varNoHeaders = "VKCOMPUTE_TEST_NO_HEADERS"

// source reads a file of the package and removes comments. Reading it here also lets
// `go test` notice when it changes.
func source(t testing.TB, name string) string {
	raw, err := os.ReadFile(name)
	require.NoError(t, err)
	return regexp.MustCompile(`//[^\n]*`).ReplaceAllString(string(raw), "")
}

// cc is the C compiler, which CC may name together with flags.
func cc(args ...string) *exec.Cmd {
	words := strings.Fields(os.Getenv("CC"))
	if len(words) == 0 {
		words = []string{"cc"}
	}
	return exec.Command(words[0], append(words[1:], args...)...)
}

// headers skips where there are none on purpose, and returns what the compiler sees of them.
func headers(t *testing.T) string {
	if on := os.Getenv(varNoHeaders); on != "" && on != "0" {
		t.Skipf("%s is set", varNoHeaders)
	}
	cmd := cc("-E", "-P", "-x", "c", "-")
	cmd.Stdin = strings.NewReader("#include <vulkan/vulkan.h>\n")
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	require.NoError(t, err, "want <vulkan/vulkan.h> (Debian and Ubuntu: libvulkan-dev), or %s=1 to go without this test: %s", varNoHeaders, &said)
	return string(out)
}

// The names of these end in EXT or KHR in the system's header, or are otherwise not our
// own with another prefix.
var (
	structNames = map[string]string{
		"VcChain":                                "VkBaseInStructure",
		"VcDebugUtilsObjectNameInfo":             "VkDebugUtilsObjectNameInfoEXT",
		"VcDebugUtilsMessengerCallbackData":      "VkDebugUtilsMessengerCallbackDataEXT",
		"VcDebugUtilsMessengerCreateInfo":        "VkDebugUtilsMessengerCreateInfoEXT",
		"VcValidationFeatures":                   "VkValidationFeaturesEXT",
		"VcLayerSetting":                         "VkLayerSettingEXT",
		"VcLayerSettingsCreateInfo":              "VkLayerSettingsCreateInfoEXT",
		"VcPhysicalDeviceRobustness2Features":    "VkPhysicalDeviceRobustness2FeaturesEXT",
		"VcPipelineCreationFeedback":             "VkPipelineCreationFeedbackEXT",
		"VcPipelineCreationFeedbackCreateInfo":   "VkPipelineCreationFeedbackCreateInfoEXT",
		"VcPhysicalDeviceMemoryBudgetProperties": "VkPhysicalDeviceMemoryBudgetPropertiesEXT",
	}
	constantNames = map[string]string{
		"VC_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT": "VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR",
		"VC_DEBUG_SEVERITY_INFO":                       "VK_DEBUG_UTILS_MESSAGE_SEVERITY_INFO_BIT_EXT",
		"VC_DEBUG_SEVERITY_WARNING":                    "VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT",
		"VC_DEBUG_SEVERITY_ERROR":                      "VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT",
		"VC_DEBUG_TYPE_GENERAL":                        "VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT",
		"VC_DEBUG_TYPE_VALIDATION":                     "VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT",
		"VC_DEBUG_TYPE_PERFORMANCE":                    "VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT",
	}
	// Indices of features, which the system's header has as fields.
	features = map[string]struct{ of, field string }{
		"VC_FEATURE_ROBUST_BUFFER_ACCESS":    {"VkPhysicalDeviceFeatures2", "features.robustBufferAccess"},
		"VC_FEATURE_FLOAT64":                 {"VkPhysicalDeviceFeatures2", "features.shaderFloat64"},
		"VC_FEATURE_INT64":                   {"VkPhysicalDeviceFeatures2", "features.shaderInt64"},
		"VC_FEATURE_INT16":                   {"VkPhysicalDeviceFeatures2", "features.shaderInt16"},
		"VC_FEATURE11_STORAGE_16BIT":         {"VkPhysicalDeviceVulkan11Features", "storageBuffer16BitAccess"},
		"VC_FEATURE12_STORAGE_8BIT":          {"VkPhysicalDeviceVulkan12Features", "storageBuffer8BitAccess"},
		"VC_FEATURE12_FLOAT16":               {"VkPhysicalDeviceVulkan12Features", "shaderFloat16"},
		"VC_FEATURE12_INT8":                  {"VkPhysicalDeviceVulkan12Features", "shaderInt8"},
		"VC_FEATURE12_HOST_QUERY_RESET":      {"VkPhysicalDeviceVulkan12Features", "hostQueryReset"},
		"VC_FEATURE12_TIMELINE_SEMAPHORE":    {"VkPhysicalDeviceVulkan12Features", "timelineSemaphore"},
		"VC_FEATURE12_BUFFER_DEVICE_ADDRESS": {"VkPhysicalDeviceVulkan12Features", "bufferDeviceAddress"},
	}
	featureCounts = map[string]string{
		"VC_FEATURE_COUNT":   "sizeof(VkPhysicalDeviceFeatures) / sizeof(VkBool32)",
		"VC_FEATURE11_COUNT": "(offsetof(VkPhysicalDeviceVulkan11Features, shaderDrawParameters) - offsetof(VkPhysicalDeviceVulkan11Features, storageBuffer16BitAccess)) / sizeof(VkBool32) + 1",
		"VC_FEATURE12_COUNT": "(offsetof(VkPhysicalDeviceVulkan12Features, subgroupBroadcastDynamicId) - offsetof(VkPhysicalDeviceVulkan12Features, samplerMirrorClampToEdge)) / sizeof(VkBool32) + 1",
	}
	// Newer than the headers of some distributions, which then cannot speak for them; a
	// test of package vk sees that the layer takes these structures.
	newer = regexp.MustCompile(`LayerSetting|LAYER_SETTING`)
)

// assertions makes the C file for a version of vulkan_abi.h.
func assertions(t *testing.T, header string) string {
	var b strings.Builder
	count := 0
	assert := func(subject, condition, message string) {
		count++
		guard := newer.MatchString(subject)
		if guard {
			b.WriteString("#ifdef VK_EXT_layer_settings\n")
		}
		fmt.Fprintf(&b, "_Static_assert(%s, %q);\n", condition, message)
		if guard {
			b.WriteString("#endif\n")
		}
	}

	constants := 0
	for _, m := range regexp.MustCompile(`\b(VC_[A-Z0-9_]+) = `).FindAllStringSubmatch(header, -1) {
		constants++
		name := m[1]
		if f, ok := features[name]; ok {
			first := map[string]string{
				"VkPhysicalDeviceFeatures2": "features", "VkPhysicalDeviceVulkan11Features": "storageBuffer16BitAccess",
				"VkPhysicalDeviceVulkan12Features": "samplerMirrorClampToEdge",
			}[f.of]
			assert(name, fmt.Sprintf("%s * sizeof(VkBool32) == offsetof(%s, %s) - offsetof(%s, %s)", name, f.of, f.field, f.of, first), name)
			continue
		}
		want, ok := featureCounts[name]
		if !ok {
			if want, ok = constantNames[name]; !ok {
				want = "VK_" + strings.TrimPrefix(name, "VC_")
			}
		}
		assert(name, fmt.Sprintf("%s == %s", name, want), name)
	}
	require.Equal(t, strings.Count(header, " = "), constants, "a constant the test does not understand")

	structs := 0
	for _, m := range regexp.MustCompile(`(?s)typedef struct \{(.*?)\}\s*(Vc\w+);`).FindAllStringSubmatch(header, -1) {
		structs++
		ours := m[2]
		theirs, ok := structNames[ours]
		if !ok {
			theirs = "Vk" + strings.TrimPrefix(ours, "Vc")
		}
		assert(ours, fmt.Sprintf("sizeof(%s) == sizeof(%s)", ours, theirs), "size of "+ours)
		assert(ours, fmt.Sprintf("_Alignof(%s) == _Alignof(%s)", ours, theirs), "alignment of "+ours)
		fields := 0
		for _, f := range regexp.MustCompile(`(\w+)\s*(\[\w+\])?\s*[,;]`).FindAllStringSubmatch(m[1], -1) {
			fields++
			name, theirName := f[1], f[1]
			if strings.HasPrefix(name, "_unused") {
				continue
			}
			if f[2] == "[VC_FEATURE11_COUNT]" {
				theirName = "storageBuffer16BitAccess"
			} else if f[2] == "[VC_FEATURE12_COUNT]" {
				theirName = "samplerMirrorClampToEdge"
			}
			where := ours + "." + name
			assert(ours, fmt.Sprintf("offsetof(%s, %s) == offsetof(%s, %s)", ours, name, theirs, theirName), "offset of "+where)
			if name == theirName {
				assert(ours, fmt.Sprintf("sizeof(((%s *)0)->%s) == sizeof(((%s *)0)->%s)", ours, name, theirs, name), "size of "+where)
			}
		}
		require.Equal(t, strings.Count(m[1], ";")+strings.Count(m[1], ","), fields, "a field of %s the test does not understand", ours)
	}
	require.Equal(t, strings.Count(header, "typedef struct"), structs, "a structure the test does not understand")
	require.Greater(t, count, 400)

	return `#include <vulkan/vulkan.h>
#include "vulkan_abi.h"
_Static_assert(sizeof(VcObject) == sizeof(VkDevice), "VcObject");
_Static_assert(sizeof(VcHandle) == sizeof(VkBuffer), "VcHandle");
_Static_assert(sizeof(VcSize) == sizeof(VkDeviceSize), "VcSize");
_Static_assert(sizeof(VcBool) == sizeof(VkBool32), "VcBool");
_Static_assert(sizeof(VcResult) == sizeof(VkResult), "VcResult");
_Static_assert((VcResult)-1 < 0, "VcResult is signed");
` + b.String()
}

// compile checks a C file against a header; the result is what the compiler said.
func compile(t *testing.T, code, header string) (string, error) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "vulkan_abi.h"), []byte(header), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "check.c"), []byte(code), 0o644))
	out, err := cc("-std=gnu11", "-Werror", "-c", "-I", dir, "-o", os.DevNull, filepath.Join(dir, "check.c")).CombinedOutput()
	return string(out), err
}

func TestLayoutIsThatOfTheSystemsHeader(t *testing.T) {
	headers(t)
	header := source(t, "vulkan_abi.h")
	code := assertions(t, header)
	out, err := compile(t, code, header)
	require.NoError(t, err, out)
}

// Each kind of mistake must be found, or the test above proves nothing.
func TestLayoutMistakesAreFound(t *testing.T) {
	headers(t)
	header := source(t, "vulkan_abi.h")
	for _, c := range []struct{ name, old, new, want string }{
		{"a constant", "VC_STRUCTURE_TYPE_SUBMIT_INFO = 4", "VC_STRUCTURE_TYPE_SUBMIT_INFO = 5", "VC_STRUCTURE_TYPE_SUBMIT_INFO"},
		{"a number of our own", "VC_DEBUG_TYPE_VALIDATION = 2", "VC_DEBUG_TYPE_VALIDATION = 3", "VC_DEBUG_TYPE_VALIDATION"},
		{"a feature's index", "VC_FEATURE12_HOST_QUERY_RESET = 36", "VC_FEATURE12_HOST_QUERY_RESET = 35", "VC_FEATURE12_HOST_QUERY_RESET"},
		{"unused fields miscounted", "_unusedGraphics[22]", "_unusedGraphics[21]", "VcPhysicalDeviceLimits.maxComputeSharedMemorySize"},
		{"fields in the wrong order", "uint32_t constantID, offset;", "uint32_t offset, constantID;", "VcSpecializationMapEntry.constantID"},
		{"a field too narrow", "VcSize srcOffset, dstOffset, size;", "uint32_t srcOffset, dstOffset; VcSize size;", "VcBufferCopy"},
		{"a structure too long", "uint32_t propertyFlags, heapIndex;", "uint32_t propertyFlags, heapIndex, more;", "VcMemoryType"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, 1, strings.Count(header, c.old), "the mistake applies nowhere, or more than once")
			wrong := strings.Replace(header, c.old, c.new, 1)
			// The assertions are those of the right header, as far as both have the names.
			out, err := compile(t, assertions(t, header), wrong)
			require.Error(t, err)
			require.Contains(t, out, c.want)
		})
	}
}

// Types of parameters, by how they travel: by value of some width, or as a pointer.
func parameters(list string) []string {
	var out []string
	depth := 0
	start := 0
	for i, c := range list + "," {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				p := strings.TrimSpace((list + ",")[start:i])
				start = i + 1
				if p != "" && p != "void" {
					out = append(out, p)
				}
			}
		}
	}
	return out
}

// Functions are called through pointers of our own types, so no compiler compares them.
func TestFunctionsAreThoseOfTheSystemsHeader(t *testing.T) {
	theirs := map[string][2]string{}
	for _, m := range regexp.MustCompile(`(?s)(\w+)\s+vk(\w+)\((.*?)\);`).FindAllStringSubmatch(headers(t), -1) {
		theirs[m[2]] = [2]string{m[1], m[3]}
	}
	require.Greater(t, len(theirs), 200)

	type function struct{ name, result, parameters string }
	var ours []function
	table := source(t, "abi.h")
	for _, m := range regexp.MustCompile(`(?s)\bF\((\w+), (\w+),\s*(?:\\\s*)?\((.*?)\)\)`).FindAllStringSubmatch(table, -1) {
		ours = append(ours, function{m[1], m[2], strings.ReplaceAll(m[3], "\\", " ")})
	}
	start := strings.Index(table, "#define VC_DEVICE_FUNCTIONS")
	require.Equal(t, strings.Count(table[start:strings.Index(table, "vc_functions;")], " F(")-1, len(ours), "a function the test does not understand")
	declared := regexp.MustCompile(`(\w+)\(VC_CALL \*([A-Z]\w+)\)\(([^)]*)\)`)
	for _, file := range []string{table, source(t, "instance.c")} {
		for _, m := range declared.FindAllStringSubmatch(file, -1) {
			ours = append(ours, function{m[2], m[1], m[3]})
		}
	}
	require.Greater(t, len(ours), 40)

	vk := regexp.MustCompile(`^(const\s+)?(struct\s+)?(\w+)(\s*const)?\s*(\*.*|\[.*)?`)
	var b strings.Builder
	b.WriteString("#include <vulkan/vulkan.h>\n#include \"vulkan_abi.h\"\n")
	for _, f := range ours {
		name := f.name
		if name == "SetDebugUtilsObjectName" {
			name += "EXT"
		}
		want, ok := theirs[name]
		require.True(t, ok, "vk%s is not in the system's header", name)
		mine, their := parameters(f.parameters), parameters(want[1])
		require.Equal(t, len(their), len(mine), "vk%s(%s): we pass (%s)", name, want[1], f.parameters)
		require.Equal(t, want[0] == "void", f.result == "void", name)
		if f.result != "void" {
			fmt.Fprintf(&b, "_Static_assert(sizeof(%s) == sizeof(%s), \"result of vk%s\");\n", f.result, want[0], name)
		}
		for i := range mine {
			pointer := strings.ContainsAny(mine[i], "*")
			base := vk.FindStringSubmatch(their[i])
			// The last word of theirs is the parameter's name.
			typ := strings.TrimSpace(their[i][:strings.LastIndexAny(their[i], " *")+1])
			require.Equal(t, strings.ContainsAny(their[i], "*["), pointer, "vk%s, parameter %q: we pass %q", name, their[i], mine[i])
			if !pointer {
				fmt.Fprintf(&b, "_Static_assert(sizeof(%s) == sizeof(%s), \"vk%s, parameter %d\");\n", mine[i], typ, name, i)
				continue
			}
			// Pointers to a structure of ours are to that structure there.
			if m := regexp.MustCompile(`\bVc\w+`).FindString(mine[i]); m != "" && m != "VcHandle" && m != "VcObject" {
				same, ok := structNames[m]
				if !ok {
					same = "Vk" + strings.TrimPrefix(m, "Vc")
				}
				require.Equal(t, same, base[3], "vk%s, parameter %d", name, i)
			}
		}
	}
	out, err := compile(t, b.String(), source(t, "vulkan_abi.h"))
	require.NoError(t, err, out)
}

// The library must build where no Vulkan header is installed.
func TestNoVulkanHeaderIsIncluded(t *testing.T) {
	root := "../../.."
	found := 0
	include := regexp.MustCompile(`(?m)^\s*(?://)?\s*#\s*include\s*[<"]([^>"]+)[>"]`)
	for _, dir := range []string{"vk", "pool", "metacache", "shaders", "cmdbuf"} {
		if _, err := os.Stat(filepath.Join(root, dir)); err != nil {
			continue
		}
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() || !regexp.MustCompile(`\.(c|h|go)$`).MatchString(path) || strings.HasSuffix(path, "_test.go") {
				return err
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range include.FindAllStringSubmatch(string(raw), -1) {
				found++
				if strings.Contains(strings.ToLower(m[1]), "vulkan") && m[1] != "vulkan_abi.h" {
					t.Errorf("%s includes <%s>", path, m[1])
				}
			}
			return nil
		})
		require.NoError(t, err)
	}
	require.Greater(t, found, 8, "the test sees the includes there are")
}

// And not only by name: each C file compiles with nothing but the C library in sight.
func TestSourcesCompileAlone(t *testing.T) {
	files, err := filepath.Glob("*.c")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, h := range []string{"abi.h", "vulkan_abi.h"} {
		source(t, h)
	}
	for _, f := range files {
		source(t, f)
		// -H lists what was included.
		out, err := cc("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-H", "-c", "-o", os.DevNull, f).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.NotRegexp(t, regexp.MustCompile(`/vulkan/vulkan`), string(out), f)
	}
}
