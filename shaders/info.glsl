// What every kernel shares: the info words and the position of a work group in
// a grid that may have been folded from x into y and z. info.go describes the
// words.

layout(set = 0, binding = 0, std430) readonly buffer Info { uint info[]; };

uint linearGroup() {
    return gl_WorkGroupID.x +
           gl_NumWorkGroups.x * (gl_WorkGroupID.y + gl_NumWorkGroups.y * gl_WorkGroupID.z);
}

// Words of a view at word v whose rank is r.
#define VIEW_WORDS(r) (2u + 2u * (r))
#define VIEW_OFFSET(v) info[(v) + 1u]
#define VIEW_SHAPE(v, d) info[(v) + 2u + (d)]
#define VIEW_STRIDE(v, r, d) info[(v) + 2u + (r) + (d)]
