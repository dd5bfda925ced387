/* Classes of an output vector; see classes.h. */
#include "tools/cli/classes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/printable.h"
#include "tools/cli/outputs.h"

/* MAX_LABEL_BYTES: of the file; a larger one is no list of class names. */
enum { DEFAULT_TOP = 5, MAX_LABEL_BYTES = 16 << 20 };

bool rfx_cli_is_vector(const struct rfx_tensor *tensor) {
    int64_t longest = 1;
    for (int i = 0; i < tensor->shape.rank; ++i)
        longest = rfx_max_i64(longest, tensor->shape.dims[i]);
    return longest > 1 && longest == tensor->elems;
}

bool rfx_cli_has_classes(const struct rfx_graph *graph) {
    return rfx_cli_is_vector(&graph->nodes[graph->outputs[0].node].out);
}

/* Inserts into the list that is sorted by falling value; equal values keep their order. */
static void insert_class(struct rfx_cli_classes *classes, int capacity, int64_t index,
                         float value) {
    int at = classes->count;
    while (at > 0 && classes->items[at - 1].value < value) --at;
    if (at >= capacity) return;
    int last = classes->count < capacity ? classes->count++ : capacity - 1;
    memmove(&classes->items[at + 1], &classes->items[at],
            (size_t)(last - at) * sizeof *classes->items);
    classes->items[at] = (struct rfx_cli_class){.index = index, .value = value};
}

static enum rfx_status read_labels(const char *path, struct rfx_cli_classes *classes,
                                   struct rfx_error *err) {
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "labels '%s': %s", path, strerror(errno));
    enum rfx_status status = RFX_OK;
    long bytes = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (bytes < 0 || bytes > MAX_LABEL_BYTES || fseek(file, 0, SEEK_SET) != 0)
        status = rfx_fail(err, RFX_STATUS_MALFORMED, "labels '%s': not a file of up to %d bytes",
                          path, MAX_LABEL_BYTES);
    if (status == RFX_OK) classes->labels = rfx_memory_calloc(classes->mem, (size_t)bytes + 1, 1);
    if (status == RFX_OK && classes->labels == NULL)
        status = rfx_memory_fail(classes->mem, "labels", (size_t)bytes + 1, err);
    if (status == RFX_OK && fread(classes->labels, 1, (size_t)bytes, file) != (size_t)bytes)
        status = rfx_fail(err, RFX_STATUS_IO, "labels '%s': cannot be read", path);
    (void)fclose(file);
    if (status != RFX_OK) return status;
    int64_t line = 0;
    for (char *p = classes->labels; p != NULL && *p != '\0'; ++line) {
        char *next = strchr(p, '\n');
        if (next != NULL) *next++ = '\0';
        p[strcspn(p, "\r")] = '\0';
        for (int i = 0; i < classes->count; ++i) {
            struct rfx_cli_class *item = &classes->items[i];
            if (item->index != line) continue;
            item->label = rfx_printable_copy(classes->mem, p);
            if (item->label == NULL)
                return rfx_memory_fail(classes->mem, "label", strlen(p) + 1, err);
        }
        p = next;
    }
    classes->n_labels = line;
    return RFX_OK;
}

enum rfx_status rfx_cli_classes_find(const struct rfx_session *session, struct rfx_memory *mem,
                                     const struct rfx_cli_options *options,
                                     struct rfx_cli_classes *classes, struct rfx_error *err) {
    const struct rfx_tensor *tensor = rfx_session_output_tensor(session, 0);
    if (!rfx_cli_is_vector(tensor)) return RFX_OK;
    int64_t top = options->top > 0 ? options->top : DEFAULT_TOP;
    int capacity = (int)rfx_min_i64(top, tensor->elems);
    float *chunk = rfx_memory_alloc(mem, RFX_CLI_CHUNK * sizeof *chunk);
    classes->mem = mem;
    classes->items = rfx_memory_calloc(mem, (size_t)capacity, sizeof *classes->items);
    enum rfx_status status = RFX_OK;
    if (classes->items == NULL || chunk == NULL)
        status = rfx_memory_fail(mem, "classes", (size_t)capacity * sizeof *classes->items, err);
    for (int64_t i = 0; status == RFX_OK && i < tensor->elems; i += RFX_CLI_CHUNK) {
        int64_t count = rfx_min_i64(RFX_CLI_CHUNK, tensor->elems - i);
        rfx_session_output_read(session, 0, i, count, chunk);
        for (int64_t j = 0; j < count; ++j) insert_class(classes, capacity, i + j, chunk[j]);
    }
    rfx_memory_release(mem, chunk);
    if (status == RFX_OK && options->labels != NULL)
        status = read_labels(options->labels, classes, err);
    return status;
}

void rfx_cli_classes_free(struct rfx_cli_classes *classes) {
    if (classes->mem == NULL) return;
    for (int i = 0; i < classes->count; ++i)
        rfx_memory_release(classes->mem, classes->items[i].label);
    rfx_memory_release(classes->mem, classes->items);
    rfx_memory_release(classes->mem, classes->labels);
}
