// What the kernels that walk tensors element by element share: how the work is cut
// up, and where in each tensor an invocation begins. walk.go writes the words, in
// fours, because a driver that runs on the CPU reads four uniform words nearly as fast
// as one.
//
// The including file defines TENSORS, 4 at most, and WALK, the number of the first of
// these fours:
//
//	how (below), run, items, length of the innermost axis
//	of each tensor, where its first item begins
//	of each tensor, the step from one single element to the next
//	of each axis, the innermost first: extent, magic number and shift (see quotient),
//	  how far a step goes on the innermost axis, and the strides of the tensors
//
// how holds the number of axes (4 bits), a bit for each tensor that has one element for
// a whole run of blocks (4), a bit for blocks, and the number of elements left over (2).
//
// An invocation has one item. It is a run along the innermost axis: of blocks, four adjacent elements that
// are read and written at once, or of single elements. In blocks, offsets, strides and
// lengths count blocks, but for the tensors with one element for a run. What is
// left over of a single axis in blocks goes with item 0.
//
// A driver that runs on the CPU executes both sides of every condition and each loop
// once at least, with lanes switched off, and looks at each lane of each access. So
// nothing but accesses, of which there are four times fewer with blocks, belongs in
// the innermost loop, and no division belongs anywhere.

// Before its first use, or gl_WorkGroupSize is 1.
layout(local_size_x = 64, local_size_x_id = 0) in;

layout(set = 0, binding = 0, std430) readonly buffer Info4 { uvec4 info4[]; };

// Where the item begins in each tensor.
uint at[TENSORS];

uvec4 head, steps;
bool blocks; // whether items are runs of blocks

// item is that of the invocation. A grid holds less than twice the items, of which there
// are less than 1.5·10⁹, so it does not wrap. Those from head.z on do not exist.
uint item() {
    head = info4[WALK];
    steps = info4[WALK + 2u];
    blocks = (head.x & 0x100u) != 0u;
    return linearGroup() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
}

// splat tells whether tensor t has one element for a run of blocks.
bool splat(uint t) { return ((head.x >> (4u + t)) & 1u) != 0u; }

// quotient divides by a constant (Granlund and Montgomery, "Division by invariant
// integers using multiplication", PLDI 1994), exactly for i below 2³¹.
uint quotient(uint i, uint magic, uint shift) {
    uint high, low;
    umulExtended(i, magic, high, low);
    return high >> shift;
}

// walk finds item i and tells how long its run is.
uint walk(uint i) {
    uvec4 first = info4[WALK + 1u];
    [[unroll]] for (uint t = 0u; t < TENSORS; t++) {
        at[t] = first[t];
    }
    uint begin = 0u;
    uint axes = head.x & 15u;
    for (uint d = 0u; d < axes; d++) {
        uvec4 axis = info4[WALK + 3u + 2u * d];
        uvec4 strides = info4[WALK + 4u + 2u * d];
        uint rest = quotient(i, axis.y, axis.z);
        uint c = i - rest * axis.x;
        i = rest;
        begin += c * axis.w;
        [[unroll]] for (uint t = 0u; t < TENSORS; t++) {
            at[t] += c * strides[t];
        }
    }
    return min(head.y, head.w - begin);
}

// singles is how many single elements item i has beside its blocks, or is made of,
// given its run. It leads to where they begin.
uint singles(uint i, uint run) {
    if (!blocks) {
        return run;
    }
    [[unroll]] for (uint t = 0u; t < TENSORS; t++) {
        at[t] = splat(t) ? at[t] : 4u * (at[t] + head.w);
    }
    return i == 0u ? head.x >> 9 : 0u;
}
