// Package llm generates text with a decoder-only transformer on kernels of the library:
// the load that recorded graphs are made for, since every token is the same sequence of
// some sixty small launches.
//
// The architecture is that of llama2.c (Karpathy): embedding, and for each layer RMS
// norm, rotary position embedding, attention over a cache of keys and values whose heads
// may share groups, and a gated perceptron; then a norm, logits, and the greatest logit
// is the next token.
//
// # Life of a decoder
//
// A Model is read from a file by ReadModel, or made up by Seeded in the shape of a real
// one. Upload puts its weights on a device once. A Decoder has the working memory and
// the cache of one sequence on one stream: Start begins a sequence, each Step adds a
// token. With Replayed the step was recorded when the decoder was made, and only the
// position, a parameter of the graph, differs from token to token; with Eager every step
// launches again. The token itself never leaves the device between steps: the greatest
// logit is written where the next step's embedding looks it up.
//
// Reference computes the same in float64 on the host, and Check compares the two.
//
// # Concurrency, ownership, errors
//
// Models are not changed after they were made and may be shared. A Decoder belongs to one
// goroutine at a time, and so does a Reference. Decoders on several streams may share
// Weights as long as the uploads were waited for (Upload does). Close decoders, then
// weights, then the streams. A file that is not what it should be is an error matching
// ErrFile that says what was wanted and what was found; a result that is not the
// reference's matches ErrDiffers.
package llm
