package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// tree writes files below a fresh root, so that the search can be tested
// without the drivers of this machine.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		f := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(f), 0o755))
		require.NoError(t, os.WriteFile(f, []byte(content), 0o644))
	}
	return root
}

func vars(kv ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i]] = kv[i+1]
	}
	return func(k string) string { return m[k] }
}

// newLayer is the content of a library that knows every setting.
func newLayer() string {
	var b strings.Builder
	for _, s := range layerSettings() {
		b.WriteString("\x00" + s.key + "\x00")
	}
	return b.String()
}

func layerAt(library string) string {
	return fmt.Sprintf(`{"file_format_version":"1.2.0","layer":{"name":%q,"library_path":%q,"api_version":"1.3.239"}}`, layerName, library)
}

const (
	lvpFile = "usr/share/vulkan/icd.d/lvp_icd.x86_64.json"
	swFile  = "usr/lib/chromium/vk_swiftshader_icd.json"
	crLayer = "usr/lib/chromium/libVkLayer_khronos_validation.so"
	osLayer = "usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json"
)

func TestFindDriver(t *testing.T) {
	root := tree(t, map[string]string{lvpFile: "{}", swFile: "{}"})
	own := filepath.Join(root, swFile)
	for _, c := range []struct {
		name   string
		env    []string
		driver Driver
		files  string
	}{
		{"nothing said: the loader searches", nil, System, ""},
		{"lavapipe", []string{varDriver, "lavapipe"}, Lavapipe, filepath.Join(root, lvpFile)},
		{"swiftshader", []string{varDriver, "swiftshader"}, SwiftShader, filepath.Join(root, swFile)},
		{"a manifest by path", []string{varDriver, own}, SwiftShader, own},
		{"the loader's own variable", []string{varDriverFiles, "/a/lvp_icd.json"}, Lavapipe, "/a/lvp_icd.json"},
		{"the loader's old variable", []string{varICDFiles, "/a/nvidia_icd.json"}, System, "/a/nvidia_icd.json"},
		{"a name beats the loader's variable", []string{varDriver, "lavapipe", varDriverFiles, "/a/x.json"}, Lavapipe, filepath.Join(root, lvpFile)},
		{"two manifests are no single driver", []string{varDriverFiles, "/a/lvp_icd.json:/b/vk_swiftshader_icd.json"}, System, "/a/lvp_icd.json:/b/vk_swiftshader_icd.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, files, err := findDriver(root, vars(c.env...))
			require.NoError(t, err)
			require.Equal(t, c.driver, d)
			require.Equal(t, c.files, files)
		})
	}
}

func TestMissingDriverSaysWhatToDo(t *testing.T) {
	root := tree(t, nil)
	for _, want := range []string{"", "lavapipe", "swiftshader", "/no/such/manifest.json"} {
		_, _, err := findDriver(root, vars(varDriver, want))
		require.ErrorIs(t, err, ErrNoDriver, want)
		if !filepath.IsAbs(want) {
			require.ErrorContains(t, err, "scripts/setup")
			require.ErrorContains(t, err, varNoDriver)
		}
	}
}

func TestFindLayerPrefersTheOneThatSees(t *testing.T) {
	root := tree(t, map[string]string{
		crLayer: newLayer(),
		osLayer: layerAt("libVkLayer_khronos_validation.so"),
		"usr/lib/x86_64-linux-gnu/libVkLayer_khronos_validation.so": newLayer(),
	})
	got, err := findLayer(root, vars())
	require.NoError(t, err)
	require.Equal(t, filepath.Join(root, crLayer), got)

	require.NoError(t, os.WriteFile(filepath.Join(root, crLayer), []byte("an old one"), 0o644))
	got, err = findLayer(root, vars())
	require.NoError(t, err)
	require.Equal(t, "x86_64-linux-gnu", filepath.Base(filepath.Dir(got)), "a bare name is searched beside the manifest's prefix")

	other := filepath.Join(root, "elsewhere.so")
	require.NoError(t, os.WriteFile(other, []byte(newLayer()), 0o644))
	got, err = findLayer(root, vars(varLayer, other))
	require.NoError(t, err)
	require.Equal(t, other, got)
}

func TestOldLayerIsRefused(t *testing.T) {
	root := tree(t, map[string]string{
		osLayer: layerAt("../../../lib/old.so"), "usr/lib/old.so": "validate_sync and nothing else",
	})
	_, err := findLayer(root, vars())
	require.ErrorIs(t, err, ErrNoLayer)
	require.ErrorContains(t, err, "old.so does not know "+heuristicSetting)
	require.ErrorContains(t, err, varNoOracle)

	_, err = findLayer(tree(t, nil), vars())
	require.ErrorIs(t, err, ErrNoLayer)
}

func TestInstallLayerAsksOncePerLibrary(t *testing.T) {
	root := tree(t, map[string]string{crLayer: newLayer()})
	library, dir := filepath.Join(root, crLayer), filepath.Join(root, "cache")
	asked := 0
	ask := func(string) (layerFacts, error) {
		asked++
		return layerFacts{API: "1.4.0", Implementation: "1", Extensions: []manifestExtension{{"VK_EXT_debug_utils", "2"}}}, nil
	}
	for range 3 {
		require.NoError(t, installLayer(dir, library, ask))
	}
	require.Equal(t, 1, asked)
	m, err := readManifest(filepath.Join(dir, manifestName))
	require.NoError(t, err)
	require.Equal(t, library, m.Layer.Library)
	require.Equal(t, "1.4.0", m.Layer.API)

	require.NoError(t, os.WriteFile(library, []byte(newLayer()+"upgraded"), 0o644))
	require.NoError(t, installLayer(dir, library, ask))
	require.Equal(t, 2, asked, "an upgraded library is asked again")

	for _, f := range []string{manifestName, settingsName} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, f), []byte(`{"layer":`), 0o644))
		require.NoError(t, installLayer(dir, library, ask))
		raw, err := os.ReadFile(filepath.Join(dir, f))
		require.NoError(t, err)
		require.Contains(t, string(raw), "validation", "a damaged %s is replaced", f)
	}
}

func TestInstallLayerInParallel(t *testing.T) {
	root := tree(t, map[string]string{crLayer: newLayer()})
	library, dir := filepath.Join(root, crLayer), filepath.Join(root, "cache")
	ask := func(string) (layerFacts, error) { return layerFacts{API: "1.4.0"}, nil }
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			errs[i] = installLayer(dir, library, ask)
			if errs[i] == nil {
				_, errs[i] = readManifest(filepath.Join(dir, manifestName))
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 2, "no half-written files stay behind")
}

func TestEverySettingIsInTheEnvironmentAndTheFile(t *testing.T) {
	e := Env{Driver: Lavapipe, DriverFiles: "/d.json", Oracle: true, LayerDir: "/l"}
	got := e.Variables()
	for _, want := range []string{
		"VK_DRIVER_FILES=/d.json", "VK_ICD_FILENAMES=/d.json", "VK_LAYER_PATH=/l",
		"VK_LAYER_SETTINGS_PATH=/l/vk_layer_settings.txt",
		"VK_KHRONOS_VALIDATION_SYNCVAL_SHADER_ACCESSES_HEURISTIC=1",
		"VK_KHRONOS_VALIDATION_VALIDATE_SYNC=1",
		"VK_KHRONOS_VALIDATION_ENABLE_MESSAGE_LIMIT=0",
	} {
		require.Contains(t, got, want)
	}
	for _, s := range layerSettings() {
		require.Contains(t, string(settingsFile()), "khronos_validation."+s.key+" = ")
	}
	e.Oracle = false
	require.Len(t, e.Variables(), 2)
}

func TestPrepareWithoutOracleNeedsNoLayer(t *testing.T) {
	root := tree(t, map[string]string{lvpFile: "{}"})
	refuse := func(string) (layerFacts, error) { return layerFacts{}, errors.New("asked") }
	e, err := prepare(root, t.TempDir(), vars(varNoOracle, "1", varProfile, "tiny"), refuse)
	require.NoError(t, err)
	require.False(t, e.Oracle)
	require.Equal(t, "tiny", e.Profile)

	_, err = prepare(root, t.TempDir(), vars(varNoOracle, "0"), refuse)
	require.ErrorIs(t, err, ErrNoLayer)
}

// askLayer is tested on what every machine has: something that is no library,
// and, where it can be compiled, one that is no layer.
func TestAskLayerRefusesWhatIsNoLayer(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.so")
	require.NoError(t, os.WriteFile(bad, []byte("text"), 0o644))
	_, err := askLayer(bad)
	require.ErrorContains(t, err, bad)

	src, lib := filepath.Join(t.TempDir(), "x.c"), filepath.Join(t.TempDir(), "x.so")
	require.NoError(t, os.WriteFile(src, []byte("int nothing;\n"), 0o644))
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", lib, src).CombinedOutput(); err != nil {
		t.Skipf("no C compiler to make a library with: %v %s", err, out)
	}
	_, err = askLayer(lib)
	require.ErrorContains(t, err, "not a layer")
}

// TestRealEnvironment is the one test of the machine itself.
func TestRealEnvironment(t *testing.T) {
	if on(os.Getenv(varNoDriver)) || on(os.Getenv(varNoOracle)) {
		t.Skip("switched off")
	}
	e, err := Prepare("")
	require.NoError(t, err)
	m, err := readManifest(filepath.Join(e.LayerDir, manifestName))
	require.NoError(t, err)
	facts, err := askLayer(e.Layer)
	require.NoError(t, err)
	require.Equal(t, facts.API, m.Layer.API)
	require.Equal(t, facts.Extensions, m.Layer.Extensions)
	var names []string
	for _, x := range m.Layer.Extensions {
		names = append(names, x.Name)
	}
	require.Contains(t, names, "VK_EXT_debug_utils")
}

// recorder is a test that fails and skips on paper only.
type recorder struct {
	testing.TB
	skipped, failed string
}

type stopped struct{}

func (r *recorder) Helper() {}
func (r *recorder) Fatal(a ...any) {
	r.failed = fmt.Sprint(a...)
	panic(stopped{})
}
func (r *recorder) Skipf(f string, a ...any) {
	r.skipped = fmt.Sprintf(f, a...)
	panic(stopped{})
}

func requireOn(r *recorder) (e Env) {
	defer func() {
		if x := recover(); x != nil && x != any(stopped{}) {
			panic(x)
		}
	}()
	return Require(r)
}

func TestRequire(t *testing.T) {
	saved := process
	t.Cleanup(func() { process = saved })
	t.Setenv(varNoDriver, "")

	process.env, process.err = nil, nil
	r := &recorder{}
	requireOn(r)
	require.Contains(t, r.failed, "TestMain", "a package that forgot TestMain must not pass")

	process.err = ErrNoLayer
	r = &recorder{}
	requireOn(r)
	require.Equal(t, ErrNoLayer.Error(), r.failed)

	process.env, process.err = &Env{Driver: SwiftShader, Oracle: true}, nil
	r = &recorder{}
	require.Equal(t, SwiftShader, requireOn(r).Driver)
	require.Empty(t, r.failed+r.skipped)

	t.Setenv(varNoDriver, "1")
	r = &recorder{}
	requireOn(r)
	require.Contains(t, r.skipped, varNoDriver)
}

// TestStartReachesThisProcess checks the one effect: what Prepare found is in
// the environment afterwards.
func TestStartReachesThisProcess(t *testing.T) {
	if on(os.Getenv(varNoDriver)) {
		t.Skip("switched off")
	}
	saved := process
	e, err := Prepare("")
	require.NoError(t, err)
	for _, v := range e.Variables() {
		name, _, _ := strings.Cut(v, "=")
		t.Setenv(name, os.Getenv(name))
	}
	t.Cleanup(func() { process = saved })
	Start()()
	require.NoError(t, process.err)
	for _, v := range process.env.Variables() {
		name, value, _ := strings.Cut(v, "=")
		require.Equal(t, value, os.Getenv(name))
	}
}
