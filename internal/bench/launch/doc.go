// Package launch measures what a launch costs: with everything rebuilt for it, with its
// info cached, and recorded once and replayed, each beside the same commands in plain C.
//
// The kernel is small on purpose, one workgroup that adds 64 strided elements, and the
// launches form a chain, a+b→c, c+b→a, so that each needs a barrier before it. For
// every size n a submission holds n launches and is waited for; figures are per launch.
//
// Modes:
//
//	rebuild   no cache: an info slot and a descriptor set made and written for each launch
//	cached    infos and sets come from the caches; commands are recorded
//	replay    a recorded graph is submitted
//
// Controls show how much of that is the driver's: an empty submission, and the replay of
// a kernel that does nothing and binds nothing.
//
// Results are compared with the reference before anything is timed and again at the end,
// for the library and for plain C; barriers and launches of the two are counted and must
// agree. Either failing is an error, not a figure.
package launch
