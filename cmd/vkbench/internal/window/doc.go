// Package window shows pictures in a window, with GLFW and the oldest OpenGL that
// everybody has. It is built with the tag glfw, which needs the development files of X11
// and OpenGL; without it the package is empty.
//
// GLFW belongs to one thread: Show locks its goroutine to the one it is called on, and
// where a system wants the main thread (macOS), the caller must be on it. All callbacks
// run on that thread, between two frames.
//
// While the window is minimised, hidden or without a pixel, no frame is made.
package window
