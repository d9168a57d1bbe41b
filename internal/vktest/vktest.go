// Package vktest opens devices for tests, under the validation layer and through
// internal/shim, and fails the test that causes a message, breaks a limit of the
// device, or leaves an object behind.
//
// A package that uses it calls testenv.Main from its TestMain. The environment variable
// VKCOMPUTE_TEST_PROFILE makes every device that Open opens an emulated one.
package vktest

import (
	"errors"
	"testing"

	"vkcompute/internal/shim"
	"vkcompute/internal/testenv"
	"vkcompute/vk"
)

// Options returns the options every test device is opened with.
func Options(tb testing.TB) vk.Options {
	tb.Helper()
	env := testenv.Require(tb)
	o := vk.Options{}
	if env.Oracle {
		o.Validation = vk.ValidationSync
	}
	return o
}

// Open opens the device under test. When the test ends the device is closed, and any
// message of the validation layer or object still alive fails the test.
func Open(tb testing.TB) *vk.Device {
	tb.Helper()
	profile := testenv.Require(tb).Profile
	if profile == "" {
		profile = shim.Plain
		// Where the process has used the driver without the shim, as examples do when
		// they are run alone, the device is the plain one anyway.
		if err := shim.Install(); errors.Is(err, vk.ErrLoaderOpen) {
			d, err := vk.Open(Options(tb))
			if err != nil {
				tb.Fatal(err)
			}
			tb.Cleanup(func() { finish(tb, d) })
			return d
		}
	}
	d, _ := OpenProfile(tb, profile)
	return d
}

// OpenProfile opens a device that a driver of its own emulates. At the end of the test
// it is closed as Open does, and violations and leaks fail the test.
func OpenProfile(tb testing.TB, profile string) (*vk.Device, *shim.Driver) {
	tb.Helper()
	driver := NewDriver(tb, profile)
	return OpenOn(tb, driver), driver
}

// NewDriver makes an emulated driver, to be closed with the test.
func NewDriver(tb testing.TB, profile string) *shim.Driver {
	tb.Helper()
	testenv.Require(tb)
	if err := shim.Install(); err != nil {
		tb.Fatal(err)
	}
	driver, err := shim.New(profile)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := driver.Close(); err != nil {
			tb.Error(err)
		}
	})
	return driver
}

// OpenOn opens a device of an emulated driver, to be closed with the test.
func OpenOn(tb testing.TB, driver *shim.Driver) *vk.Device {
	tb.Helper()
	d, err := driver.Open(Options(tb))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { finish(tb, d) })
	return d
}

// finish closes a device at the end of its test.
func finish(tb testing.TB, d *vk.Device) {
	if !d.Lost() {
		if err := d.WaitIdle(); err != nil && !errors.Is(err, vk.ErrClosed) {
			tb.Error(err)
		}
	}
	Silent(tb, d)
	if err := d.Close(); err != nil {
		tb.Error(err)
	}
}

// Silent fails the test if the device has messages.
func Silent(tb testing.TB, d *vk.Device) {
	tb.Helper()
	for _, m := range d.Messages() {
		tb.Errorf("validation: %v", m)
	}
}
