#include "state.h"

#include <stdlib.h>
#include <string.h>

// Numbers of the SPIR-V specification, version 1.6.
enum {
    ENTRY_POINT = 15, EXECUTION_MODE = 16, TYPE_BOOL = 20, TYPE_INT = 21, TYPE_FLOAT = 22, TYPE_VECTOR = 23, TYPE_MATRIX = 24,
    TYPE_ARRAY = 28, TYPE_STRUCT = 30, TYPE_POINTER = 32, CONSTANT = 43, CONSTANT_COMPOSITE = 44,
    SPEC_CONSTANT = 50, SPEC_CONSTANT_COMPOSITE = 51, SPEC_CONSTANT_OP = 52, VARIABLE = 59, DECORATE = 71, COMPOSITE_EXTRACT = 81, ADD = 128, SUBTRACT = 130,
    MULTIPLY = 132, UNSIGNED_DIVIDE = 134, EXECUTION_MODE_ID = 331,
    LOCAL_SIZE = 17, LOCAL_SIZE_ID = 38, SPEC_ID = 1, BUILT_IN = 11, WORKGROUP_SIZE = 25, WORKGROUP_STORAGE = 4,
};

// What is known of an id.
typedef struct {
    uint32_t spec, has_spec;
    uint32_t value, has_value;  // constants of 32 bits
    uint32_t part[3], parts;    // composites
    uint64_t bytes;             // types; of what a pointer points at
    uint32_t has_bytes, shared; // shared: a pointer to workgroup memory
} id_info;

static int specialized(const VcSpecializationInfo *spec, uint32_t id, uint32_t *value) {
    for (uint32_t i = 0; spec && i < spec->mapEntryCount; i++) {
        const VcSpecializationMapEntry *e = &spec->pMapEntries[i];
        if (e->constantID != id || e->size != 4 || e->offset + e->size > spec->dataSize) continue;
        memcpy(value, (const char *)spec->pData + e->offset, 4);
        return 1;
    }
    return 0;
}

static int entry_is(const uint32_t *w, uint32_t n, const char *entry) {
    const char *name = (const char *)w; // little endian, as every driver's host
    const size_t room = n * 4, length = strlen(entry);
    return length < room && !memcmp(name, entry, length + 1);
}

int sh_measure(const uint32_t *code, size_t words, const char *entry, const VcSpecializationInfo *spec, uint32_t size[3], uint64_t *shared) {
    *shared = 0;
    if (words < 5 || code[3] > 1 << 22) return 0;
    const uint32_t bound = code[3];
    id_info *ids = calloc((size_t)bound + 1, sizeof *ids);
    if (!ids) return 0;
    uint32_t main = 0, literal[3] = {0}, size_ids[3] = {0}, builtin = 0;
    int known = 0, has_literal = 0, has_ids = 0;
#define ID(i) (w[i] < bound ? &ids[w[i]] : &ids[bound])
    for (size_t at = 5; at < words;) {
        const uint32_t n = code[at] >> 16, op = code[at] & 0xffff, *w = code + at + 1;
        if (n == 0 || n > words - at) goto done;
        const uint32_t operands = n - 1;
        at += n;
        if (operands < 1) continue;
        switch (op) {
        case ENTRY_POINT:
            if (operands >= 3 && entry_is(w + 2, operands - 2, entry)) main = w[1];
            break;
        case EXECUTION_MODE:
            if (operands >= 5 && w[0] == main && w[1] == LOCAL_SIZE) memcpy(literal, w + 2, sizeof literal), has_literal = 1;
            break;
        case EXECUTION_MODE_ID:
            if (operands >= 5 && w[0] == main && w[1] == LOCAL_SIZE_ID) memcpy(size_ids, w + 2, sizeof size_ids), has_ids = 1;
            break;
        case DECORATE:
            if (operands >= 3 && w[1] == SPEC_ID) ID(0)->spec = w[2], ID(0)->has_spec = 1;
            if (operands >= 3 && w[1] == BUILT_IN && w[2] == WORKGROUP_SIZE) builtin = w[0];
            break;
        case TYPE_BOOL:
            ID(0)->bytes = 4, ID(0)->has_bytes = 1;
            break;
        case TYPE_INT:
        case TYPE_FLOAT:
            if (operands >= 2) ID(0)->bytes = w[1] / 8, ID(0)->has_bytes = 1;
            break;
        case TYPE_VECTOR:
        case TYPE_MATRIX:
            if (operands >= 3) ID(0)->bytes = ID(1)->bytes * w[2], ID(0)->has_bytes = ID(1)->has_bytes;
            break;
        case TYPE_ARRAY:
            if (operands >= 3) ID(0)->bytes = ID(1)->bytes * ID(2)->value, ID(0)->has_bytes = ID(1)->has_bytes && ID(2)->has_value;
            break;
        case TYPE_STRUCT:
            ID(0)->has_bytes = 1;
            for (uint32_t i = 1; i < operands; i++) {
                ID(0)->bytes += ID(i)->bytes;
                if (!ID(i)->has_bytes) ID(0)->has_bytes = 0;
            }
            break;
        case TYPE_POINTER:
            if (operands >= 3 && w[1] == WORKGROUP_STORAGE) {
                ID(0)->bytes = ID(2)->bytes;
                ID(0)->has_bytes = ID(2)->has_bytes;
                ID(0)->shared = 1;
            }
            break;
        case VARIABLE:
            if (operands >= 3 && w[2] == WORKGROUP_STORAGE && ID(0)->shared && ID(0)->has_bytes) *shared += ID(0)->bytes;
            break;
        case CONSTANT:
        case SPEC_CONSTANT:
            if (operands == 3) {
                ID(1)->value = w[2], ID(1)->has_value = 1;
                if (op == SPEC_CONSTANT && ID(1)->has_spec) specialized(spec, ID(1)->spec, &ID(1)->value);
            }
            break;
        case SPEC_CONSTANT_OP:
            if (operands == 5 && w[2] == COMPOSITE_EXTRACT) {
                if (w[4] < ID(3)->parts && ID(3)->part[w[4]] < bound) {
                    const id_info *part = &ids[ID(3)->part[w[4]]];
                    ID(1)->value = part->value, ID(1)->has_value = part->has_value;
                }
            } else if (operands == 5 && ID(3)->has_value && ID(4)->has_value) {
                const uint32_t a = ID(3)->value, b = ID(4)->value;
                id_info *out = ID(1);
                out->has_value = 1;
                switch (w[2]) {
                case ADD: out->value = a + b; break;
                case SUBTRACT: out->value = a - b; break;
                case MULTIPLY: out->value = a * b; break;
                case UNSIGNED_DIVIDE: out->value = b ? a / b : 0; break;
                default: out->has_value = 0;
                }
            }
            break;
        case CONSTANT_COMPOSITE:
        case SPEC_CONSTANT_COMPOSITE:
            if (operands == 5) memcpy(ID(1)->part, w + 2, sizeof ID(1)->part), ID(1)->parts = 3;
            break;
        }
    }
#undef ID
    if (builtin && builtin < bound && ids[builtin].parts == 3) {
        memcpy(size_ids, ids[builtin].part, sizeof size_ids);
        has_ids = 1;
    }
    if (!has_ids) {
        memcpy(size, literal, sizeof literal);
        known = has_literal;
        goto done;
    }
    for (int i = 0; i < 3; i++) {
        if (size_ids[i] >= bound || !ids[size_ids[i]].has_value) goto done;
        size[i] = ids[size_ids[i]].value;
    }
    known = 1;
done:
    free(ids);
    return known;
}
