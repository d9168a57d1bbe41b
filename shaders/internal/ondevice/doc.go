// Package ondevice holds tests of kernels together on a driver: in place, chained
// through positions that lie on the device, and kernels of users. It is apart from
// package shaders, which knows no driver.
package ondevice
