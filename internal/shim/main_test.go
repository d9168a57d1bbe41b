package shim_test

import (
	"testing"

	"vkcompute/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
