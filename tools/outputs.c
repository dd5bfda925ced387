/* Hashes, files and classes of outputs; see outputs.h. */
#include "outputs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "layers/checked.h"
#include "report.h"
#include "rfexec/image_write.h"
#include "rfexec/output_write.h"

enum { DEFAULT_TOP = 5, MAX_LABEL_BYTES = 16 << 20 };

static bool is_vector(const struct rfx_tensor *tensor) {
    int64_t longest = 1;
    for (int i = 0; i < tensor->shape.rank; ++i)
        longest = rfx_max_i64(longest, tensor->shape.dims[i]);
    return longest > 1 && longest == tensor->elems;
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcasecmp(text + n - m, end) == 0;
}

int rfx_cli_outputs_check(const struct rfx_graph *graph, const struct rfx_cli_options *options) {
    const struct rfx_tensor *first = &graph->nodes[graph->outputs[0].node].out;
    bool classes_asked = options->top > 0 || options->labels != NULL;
    if (classes_asked && !is_vector(first)) {
        char shape[96];
        rfx_cli_message("--top and --labels need a vector of classes; output '%s' is %s",
                        graph->outputs[0].name, rfx_human_shape(&first->shape, shape));
        return RFX_EXIT_USAGE;
    }
    if (options->output == NULL || ends_with(options->output, ".npy")) return RFX_EXIT_DONE;
    if (!ends_with(options->output, ".png")) {
        rfx_cli_message("-o '%s': the name must end in .npy or .png", options->output);
        return RFX_EXIT_USAGE;
    }
    bool picture = first->layout == RFX_LAYOUT_NHWC && (first->c == 1 || first->c == 3);
    if (graph->n_outputs == 1 && picture) return RFX_EXIT_DONE;
    rfx_cli_message("-o '%s': a PNG takes one output of 1 or 3 channels; use .npy",
                    options->output);
    return RFX_EXIT_USAGE;
}

static enum rfx_status alloc_chunk(struct rfx_memory *mem, float **out, struct rfx_error *err) {
    *out = rfx_memory_alloc(mem, RFX_CLI_CHUNK * sizeof **out);
    return *out != NULL ? RFX_OK
                        : rfx_memory_fail(mem, "output chunk", RFX_CLI_CHUNK * sizeof **out, err);
}

enum rfx_status rfx_cli_output_hash(const struct rfx_session *session, struct rfx_memory *mem,
                                    int k, char hash[RFX_FINGERPRINT_CHARS],
                                    struct rfx_error *err) {
    struct rfx_fingerprint fp = {0, 0};
    float *chunk = NULL;
    int64_t elems = rfx_session_output_tensor(session, k)->elems;
    enum rfx_status status = alloc_chunk(mem, &chunk, err);
    for (int64_t i = 0; status == RFX_OK && i < elems; i += RFX_CLI_CHUNK) {
        int64_t count = rfx_min_i64(RFX_CLI_CHUNK, elems - i);
        rfx_session_output_read(session, k, i, count, chunk);
        rfx_fingerprint_add(&fp, i, chunk, count);
    }
    if (status == RFX_OK) rfx_fingerprint_hex(&fp, hash);
    rfx_memory_release(mem, chunk);
    return status;
}

static enum rfx_status write_npy(const struct rfx_session *session, struct rfx_memory *mem, int k,
                                 const char *path, struct rfx_error *err) {
    struct rfx_npy_writer *writer = NULL;
    const struct rfx_tensor *tensor = rfx_session_output_tensor(session, k);
    float *chunk = NULL;
    enum rfx_status status = alloc_chunk(mem, &chunk, err);
    if (status == RFX_OK) status = rfx_npy_write_open(mem, path, &tensor->shape, &writer, err);
    for (int64_t i = 0; status == RFX_OK && i < tensor->elems; i += RFX_CLI_CHUNK) {
        int64_t count = rfx_min_i64(RFX_CLI_CHUNK, tensor->elems - i);
        rfx_session_output_read(session, k, i, count, chunk);
        status = rfx_npy_write_append(writer, chunk, (size_t)count, err);
    }
    if (status == RFX_OK) status = rfx_npy_write_commit(writer, err);
    rfx_npy_write_free(writer);
    rfx_memory_release(mem, chunk);
    return status;
}

/* Smallest and largest finite value of output 0. */
static void find_extremes(const struct rfx_session *session, float *chunk, float *lo, float *hi) {
    int64_t elems = rfx_session_output_tensor(session, 0)->elems;
    *lo = INFINITY;
    *hi = -INFINITY;
    for (int64_t i = 0; i < elems; i += RFX_CLI_CHUNK) {
        int64_t count = rfx_min_i64(RFX_CLI_CHUNK, elems - i);
        rfx_session_output_read(session, 0, i, count, chunk);
        for (int64_t j = 0; j < count; ++j) {
            if (!isfinite(chunk[j])) continue;
            if (chunk[j] < *lo) *lo = chunk[j];
            if (chunk[j] > *hi) *hi = chunk[j];
        }
    }
    if (!(*lo < *hi)) {
        *lo = isfinite(*lo) ? *lo : 0.0F;
        *hi = *lo + 1.0F;
    }
}

static enum rfx_status write_png(const struct rfx_session *session, struct rfx_memory *mem,
                                 const char *path, struct rfx_error *err) {
    const struct rfx_tensor *t = rfx_session_output_tensor(session, 0);
    struct rfx_png_writer *writer = NULL;
    float *chunk = NULL, lo, hi;
    size_t row_bytes = (size_t)(t->w * t->c) * sizeof(float);
    float *row = rfx_memory_alloc(mem, 2 * row_bytes); /* [w, c], then one plane's row [w] */
    enum rfx_status status = alloc_chunk(mem, &chunk, err);
    if (row == NULL) status = rfx_memory_fail(mem, "picture row", 2 * row_bytes, err);
    if (status == RFX_OK)
        status = rfx_png_write_open(mem, path, t->h, t->w, (int)t->c, &writer, err);
    if (status == RFX_OK) find_extremes(session, chunk, &lo, &hi);
    for (int64_t y = 0; status == RFX_OK && y < t->h; ++y) {
        float *plane = row + t->w * t->c;
        for (int64_t c = 0; c < t->c; ++c) {
            rfx_session_output_read(session, 0, (c * t->h + y) * t->w, t->w, plane);
            for (int64_t x = 0; x < t->w; ++x) row[x * t->c + c] = plane[x];
        }
        status = rfx_png_write_floats(writer, row, t->c, lo, hi, err);
    }
    if (status == RFX_OK) status = rfx_png_write_commit(writer, err);
    rfx_png_write_free(writer);
    rfx_memory_release(mem, chunk);
    rfx_memory_release(mem, row);
    return status;
}

enum rfx_status rfx_cli_outputs_write(const struct rfx_session *session, struct rfx_memory *mem,
                                      const char *path, struct rfx_error *err) {
    int count = rfx_session_output_count(session);
    if (ends_with(path, ".png")) return write_png(session, mem, path, err);
    if (count == 1) return write_npy(session, mem, 0, path, err);
    enum rfx_status status = RFX_OK;
    for (int k = 0; k < count && status == RFX_OK; ++k) {
        char name[4096];
        int n = snprintf(name, sizeof name, "%.*s.%s.npy", (int)strlen(path) - 4, path,
                         rfx_session_output_name(session, k));
        if (n < 0 || (size_t)n >= sizeof name)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "file name too long: '%.200s...'",
                            path);
        for (char *p = name + strlen(path) - 4; *p != '\0'; ++p)
            if (*p == '/') *p = '_'; /* output names may look like paths */
        status = write_npy(session, mem, k, name, err);
    }
    return status;
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
        for (int i = 0; i < classes->count; ++i)
            if (classes->items[i].index == line) classes->items[i].label = p;
        p = next;
    }
    return RFX_OK;
}

enum rfx_status rfx_cli_classes_find(const struct rfx_session *session, struct rfx_memory *mem,
                                     const struct rfx_cli_options *options,
                                     struct rfx_cli_classes *classes, struct rfx_error *err) {
    const struct rfx_tensor *tensor = rfx_session_output_tensor(session, 0);
    if (!is_vector(tensor)) return RFX_OK;
    int64_t top = options->top > 0 ? options->top : DEFAULT_TOP;
    int capacity = (int)rfx_min_i64(top, tensor->elems);
    float *chunk = NULL;
    classes->mem = mem;
    classes->items = rfx_memory_calloc(mem, (size_t)capacity, sizeof *classes->items);
    if (classes->items == NULL)
        return rfx_memory_fail(mem, "classes", (size_t)capacity * sizeof *classes->items, err);
    enum rfx_status status = alloc_chunk(mem, &chunk, err);
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
    rfx_memory_release(classes->mem, classes->items);
    rfx_memory_release(classes->mem, classes->labels);
}
