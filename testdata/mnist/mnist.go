// Package mnist embeds a part of the MNIST database: see README.md.
package mnist

import "embed"

// Files are the four IDX files, gzipped.
//
//go:embed *.gz
var Files embed.FS
