// Package cmdbuf runs kernels: streams collect launches into batches, order them with
// as few barriers as their memory accesses need, and record graphs that are replayed by
// resubmitting a command buffer.
//
// # Why
//
// The driver's part of a launch costs a few hundred nanoseconds; what surrounds it in
// most programs (an info buffer, a descriptor set, barriers, a submission, a crossing
// from Go into C for each) costs ten times that. Here everything a launch needs is found
// again: the info by its words, the descriptor set by the buffers it binds; a batch
// crosses into C once; and a graph needs nothing but its submission.
//
// # The life of a launch
//
// Launch checks the arguments and asks the kernel for grid and info words. The info is
// looked up in the stream's metadata cache; on a miss it is written by the host into a
// slot of the info pool at once, so that no later hit can meet words a recorded command
// has yet to write. A barrier is planned from the byte ranges bound, and the commands
// join the batch. Flush, Sync, a read, a replay or a full batch submits it and gives it
// a serial. Every slice the batch uses is stamped with that serial beforehand, so memory
// released meanwhile is not handed to anyone whom no barrier would order behind it.
//
// # The life of a graph
//
// Capture runs a function whose launches are recorded instead of executed. They pin
// every info they touch in the metadata cache, whatever its size, under the ID of the
// graph being made. The graph holds a reference on each slice and pipeline, and owns its
// command buffer and descriptor sets; so what it recorded cannot die before it. Replay
// submits the command buffer again, in time that does not depend on its length; several
// replays may be in flight. The command buffer begins with a barrier against all that
// was submitted before and ends with one for all that follows: eager work, replays and
// host reads happen in the order of the calls. Close drops the pins at once and the rest
// when the last replay is done.
//
// # What a graph can do besides
//
// A launch of a capture may name arguments with Param, which Graph.Set changes between
// replays: scalars travel as a small update in the replay's own submission, tensors make
// one short segment be recorded again. Copies, uploads (WriteIn) and launches whose grid
// the device computes can be captured. Temp allocates memory that lives as long as the
// capture's calls say and is shared between temporaries. Operations that do not depend on
// each other are brought together where that saves barriers (Options.Order); Graph.Explain
// says why each barrier is there, and Graph.Profile how long each operation took on the
// device. Graph.Save writes a graph to a file, and Load makes it anew on another device.
//
// Streams share tensors through events: Record, WaitFor. A tensor is in the order of every
// stream that uses it as far as events say, and no further; its memory comes back when
// all of them are done with it.
//
// # Elements
//
// A tensor holds numbers, or structs of them as a kernel of the caller's reads them:
// Upload(stream, []Particle{…}, n). What lies where is compared with the shader at the
// launch, which costs nothing the second time. float64 is for kernels of the caller's, on
// devices that have it; shaders.Half for those that say so.
//
// # Concurrency
//
// A Stream has one lock and may be called from several goroutines; so may its graphs and
// tensors. No lock is held while a capture's function runs, while the host waits for a
// read or a Sync, or for an event. It is held while Stream.Close waits, while the function
// of Tensor.Map runs, while the first replay of a graph is measured
// (Options.MaxSubmitTime), and while a submission waits for the oldest of 64 in flight.
// Streams are independent of each other.
//
// # Ownership
//
// The stream owns its pools, its metadata cache, its pipelines and its descriptor sets.
// A Tensor from New or Upload owns its memory; views borrow it. Close tensors, then the
// stream, then the device. Closing never waits for the device, Stream.Close excepted;
// closing a graph or a tensor waits for calls of other goroutines at most.
//
// # Tuning
//
// How work is shared out (groups, their size, the tiles of a matrix product) goes by the
// kind of the device, or by a file beside its pipeline cache that SaveTuning wrote once:
// NewStream takes the one of just this device and driver, where the device was opened with
// vk.Options.PipelineCache. Options.Tuning goes before both. Nothing is ever measured unasked:
// vkbench tune does, and saves. A file that is damaged, of another device, driver or version,
// or that asks for what the device does not allow costs a line in the log and the default.
//
// # Kernels that are not trusted
//
// On a device opened with vk.Options.Untrusted, every kernel that is not built in is held to
// the memory of its arguments. Where the device confines a shader to its bindings
// (vk.RobustBinding), nothing else is needed. Where it confines one to the buffer
// (vk.RobustBuffer), all of the stream's memory must be on pages of its own, as with
// Options{Pools: pool.ExclusivePages()}; other launches are ErrUntrusted. Such a kernel never
// shares an info, gets no device addresses, and may change any of its arguments, whatever it
// declares, so barriers are planned for all it can reach. What earlier owners left in its
// memory it can read, and it can run for ever.
//
// # Errors
//
// A launch that is wrong changes nothing. What is wrong with an argument is an
// *ArgumentError; match its cause with errors.Is: ErrShape, ErrOverlap, ErrForeign,
// ErrClosed, shaders.ErrOperand, or *vk.LimitError with errors.As. Waiting, reading,
// replaying and installing pools inside a capture is ErrCapturing. A batch whose
// submission fails is dropped and the error says so; the stream goes on.
package cmdbuf
