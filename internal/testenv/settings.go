package testenv

import "strings"

// layerName is the one layer this package deals in.
const layerName = "VK_LAYER_KHRONOS_validation"

// heuristicSetting is what old layers lack. Without it no hazard between two
// storage buffers is ever reported.
const heuristicSetting = "syncval_shader_accesses_heuristic"

type setting struct{ key, value string }

// layerSettings are applied as environment variables, because the layer ranks
// the environment above a settings file, and a settings file above whatever an
// application chains into its instance: nothing a user left lying around can
// soften a test.
func layerSettings() []setting {
	return []setting{
		{"validate_sync", "1"},
		{heuristicSetting, "1"},
		// On by default, and then the eleventh hazard of a kind goes unreported for
		// the rest of the instance's life.
		{"enable_message_limit", "0"},
		// On by default; writes into the user's cache folder from every process.
		{"check_shaders_caching", "0"},
	}
}

func (s setting) variable() string {
	return "VK_KHRONOS_VALIDATION_" + strings.ToUpper(s.key)
}

// settingsFile renders the same settings for VK_LAYER_SETTINGS_PATH. Its first
// purpose is to be there: without one the layer reads vk_layer_settings.txt
// from the working directory or the user's folders, and a message filter
// in such a file would silence the oracle.
func settingsFile() []byte {
	var b strings.Builder
	b.WriteString("# Written by internal/testenv. Changes are lost.\n")
	for _, s := range layerSettings() {
		b.WriteString("khronos_validation." + s.key + " = " + map[string]string{"0": "false", "1": "true"}[s.value] + "\n")
	}
	return []byte(b.String())
}
