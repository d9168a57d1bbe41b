//go:build !unix

package testenv

import "fmt"

// askLayer has no dlopen to ask with: on these systems the layer of the
// Vulkan SDK comes with a manifest, and the tests run with VKCOMPUTE_TEST_NO_ORACLE=1
// until somebody needs more.
func askLayer(library string) (layerFacts, error) {
	return layerFacts{}, fmt.Errorf("cannot load %s to describe it on this system", library)
}
