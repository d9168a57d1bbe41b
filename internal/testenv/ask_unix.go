//go:build unix

package testenv

/*
#cgo linux LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// The two structures of the Vulkan headers that the question needs, so that
// asking takes no headers.
typedef struct {
	char     name[256];
	uint32_t spec, implementation;
	char     description[256];
} layer_properties;

typedef struct {
	char     name[256];
	uint32_t version;
} extension_properties;

typedef int32_t (*layers_fn)(uint32_t *, layer_properties *);
typedef int32_t (*extensions_fn)(const char *, uint32_t *, extension_properties *);

enum { ask_ok, ask_open, ask_symbol, ask_layers, ask_extensions };

static int ask_layer(const char *file, const char *name, layer_properties *layer,
                     extension_properties *ext, uint32_t *n_ext, char *why, size_t n_why) {
	void *lib = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		const char *e = dlerror();
		strncpy(why, e ? e : "unknown", n_why - 1);
		return ask_open;
	}
	int rc = ask_ok;
	layers_fn layers = (layers_fn)dlsym(lib, "vkEnumerateInstanceLayerProperties");
	extensions_fn extensions = (extensions_fn)dlsym(lib, "vkEnumerateInstanceExtensionProperties");
	uint32_t one = 1;
	if (!layers || !extensions)
		rc = ask_symbol;
	else if (layers(&one, layer) < 0 || one != 1)
		rc = ask_layers;
	else if (extensions(name, n_ext, ext) != 0)
		rc = ask_extensions;
	dlclose(lib);
	return rc;
}
*/
import "C"

import (
	"fmt"
	"unsafe"
)

const maxExtensions = 32

// askLayer loads the library and asks it, because a manifest that promises
// another API version or lacks an extension makes the loader warn or refuse.
//
// That this file uses cgo is also what lets os.Setenv reach the C environment
// that the loader and the layer read.
func askLayer(library string) (layerFacts, error) {
	file, name := C.CString(library), C.CString(layerName)
	defer C.free(unsafe.Pointer(file))
	defer C.free(unsafe.Pointer(name))
	var (
		layer      C.layer_properties
		extensions [maxExtensions]C.extension_properties
		n          = C.uint32_t(maxExtensions)
		why        [512]C.char
	)
	switch C.ask_layer(file, name, &layer, &extensions[0], &n, &why[0], C.size_t(len(why))) {
	case C.ask_ok:
	case C.ask_open:
		return layerFacts{}, fmt.Errorf("loading %s: %s", library, C.GoString(&why[0]))
	case C.ask_symbol:
		return layerFacts{}, fmt.Errorf("%s exports no layer enumeration: not a layer", library)
	case C.ask_layers:
		return layerFacts{}, fmt.Errorf("%s does not describe exactly one layer", library)
	default:
		return layerFacts{}, fmt.Errorf("%s did not list at most %d instance extensions", library, maxExtensions)
	}
	if got := C.GoString(&layer.name[0]); got != layerName {
		return layerFacts{}, fmt.Errorf("%s is layer %s, wanted %s", library, got, layerName)
	}
	v := uint32(layer.spec)
	facts := layerFacts{
		API:            fmt.Sprintf("%d.%d.%d", v>>22&0x7f, v>>12&0x3ff, v&0xfff),
		Implementation: fmt.Sprint(uint32(layer.implementation)),
	}
	for i := range extensions[:n] {
		e := &extensions[i]
		facts.Extensions = append(facts.Extensions, manifestExtension{
			Name: C.GoString(&e.name[0]), Version: fmt.Sprint(uint32(e.version)),
		})
	}
	return facts, nil
}
