//go:build glfw

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"vkcompute/cmd/vkbench/internal/window"
)

// windows reports why no window can be opened.
func windows() error {
	if runtime.GOOS == "linux" && os.Getenv("DISPLAY") == "" {
		return errors.New("view: no display: DISPLAY is not set; run it in a session with a screen, through ssh -X, or under xvfb-run")
	}
	return nil
}

func show(ctx context.Context, s shown) error {
	err := window.Show(ctx, window.Options{Title: s.title, Size: s.size, Side: s.side, Frame: s.frame, Label: s.label, PauseAt: s.pauseAt, Frames: s.frames})
	if errors.Is(err, window.ErrNoDisplay) {
		return fmt.Errorf("view: %w; is the display there, and does OpenGL work on it (glxinfo)?", err)
	}
	return err
}
