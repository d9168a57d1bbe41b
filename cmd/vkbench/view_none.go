//go:build !glfw

package main

import (
	"context"
	"errors"
)

// windows reports why no window can be opened.
func windows() error {
	return errors.New("view: this vkbench was built without windows; build it with: go build -tags glfw ./cmd/vkbench (on Debian and Ubuntu that needs xorg-dev and libgl1-mesa-dev)")
}

func show(context.Context, shown) error { return windows() }
