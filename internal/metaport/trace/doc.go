// Package trace reads recordings of a metadata info cache, one call a line, and
// replays them against another one.
//
// The recordings are what metacache and its port are held to: whoever replays
// one must answer every call as it was answered then. testdata/traces has them
// and describes the format. Parse accepts any input and returns an error that
// names the line for what is no trace; Replay returns an error that names the
// first line where the target differs.
package trace
