// Package doctor finds out why there is no Vulkan device, or not the one expected: it
// looks for the loader, every driver's manifest and library, layers, device nodes and
// their permissions, and says for each failed check what to do.
//
// It reads files alone and calls no driver, so that it works when nothing else does, and
// on another machine's file system under a root. What a driver does when it is loaded is
// asked through System.Probe, which starts a process of its own: a driver may end it.
//
// Where things are searched is what the loader's documentation says
// (LoaderDriverInterface.md and LoaderLayerInterface.md of Vulkan-Loader), for Linux.
package doctor
