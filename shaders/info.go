package shaders

// The info words of a launch, which its shader reads as `uint info[]`:
//
//	scalars   one word each: the kernel's scalar parameters in order, then the
//	          counts it derives from the shapes
//	views     one after the other, in the order the kernel documents
//
// A view of rank r takes 2+2r words:
//
//	rank | offset | shape[0] … shape[r-1] | stride[0] … stride[r-1]
//
// Offset and strides count elements. A negative stride is its two's complement:
// index arithmetic in a shader wraps, so the sum comes out right. Axis r-1 is
// the one an element's number counts through fastest.
//
// The views are not the operands as they were given. Where the kernel is free
// to choose, axes of extent 1 are dropped, axes are put in the order of the
// output's strides, reversed where those are negative, and neighbours that step
// as one axis are joined. So a launch on contiguous operands of any rank has
// rank 1, and launches that do the same work have the same words.
//
// Two words share one uint64, the first in the low half, and the last half is 0
// when their number is odd: the buffer is 8·len(Info) bytes long, and on the
// little-endian machines that drive Vulkan devices the shader sees the words in
// order.
//
//	kernel   scalars                                     views
//	MatMul   tiles, M, N, K, tiles M, tiles N, patches   a, b, out; the last two axes are the matrix
//	Nop      0                                           none
//
// For the others the head of the GLSL file says it. What works element by element has
// no views but the words of walk.glsl, which have the axes once for all tensors.
type infoWriter struct {
	words []uint64
	half  bool
}

func (w *infoWriter) put(v uint32) {
	if w.half {
		w.words[len(w.words)-1] |= uint64(v) << 32
	} else {
		w.words = append(w.words, uint64(v))
	}
	w.half = !w.half
}

// viewWords is how many words view writes.
func viewWords(n *nest) uint32 { return 2 + 2*uint32(n.rank) }

// four writes four numbers; of negative ones their two's complement.
func (w *infoWriter) four(a, b, c, d int) {
	w.put(uint32(a))
	w.put(uint32(b))
	w.put(uint32(c))
	w.put(uint32(d))
}

// view writes tensor t of a nest.
func (w *infoWriter) view(n *nest, t int) {
	w.put(uint32(n.rank))
	w.put(uint32(n.offset[t]))
	for _, s := range n.shape[:n.rank] {
		w.put(uint32(s))
	}
	for _, s := range n.stride[t][:n.rank] {
		w.put(uint32(s)) // two's complement
	}
}
