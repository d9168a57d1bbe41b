package testenv

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ErrNoLayer says that no validation layer able to see a missing barrier is
// installed.
var ErrNoLayer = errors.New("no usable validation layer")

const manifestName = "VkLayer_khronos_validation.json"

// manifest is the part of a layer manifest that the loader reads.
type manifest struct {
	FormatVersion string        `json:"file_format_version"`
	Layer         layerManifest `json:"layer"`
}

type layerManifest struct {
	Name           string              `json:"name"`
	Type           string              `json:"type"`
	Library        string              `json:"library_path"`
	API            string              `json:"api_version"`
	Implementation string              `json:"implementation_version"`
	Description    string              `json:"description"`
	Extensions     []manifestExtension `json:"instance_extensions"`
}

type manifestExtension struct {
	Name    string `json:"name"`
	Version string `json:"spec_version"`
}

// layerFacts is what a layer says about itself, as a manifest spells it.
type layerFacts struct {
	API            string
	Implementation string
	Extensions     []manifestExtension
}

// findLayer returns the file of the first layer library that knows the
// settings. Distribution packages are searched after Chromium's, whose layer
// is years newer than theirs.
func findLayer(root string, getenv func(string) string) (string, error) {
	var candidates []string
	if f := getenv(varLayer); f != "" {
		candidates = []string{f}
	} else {
		for _, dir := range filepath.SplitList(getenv(varLayerPath)) {
			candidates = append(candidates, manifestLibraries(filepath.Join(dir, manifestName))...)
		}
		candidates = append(candidates, globAll(root, prefixed(chromiumFolders(), "libVkLayer_khronos_validation.so"))...)
		folders := []string{
			"usr/share/vulkan/explicit_layer.d", "usr/local/share/vulkan/explicit_layer.d", "etc/vulkan/explicit_layer.d",
			"opt/homebrew/share/vulkan/explicit_layer.d",
		}
		for _, f := range globAll(root, prefixed(folders, manifestName)) {
			candidates = append(candidates, manifestLibraries(f)...)
		}
		if sdk := getenv("VULKAN_SDK"); sdk != "" {
			candidates = append(candidates, manifestLibraries(filepath.Join(sdk, "share/vulkan/explicit_layer.d", manifestName))...)
		}
	}
	var rejected []string
	for _, c := range candidates {
		if err := knowsSettings(c); err != nil {
			rejected = append(rejected, err.Error())
			continue
		}
		return filepath.Abs(c)
	}
	if rejected == nil {
		rejected = []string{"no layer library found"}
	}
	return "", fmt.Errorf("%w: wanted %s with the setting %s, found: %s; run scripts/setup, name a library in %s, or set %s=1 to test without it",
		ErrNoLayer, layerName, heuristicSetting, strings.Join(rejected, "; "), varLayer, varNoOracle)
}

// manifestLibraries returns the files a layer manifest can mean by its
// library path.
func manifestLibraries(file string) []string {
	m, err := readManifest(file)
	if err != nil || m.Layer.Name != layerName || m.Layer.Library == "" {
		return nil
	}
	library := beside(file, m.Layer.Library)
	if filepath.Base(library) != library {
		return []string{library}
	}
	// A bare name is the dynamic linker's to resolve. These are the folders that
	// distributions put layers in, told apart from the manifest's own prefix.
	prefix := filepath.Join(filepath.Dir(file), "../../..")
	return globAll(prefix, []string{"lib/" + library, "lib64/" + library, "lib/*-linux-gnu/" + library})
}

func readManifest(file string) (manifest, error) {
	var m manifest
	raw, err := os.ReadFile(file)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return m, fmt.Errorf("layer manifest %s: %w", file, err)
	}
	return m, nil
}

// knowsSettings looks for the settings' names in the library rather than at a
// version number: distributions backport, and a layer ignores a setting it
// does not know without a word.
func knowsSettings(library string) error {
	raw, err := os.ReadFile(library)
	if err != nil {
		return err
	}
	for _, s := range layerSettings() {
		if !bytes.Contains(raw, []byte(s.key)) {
			return fmt.Errorf("%s does not know %s", library, s.key)
		}
	}
	return nil
}

// installLayer makes sure that dir holds a manifest for library and the
// settings, and returns an error if it could not.
func installLayer(dir, library string, ask func(string) (layerFacts, error)) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(dir, settingsName), settingsFile()); err != nil {
		return err
	}
	path := filepath.Join(dir, manifestName)
	description, err := describe(library)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoLayer, err)
	}
	if m, err := readManifest(path); err == nil && m.Layer.Library == library && m.Layer.Description == description {
		return nil
	}
	facts, err := ask(library)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoLayer, err)
	}
	m := manifest{FormatVersion: "1.2.0", Layer: layerManifest{
		Name:           layerName,
		Type:           "GLOBAL",
		Library:        library,
		API:            facts.API,
		Implementation: facts.Implementation,
		Description:    description,
		Extensions:     facts.Extensions,
	}}
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(path, append(raw, '\n'))
}

// describe ties a manifest to one build of the library: after an upgrade the
// manifest is written anew, because the versions it quotes have changed.
func describe(library string) (string, error) {
	fi, err := os.Stat(library)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Khronos validation layer, %d bytes of %s", fi.Size(), fi.ModTime().UTC().Format(time.RFC3339)), nil
}

// replaceFile writes by rename, since every package's test process may do the
// same at once, and leaves a file alone that is right already.
func replaceFile(path string, content []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return nil
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(content)
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Chmod(tmp.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}
