package metacache_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"vkcompute/internal/metaport/trace"
	"vkcompute/metacache"
)

// TestTraces replays the recordings of the reference: every hit, every store
// flag, every length and every released value must be the recorded one. The
// environment variable METACACHE_TRACES names a folder with more of them.
func TestTraces(t *testing.T) {
	folders := []string{"../testdata/traces"}
	if more := os.Getenv("METACACHE_TRACES"); more != "" {
		folders = append(folders, more)
	}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
		require.NoError(t, err)
		require.NotEmpty(t, files, "want traces in %s", folder)
		for _, file := range files {
			t.Run(filepath.Base(file), func(t *testing.T) { replay(t, file) })
		}
	}
}

func replay(t *testing.T, file string) {
	recorded, err := trace.ParseFile(file)
	require.NoError(t, err)
	require.NotEmpty(t, recorded.Steps)
	cache, err := newOurs(metacache.Policy{MaxEntries: recorded.MaxEntries, MaxCachedSize: recorded.MaxCachedSize})
	require.NoError(t, err)
	for i := range recorded.Steps {
		step := trace.Trace{Steps: recorded.Steps[i : i+1]}
		require.NoError(t, step.Replay(cache))
		require.NoError(t, cache.cache.Validate())
	}
}
