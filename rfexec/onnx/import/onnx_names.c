/* An open-addressing table from names to operands, in the arena. Names are borrowed. */
#include <string.h>

#include "rfexec/onnx/import/onnx_import.h"

struct name_row {
    const char *name; /* NULL: free */
    struct rfx_onnx_operand value;
    int32_t type; /* 0: FLOAT */
};

struct rfx_onnx_names {
    struct rfx_arena *arena;
    const struct rfx_onnx_names *outer; /* whose names are seen too; NULL: none */
    struct name_row *rows;
    size_t count, capacity; /* capacity: a power of two */
};

static size_t hash_name(const char *name) {
    uint64_t h = 1469598103934665603u;
    for (; *name != '\0'; name++) h = (h ^ (uint8_t)*name) * 1099511628211u;
    return (size_t)(h ^ (h >> 32));
}

struct rfx_onnx_names *rfx_onnx_names_create(struct rfx_arena *arena) {
    return rfx_onnx_names_within(arena, NULL);
}

struct rfx_onnx_names *rfx_onnx_names_within(struct rfx_arena *arena,
                                             const struct rfx_onnx_names *outer) {
    struct rfx_onnx_names *names = rfx_arena_alloc(arena, 1, sizeof *names);
    if (names == NULL) return NULL;
    names->arena = arena;
    names->outer = outer;
    names->capacity = 64;
    names->rows = rfx_arena_alloc(arena, names->capacity, sizeof *names->rows);
    return names->rows == NULL ? NULL : names;
}

/* The row of `name`, or the free row where it belongs. */
static struct name_row *find_row(struct name_row *rows, size_t capacity, const char *name) {
    size_t i = hash_name(name) & (capacity - 1);
    while (rows[i].name != NULL && strcmp(rows[i].name, name) != 0) i = (i + 1) & (capacity - 1);
    return &rows[i];
}

struct rfx_onnx_operand *rfx_onnx_names_find(const struct rfx_onnx_names *names, const char *name) {
    for (; names != NULL; names = names->outer) {
        struct name_row *row = find_row(names->rows, names->capacity, name);
        if (row->name != NULL) return &row->value;
    }
    return NULL;
}

bool rfx_onnx_names_put(struct rfx_onnx_names *names, const char *name,
                        struct rfx_onnx_operand value) {
    if ((names->count + 1) * 2 > names->capacity) {
        struct name_row *rows = rfx_arena_alloc(names->arena, names->capacity * 2, sizeof *rows);
        if (rows == NULL) return false;
        for (size_t i = 0; i < names->capacity; i++)
            if (names->rows[i].name != NULL)
                *find_row(rows, names->capacity * 2, names->rows[i].name) = names->rows[i];
        names->rows = rows;
        names->capacity *= 2;
    }
    struct name_row *row = find_row(names->rows, names->capacity, name);
    if (row->name == NULL) names->count++;
    row->name = name;
    row->value = value;
    row->type = 0;
    return true;
}

int32_t rfx_onnx_names_type(const struct rfx_onnx_names *names, const char *name) {
    for (; names != NULL; names = names->outer) {
        const struct name_row *row = find_row(names->rows, names->capacity, name);
        if (row->name != NULL) return row->type != 0 ? row->type : RFX_ONNX_FLOAT;
    }
    return RFX_ONNX_FLOAT;
}

void rfx_onnx_names_set_type(struct rfx_onnx_names *names, const char *name, int32_t type) {
    struct name_row *row = find_row(names->rows, names->capacity, name);
    if (row->name != NULL) row->type = type;
}
