// Package vktest opens devices for tests, under the validation layer, and fails the
// test that causes a message or leaves an object behind.
//
// A package that uses it calls testenv.Main from its TestMain.
package vktest

import (
	"testing"

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
	d, err := vk.Open(Options(tb))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if !d.Lost() {
			if err := d.WaitIdle(); err != nil {
				tb.Error(err)
			}
		}
		Silent(tb, d)
		if err := d.Close(); err != nil {
			tb.Error(err)
		}
	})
	return d
}

// Silent fails the test if the device has messages.
func Silent(tb testing.TB, d *vk.Device) {
	tb.Helper()
	for _, m := range d.Messages() {
		tb.Errorf("validation: %v", m)
	}
}
