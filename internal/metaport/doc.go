// Package metaport is a plain Go port of the reference metadata info cache: a
// map keyed by the bytes of the info words, a clock for recency and a scan over
// all entries when one has to go.
//
// It exists for two purposes, and programs use package metacache instead. It is
// the yardstick: a figure of metacache is only worth something beside the
// obvious implementation, measured in the same run. And it is a behavioural
// model: it replays the recorded traces of the reference, and it keeps the
// faults of the reference, so that a test which claims to find such a fault can
// be shown to fail here.
//
// The port releases a value through the function given to New at the moment the
// reference would drop it. The function must not call back into the cache.
//
// A Cache belongs to one goroutine at a time.
package metaport
