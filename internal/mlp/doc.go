// Package mlp trains a classifier of two layers on kernels of the library: forward, loss,
// gradients and Adam, some sixteen launches a step that never change but for the batch.
//
//	h = x·W1 + b1, z = relu(h)·W2 + b2, loss = mean of the cross entropy of z
//
// # Life of a trainer
//
// UploadData puts images and labels on a device once. A Trainer has the weights, what Adam
// remembers, and the memory of one step, on one stream. With Replayed the step was recorded when
// the trainer was made: the rows of a batch are views of the data, which Step sets as
// parameters of the graph, with the learning rate. With Eager every step launches again.
// Loss, Weights, Gradients and Accuracy wait for what was launched.
//
// All weights lie in one tensor, as their gradients do in another, so that one launch of Adam updates
// them; the matrices are views.
//
// Reference computes loss and gradients in float64 on the host.
//
// # Concurrency, ownership, errors
//
// A Trainer belongs to one goroutine at a time. A replayed one needs its data on its own stream; others may
// borrow it. Close trainers, then data, then streams. Sizes that do not fit
// are errors matching ErrSize.
package mlp
