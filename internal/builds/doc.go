// Package builds holds the tests of where and how the module can be built: on systems that
// nobody here has, without headers that users need not install, and from a vendor folder.
// It has no code of its own.
package builds
