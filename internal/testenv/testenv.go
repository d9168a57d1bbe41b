package testenv

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	varDriver   = "VKCOMPUTE_TEST_DRIVER"
	varNoDriver = "VKCOMPUTE_TEST_NO_DRIVER"
	varNoOracle = "VKCOMPUTE_TEST_NO_ORACLE"
	varLayer    = "VKCOMPUTE_TEST_LAYER"
	varLong     = "VKCOMPUTE_TEST_LONG"
	varProfile  = "VKCOMPUTE_TEST_PROFILE"

	varDriverFiles  = "VK_DRIVER_FILES"
	varICDFiles     = "VK_ICD_FILENAMES" // the same, for loaders before 1.3.207
	varLayerPath    = "VK_LAYER_PATH"
	varSettingsPath = "VK_LAYER_SETTINGS_PATH"

	settingsName = "vk_layer_settings.txt"
)

// Env says what the tests of this process run against.
type Env struct {
	// Driver is the driver by name; DriverFiles the manifests the loader was
	// given, empty when it searches by itself.
	Driver      Driver
	DriverFiles string
	// Oracle says that the validation layer is set up: an instance must enable
	// it, and any message at warning or above fails the test that caused it.
	Oracle bool
	// Profile is the device that is emulated on the driver (package shim); empty: the
	// driver's own.
	Profile string
	// Layer is the layer's library and LayerDir the folder of its manifest and
	// settings.
	Layer, LayerDir string
}

// Variables are the assignments, NAME=value, that set this environment up for
// another process.
func (e *Env) Variables() []string {
	var out []string
	if e.DriverFiles != "" {
		out = append(out, varDriverFiles+"="+e.DriverFiles, varICDFiles+"="+e.DriverFiles)
	}
	if e.Oracle {
		out = append(out, varLayerPath+"="+e.LayerDir, varSettingsPath+"="+filepath.Join(e.LayerDir, settingsName))
		for _, s := range layerSettings() {
			out = append(out, s.variable()+"="+s.value)
		}
	}
	return out
}

// Prepare finds driver and layer and writes the layer's files into dir; it
// changes nothing else. An empty dir means the module's own cache folder.
func Prepare(dir string) (*Env, error) {
	return prepare("/", dir, os.Getenv, askLayer)
}

func prepare(root, dir string, getenv func(string) string, ask func(string) (layerFacts, error)) (*Env, error) {
	e := &Env{Profile: getenv(varProfile)}
	var err error
	if e.Driver, e.DriverFiles, err = findDriver(root, getenv); err != nil {
		return nil, err
	}
	if on(getenv(varNoOracle)) {
		return e, nil
	}
	if e.Layer, err = findLayer(root, getenv); err != nil {
		return nil, err
	}
	if dir == "" {
		if dir, err = cacheFolder(); err != nil {
			return nil, err
		}
	}
	if err = installLayer(dir, e.Layer, ask); err != nil {
		return nil, err
	}
	e.Oracle, e.LayerDir = true, dir
	return e, nil
}

// cacheFolder is .cache/vulkan/explicit_layer.d of the module that the working
// directory lies in: git ignores it, and go test starts each test in its
// package's folder.
func cacheFolder() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, ".cache", "vulkan", "explicit_layer.d"), nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod at or above %s: wanted the module's cache folder for the layer's manifest", wd)
		}
	}
}

// on reads a switch the way its users type it.
func on(v string) bool { return v != "" && v != "0" }

// process is the environment of this test process: the C environment that it
// mirrors is one per process too. Start writes it before any test runs.
var process struct {
	env *Env
	err error
}

var errNotStarted = errors.New("call testenv.Main or testenv.Start from TestMain first")

// Start sets the process up and returns what undoes the files it had to put
// elsewhere than in the module's cache folder. Its error waits for Require.
func Start() (stop func()) {
	stop = func() {}
	if on(os.Getenv(varNoDriver)) {
		return stop
	}
	e, err := Prepare("")
	if err != nil && !errors.Is(err, ErrNoDriver) && !errors.Is(err, ErrNoLayer) {
		// The module may be unpacked where nobody can write.
		dir, terr := os.MkdirTemp("", "vkcompute-layer-*")
		if terr == nil {
			stop = func() { os.RemoveAll(dir) }
			e, err = Prepare(dir)
		}
	}
	if err == nil {
		for _, v := range e.Variables() {
			name, value, _ := strings.Cut(v, "=")
			if serr := os.Setenv(name, value); serr != nil {
				err = fmt.Errorf("setting %s: %w", name, serr)
			}
		}
	}
	process.env, process.err = e, err
	return stop
}

// Main runs the tests of a package that needs nothing else in its TestMain.
//
// Examples cannot skip themselves. Where driver tests are switched off, those of
// the package are skipped with them.
func Main(m *testing.M) {
	if on(os.Getenv(varNoDriver)) {
		flag.Parse()
		if skip := flag.Lookup("test.skip"); skip.Value.String() == "" {
			_ = skip.Value.Set("^Example")
		}
	}
	stop, rest := Start(), collect()
	code := m.Run()
	rest()
	stop()
	os.Exit(code)
}

// Require returns the environment to a test that needs a device. It skips the
// test when driver tests are switched off, and fails it when the driver or
// the oracle is missing: a suite that skips by itself proves nothing.
func Require(tb testing.TB) Env {
	tb.Helper()
	// go test keys its cache by the variables read while tests run, and Start
	// ran before: without this, one driver's pass would answer for another.
	for _, v := range inputs() {
		os.Getenv(v)
	}
	if on(os.Getenv(varNoDriver)) {
		tb.Skipf("needs a Vulkan driver, and %s is set", varNoDriver)
	}
	switch {
	case process.err != nil:
		tb.Fatal(process.err)
	case process.env == nil:
		tb.Fatal(errNotStarted)
	}
	return *process.env
}

// inputs are the variables that what a test runs against depends on.
func inputs() []string {
	out := []string{
		varDriver, varNoDriver, varNoOracle, varLayer, varProfile,
		varDriverFiles, varICDFiles, varLayerPath, varSettingsPath,
	}
	for _, s := range layerSettings() {
		out = append(out, s.variable())
	}
	return out
}

// Long reports whether the long forms of tests were asked for.
func Long() bool { return on(os.Getenv(varLong)) }
