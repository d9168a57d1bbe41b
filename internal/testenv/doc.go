// Package testenv decides what the driver tests run against, and makes it so.
//
// # Why
//
// A result on a CPU driver counts only when the validation layer, with
// synchronization validation and the storage-buffer heuristic, stayed silent.
// The layer that can see a missing barrier comes without a manifest, keeps
// its heuristic off, and falls silent after ten messages of a kind: all of
// this is set through the environment of the process, and all of it has to be
// in place before the first Vulkan instance. Left to each test, one would
// forget a variable and pass for the wrong reason.
//
// # Life cycle
//
// A package with driver tests calls [Main] (or [Start]) from TestMain. That
// finds the driver and the layer, writes the layer's manifest if there is
// none yet, and sets the environment. A test that needs a device calls
// [Require], which hands back the [Env], skips the test when the user switched
// driver tests off, and fails it with a hint when something is missing. Tests
// of the same package that need no device do not call Require and run
// everywhere.
//
// # Variables
//
//	VKCOMPUTE_TEST_DRIVER=NAME      lavapipe, swiftshader, or the path of a driver manifest;
//	                                unset: VK_DRIVER_FILES if set, else what the loader finds
//	VKCOMPUTE_TEST_NO_DRIVER=1      skip every test that needs a device
//	VKCOMPUTE_TEST_NO_ORACLE=1      run without the validation layer
//	VKCOMPUTE_TEST_PROFILE=NAME     a device that internal/shim emulates on the driver, such as
//	                                discrete; unset: the driver's own
//	VKCOMPUTE_TEST_LAYER=FILE       the layer's library, instead of searching for it
//	VKCOMPUTE_TEST_COLLECT=1        collect garbage all the time beside the tests
//	VKCOMPUTE_TEST_LONG=1           the long forms of tests that have one, see [Long]
//
// go test's cache notices a changed variable, but no upgraded driver or layer:
// scripts/test therefore runs driver tests with -count=1.
//
// # Concurrency and ownership
//
// Start changes the environment of the process, so it belongs before any test
// and any thread that reads it; it is the only part with an effect. Env is a
// plain value. The files written under the module's .cache folder are shared by
// parallel test processes and replaced atomically.
//
// # Errors
//
// [ErrNoDriver] and [ErrNoLayer], wrapped with where was searched and what to
// do. Start never fails: it keeps the error for Require, because tests
// that need no driver must run without one.
//
// The package does not import the project's Vulkan packages: their own tests
// use it.
package testenv
