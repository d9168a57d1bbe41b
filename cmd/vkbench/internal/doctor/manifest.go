package doctor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// manifests lists the *.json files of one of the loader's folders, such as icd.d, in
// its order.
func (e *examination) manifests(folder string) []string {
	var dirs []string
	add := func(base, or string, list bool) {
		if base == "" {
			base = or
		}
		parts := []string{base}
		if list {
			parts = filepath.SplitList(base)
		}
		for _, p := range parts {
			if d := filepath.Join(p, "vulkan", folder); p != "" && !slices.Contains(dirs, d) {
				dirs = append(dirs, d)
			}
		}
	}
	add(e.Getenv("XDG_CONFIG_HOME"), filepath.Join(e.Home, ".config"), false)
	add(e.Getenv("XDG_CONFIG_DIRS"), "/etc/xdg", true)
	add("/etc", "", false)
	add(e.Getenv("XDG_DATA_HOME"), filepath.Join(e.Home, ".local/share"), false)
	add(e.Getenv("XDG_DATA_DIRS"), "/usr/local/share:/usr/share", true)
	var list []string
	for _, d := range dirs {
		list = append(list, e.jsonFiles(d)...)
	}
	return list
}

func (e *examination) jsonFiles(dir string) []string {
	found, _ := filepath.Glob(filepath.Join(e.path(dir), "*.json"))
	slices.Sort(found)
	for i, f := range found {
		found[i] = filepath.Join(dir, filepath.Base(f))
	}
	return found
}

// named are the manifests that a variable of the environment lists: files, or folders of
// them.
func (e *examination) named(variable string) []string {
	var list []string
	for _, p := range filepath.SplitList(e.Getenv(variable)) {
		if info, err := os.Stat(e.path(p)); err == nil && info.IsDir() {
			list = append(list, e.jsonFiles(p)...)
		} else if p != "" {
			list = append(list, p)
		}
	}
	return list
}

type manifestText struct {
	ICD *struct {
		Library string `json:"library_path"`
		API     string `json:"api_version"`
	}
	Layer *struct {
		Name    string `json:"name"`
		Library string `json:"library_path"`
	} `json:"layer"`
	Layers []struct {
		Name    string `json:"name"`
		Library string `json:"library_path"`
	} `json:"layers"`
}

func (e *examination) readManifest(p string) (*manifestText, error) {
	text, err := os.ReadFile(e.resolve(p))
	switch {
	case os.IsNotExist(err):
		return nil, fmt.Errorf("there is no such file")
	case os.IsPermission(err):
		return nil, fmt.Errorf("it may not be read")
	case err != nil:
		return nil, fmt.Errorf("it cannot be read")
	}
	var m manifestText
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("it is not valid JSON (%v)", err)
	}
	return &m, nil
}

// library is where the library of a manifest lies: a path, relative to the manifest where
// it is not absolute, or a name that the dynamic linker looks for.
func (e *examination) library(manifest, library string) (string, error) {
	if !strings.Contains(library, "/") {
		if at := e.findLibrary(library); at != "" {
			return at, nil
		}
		return "", fmt.Errorf("its library %s is in none of the linker's folders", library)
	}
	if !filepath.IsAbs(library) {
		library = filepath.Join(filepath.Dir(manifest), library)
	}
	if !e.exists(library) {
		return "", fmt.Errorf("its library %s does not exist", library)
	}
	return library, nil
}

// drivers checks each manifest, and returns how many drivers could load.
func (e *examination) drivers() int {
	var list []string
	only := ""
	for _, v := range []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"} {
		if e.Getenv(v) != "" {
			only, list = v, e.named(v)
			break
		}
	}
	if only == "" {
		list = append(e.named("VK_ADD_DRIVER_FILES"), e.manifests("icd.d")...)
	} else {
		e.say(areaDrivers, Note, "", "%s is set: no driver but those it names is used", only)
	}
	for _, v := range []string{"VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE"} {
		if value := e.Getenv(v); value != "" {
			e.say(areaDrivers, Note, "", "%s=%s may keep the loader from using a driver listed here", v, value)
		}
	}
	if len(list) == 0 {
		fix := e.os.install("mesa-vulkan-drivers", "mesa-vulkan-drivers", "vulkan-swrast")
		if only != "" {
			fix = "unset " + only
		}
		e.say(areaDrivers, Problem, fix, "no driver is installed: there is no manifest (icd.d/*.json) in the loader's folders")
		return 0
	}
	good := 0
	for _, p := range list {
		if e.driver(p, only) {
			good++
		}
	}
	return good
}

func (e *examination) driver(p, only string) bool {
	fix := "reinstall the package that brought it, or remove the file"
	if only != "" {
		fix = "correct or unset " + only
	}
	m, err := e.readManifest(p)
	if err != nil {
		e.say(areaDrivers, Problem, fix, "%s: %v", p, err)
		return false
	}
	if m.ICD == nil || m.ICD.Library == "" {
		e.say(areaDrivers, Problem, fix, "%s: it names no library (ICD.library_path)", p)
		return false
	}
	at, err := e.library(p, m.ICD.Library)
	if err == nil {
		if lerr := e.loads(at, nil, 0); lerr != nil {
			err = fmt.Errorf("its library %s cannot be loaded: %w", at, lerr)
		}
	}
	if err != nil {
		e.say(areaDrivers, Problem, e.os.forDriver(p), "%s: %v", p, err)
		return false
	}
	e.found = append(e.found, filepath.Base(at))
	if e.Probe == nil {
		e.say(areaDrivers, Good, "", "%s: %s", p, at)
		return true
	}
	devices, err := e.Probe(p)
	switch {
	case err != nil:
		e.say(areaDrivers, Problem, "update it, or leave it out: VK_DRIVER_FILES names the drivers to use", "%s: loading it failed: %v", p, err)
		return false
	case len(devices) == 0:
		e.say(areaDrivers, Good, "", "%s: %s: loads, and has no device on this machine", p, at)
		return true
	}
	e.say(areaDrivers, Good, "", "%s: %s: %s", p, at, strings.Join(devices, "; "))
	return true
}

func (e *examination) layers() {
	any := false
	for _, kind := range []string{"explicit", "implicit"} {
		list := e.manifests(kind + "_layer.d")
		if v := e.named("VK_LAYER_PATH"); kind == "explicit" && len(v) > 0 {
			list = v
		}
		for _, p := range list {
			any = true
			m, err := e.readManifest(p)
			if err != nil {
				e.say(areaLayers, Problem, "reinstall the package that brought it, or remove the file", "%s: %v", p, err)
				continue
			}
			layers := m.Layers
			if m.Layer != nil {
				layers = append(layers, *m.Layer)
			}
			for _, l := range layers {
				if l.Library == "" {
					continue // a layer made of others
				}
				at, err := e.library(p, l.Library)
				if err == nil {
					if lerr := e.loads(at, nil, 0); lerr != nil {
						err = fmt.Errorf("its library %s cannot be loaded: %w", at, lerr)
					}
				}
				switch {
				case err != nil:
					e.say(areaLayers, Problem, "reinstall the package that brought it, or remove the file", "%s: %s: %v", p, l.Name, err)
				case kind == "implicit":
					e.say(areaLayers, Good, "", "%s (%s): loaded into every program unless it is switched off", l.Name, p)
				default:
					e.say(areaLayers, Good, "", "%s (%s)", l.Name, p)
				}
			}
		}
	}
	if !any {
		e.say(areaLayers, Note, "", "none installed; --validate needs the Khronos validation layer (%s)", e.os.packages("vulkan-validationlayers", "vulkan-validation-layers", "vulkan-validation-layers"))
	}
	for _, v := range []string{"VK_INSTANCE_LAYERS", "VK_LOADER_LAYERS_ENABLE"} {
		if value := e.Getenv(v); value != "" {
			e.say(areaLayers, Note, "", "%s=%s puts layers into every program: figures are not comparable", v, value)
		}
	}
}
