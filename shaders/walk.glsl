// What the kernels that walk tensors element by element share: how the work is cut
// up, and where in each tensor an invocation begins. walk.go writes the words, in
// fours, because a driver that runs on the CPU reads four uniform words nearly as fast
// as one.
//
// The including file defines TENSORS, 4 at most, and WALK, the number of the first of
// these fours:
//
//	groups, items of a group, items of blocks, items of single elements
//	run and length of the blocks, run and length of the single elements
//	splat, axes, 0, 0: bit t of splat is set where tensor t has one element for a
//	  whole run of blocks
//	of each tensor, its first block, or element where it is splat
//	of each tensor, its first single element
//	of each tensor, the step from one single element to the next
//	of each axis, the innermost first: extent, magic number and shift (see quotient),
//	  how far a step goes on the innermost axis, and the strides of the tensors
//
// An item is a run along the innermost axis: of blocks, four adjacent elements that
// are read and written at once, or of single elements. A kernel does all its blocks
// before its single elements; most launches have only one kind, and contiguous ones
// whose length is no multiple of four up to three single elements besides.
//
// A driver that runs on the CPU executes both sides of every condition and each loop
// once at least, with lanes switched off, and looks at each lane of each access. So
// nothing but accesses, of which there are four times fewer with blocks, belongs in
// the innermost loop, and no division belongs anywhere.

layout(set = 0, binding = 0, std430) readonly buffer Info4 { uvec4 info4[]; };

const uint BLOCKS = 0u;
const uint SINGLES = 1u;

// Where an item begins in each tensor.
uint at[TENSORS];

// quotient divides by a constant (Granlund and Montgomery, "Division by invariant
// integers using multiplication", PLDI 1994), exactly for i below 2³¹.
uint quotient(uint i, uint magic, uint shift) {
    uint high, low;
    umulExtended(i, magic, high, low);
    return high >> shift;
}

// walk finds item i of a kind and tells how long its run is.
uint walk(uint i, uint kind) {
    uvec4 first = info4[WALK + 3u + kind];
    [[unroll]] for (uint t = 0u; t < TENSORS; t++) {
        at[t] = first[t];
    }
    uint begin = 0u;
    uint axes = info4[WALK + 2u].y;
    for (uint d = 0u; d < axes; d++) {
        uvec4 axis = info4[WALK + 6u + 2u * d];
        uvec4 strides = info4[WALK + 7u + 2u * d];
        uint rest = quotient(i, axis.y, axis.z);
        uint c = i - rest * axis.x;
        i = rest;
        begin += c * axis.w;
        [[unroll]] for (uint t = 0u; t < TENSORS; t++) {
            at[t] += c * strides[t];
        }
    }
    uvec4 size = info4[WALK + 1u];
    return kind == BLOCKS ? min(size.x, size.y - begin) : min(size.z, size.w - begin);
}
