/* Classes of an output vector; see classes.h. */
#include "tools/cli/classes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/printable.h"

/* MAX_LABEL_BYTES: largest label file in bytes; a larger file is not a list of class names. */
enum { DEFAULT_TOP = 5, MAX_LABEL_BYTES = 16 << 20 };

bool rfx_cli_is_vector(const struct rfx_tensor *tensor) {
    int64_t longest = 1;
    for (int i = 0; i < tensor->shape.rank; ++i)
        longest = rfx_max_i64(longest, tensor->shape.dims[i]);
    return longest > 1 && longest == tensor->elems;
}

bool rfx_cli_has_classes(const struct rfx_graph *graph) {
    for (int k = 0; k < graph->n_outputs; ++k)
        if (graph->outputs[k].stored.head != NULL) return false; /* scores of a detector's cells */
    return rfx_cli_is_vector(&graph->nodes[graph->outputs[0].node].out);
}

/* Inserts a class into the list. The list is sorted by value, largest first; equal values are
 * sorted by index. */
static void insert_class(struct rfx_cli_classes *classes, int64_t index, float value) {
    int at = classes->count;
    for (; at > 0; --at) {
        const struct rfx_cli_class *before = &classes->items[at - 1];
        if (!(before->value < value || (before->value == value && before->index > index))) break;
    }
    if (at >= classes->capacity) return;
    int last = classes->count < classes->capacity ? classes->count++ : classes->capacity - 1;
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

enum rfx_status rfx_cli_classes_begin(struct rfx_memory *mem, const struct rfx_graph *graph,
                                      const struct rfx_cli_report_options *options,
                                      struct rfx_cli_classes *classes, struct rfx_error *err) {
    if (!rfx_cli_has_classes(graph)) return RFX_OK;
    int64_t elems = graph->nodes[graph->outputs[0].node].out.elems;
    int capacity = (int)rfx_min_i64(options->top > 0 ? options->top : DEFAULT_TOP, elems);
    *classes = (struct rfx_cli_classes){.mem = mem, .capacity = capacity};
    classes->items = rfx_memory_calloc(mem, (size_t)capacity, sizeof *classes->items);
    if (classes->items != NULL) return RFX_OK;
    return rfx_memory_fail(mem, "classes", (size_t)capacity * sizeof *classes->items, err);
}

void rfx_cli_classes_take(struct rfx_cli_classes *classes, const struct rfx_end *end,
                          struct rfx_rect rect, const struct rfx_view *view) {
    if (classes->capacity == 0) return;
    for (int64_t y = rect.y0; y < rect.y1; ++y)
        for (int64_t x = rect.x0; x < rect.x1; ++x) {
            const float *pixel = rfx_view_f32_at(view, y, x);
            int64_t first = end->at.first + y * end->at.row_step + x * end->at.column_step;
            for (int64_t c = 0; c < end->channels; ++c)
                insert_class(classes, first + c * end->at.channel_step, rfx_one_nan(pixel[c]));
        }
}

enum rfx_status rfx_cli_classes_finish(const struct rfx_cli_report_options *options,
                                       struct rfx_cli_classes *classes, struct rfx_error *err) {
    if (classes->capacity == 0 || options->labels == NULL) return RFX_OK;
    return read_labels(options->labels, classes, err);
}

void rfx_cli_classes_free(struct rfx_cli_classes *classes) {
    if (classes->mem == NULL) return;
    for (int i = 0; i < classes->count; ++i)
        rfx_memory_release(classes->mem, classes->items[i].label);
    rfx_memory_release(classes->mem, classes->items);
    rfx_memory_release(classes->mem, classes->labels);
}
