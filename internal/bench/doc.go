// Package bench is the method of the measurements: how samples are taken, what is made
// of them, and the form in which they are written down. It knows no driver.
//
// # Why
//
// A launch costs about a microsecond, and a machine's speed wanders by more than what
// is to be shown: clocks change, neighbours come and go, the first touch of a page costs
// more than ten launches. So nothing is timed by itself. All cases run in one process,
// in rounds: each round takes one sample of every case, in an order shuffled anew, so
// that whatever the machine does, it does to all of them. Only figures of one run are
// compared with each other.
//
// A submission and its wait is mostly the waking of a thread. Figures at one launch a
// submission therefore say little about a library, and a Line through the totals at
// several sizes tells the cost of a submission from that of a launch.
//
// # Life of a measurement
//
// A workload makes Cases, checks that what they compute is right, and hands them to
// Measure, which warms each up, chooses how many shots make one sample, and runs the
// rounds. Summarise turns samples into a Summary; a Report holds Results with the
// Environment in which they were taken, and is written as JSON or as a table.
//
// # Concurrency and errors
//
// Measure runs its cases on the caller's goroutine, one after the other. It stops at the
// first error of a case, or between two samples when its context ends, and returns that
// error: half a measurement is none. Everything else is plain values.
package bench
