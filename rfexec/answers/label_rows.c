/* Thresholds, largest channels and labels of rows; see label_rows.h. */
#include "rfexec/answers/label_rows.h"

#include <inttypes.h>
#include <math.h>

enum rfx_label_source rfx_label_source_of(const struct rfx_output_format *format,
                                          const struct rfx_tensor *map) {
    if (format->answer.n_thresholds > 0) return RFX_LABELS_THRESHOLD;
    if (map->c > 1) return RFX_LABELS_LARGEST_CHANNEL;
    return rfx_output_sample(format) != RFX_TYPE_FLOAT32 ? RFX_LABELS_GIVEN : RFX_LABELS_NONE;
}

static bool has_scores(enum rfx_label_source source) {
    return source == RFX_LABELS_LARGEST_CHANNEL || source == RFX_LABELS_THRESHOLD;
}

enum rfx_status rfx_label_thresholds_check(const struct rfx_answer_options *options,
                                           const struct rfx_tensor *map, const char *path,
                                           struct rfx_error *err) {
    int n = options->n_thresholds;
    if (n <= 1 || n == map->c) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "%s: %d thresholds for a map of %" PRId64
                    " channels: give one for all "
                    "channels, or one for each",
                    path, n, map->c);
}

enum rfx_status rfx_label_thresholds_copy(struct rfx_memory *mem,
                                          const struct rfx_answer_options *options,
                                          int64_t channels, float **out, struct rfx_error *err) {
    size_t bytes = (size_t)channels * sizeof **out;
    float *copy = rfx_memory_alloc(mem, bytes);
    if (copy == NULL) return rfx_memory_fail(mem, "thresholds", bytes, err);
    for (int64_t i = 0; i < channels; i++)
        copy[i] = options->thresholds[options->n_thresholds > 1 ? i : 0];
    *out = copy;
    return RFX_OK;
}

static size_t rows_bytes(const struct rfx_tensor *map, enum rfx_label_source source) {
    size_t floats = (size_t)(map->w * (has_scores(source) ? map->c + 1 : map->c));
    return (size_t)map->w * sizeof(int64_t) + floats * sizeof(float);
}

size_t rfx_label_rows_bytes(const struct rfx_output_format *format, const struct rfx_tensor *map) {
    return (size_t)map->c * sizeof(float) + rows_bytes(map, rfx_label_source_of(format, map));
}

enum rfx_status rfx_label_rows_open(struct rfx_label_rows *rows, struct rfx_memory *mem,
                                    const struct rfx_output_format *format,
                                    const struct rfx_tensor *map, struct rfx_error *err) {
    size_t w = (size_t)map->w, c = (size_t)map->c;
    *rows = (struct rfx_label_rows){.mem = mem,
                                    .source = rfx_label_source_of(format, map),
                                    .sample = rfx_output_sample(format),
                                    .all_labels = format->answer.all_labels,
                                    .w = map->w,
                                    .channels = map->c,
                                    .n = 1};
    if (rows->source == RFX_LABELS_THRESHOLD) rows->n = (int)map->c;
    rows->labels = rfx_memory_alloc(mem, w * sizeof *rows->labels);
    rows->values = rfx_memory_alloc(mem, w * c * sizeof *rows->values);
    bool enough = rows->labels != NULL && rows->values != NULL;
    if (has_scores(rows->source)) {
        rows->scores = rfx_memory_alloc(mem, w * sizeof *rows->scores);
        enough = enough && rows->scores != NULL;
    }
    if (!enough) return rfx_memory_fail(mem, "rows of labels", rows_bytes(map, rows->source), err);
    if (rows->source != RFX_LABELS_THRESHOLD) return RFX_OK;
    return rfx_label_thresholds_copy(mem, &format->answer, map->c, &rows->thresholds, err);
}

void rfx_label_rows_load(struct rfx_label_rows *rows, const void *samples) {
    if (rows->source != RFX_LABELS_GIVEN || rows->sample != RFX_TYPE_INT32) {
        rfx_type_load(rows->sample, samples, rows->w * rows->channels, rows->values);
        return;
    }
    for (int64_t x = 0; x < rows->w; x++) rows->labels[x] = ((const int32_t *)samples)[x];
}

/* Converts a row of labels, which rfexec computes as floats or as 32-bit integers. */
static void find_given(struct rfx_label_rows *rows) {
    int64_t none = rows->all_labels ? RFX_NO_LABEL : 0;
    bool wide = rows->sample == RFX_TYPE_INT32;
    for (int64_t x = 0; x < rows->w; x++) {
        int64_t label = wide ? rows->labels[x] : (int64_t)rows->values[x];
        rows->labels[x] = label == none ? RFX_NO_LABEL : label;
    }
}

/* Finds for each pixel the first channel of the largest value; none if a value is NaN. */
static void find_largest(struct rfx_label_rows *rows) {
    int64_t c = rows->channels, first = rows->all_labels ? 0 : 1;
    for (int64_t x = 0; x < rows->w; x++) {
        const float *pixel = rows->values + x * c;
        int64_t best = 0;
        bool missing = false;
        for (int64_t k = 0; k < c; k++) {
            missing = missing || isnan(pixel[k]);
            if (pixel[k] > pixel[best]) best = k;
        }
        rows->labels[x] = missing || best < first ? RFX_NO_LABEL : best;
        rows->scores[x] = pixel[best];
    }
}

/* Marks the pixels of one channel that are above the threshold. */
static void find_above(struct rfx_label_rows *rows, int channel) {
    float threshold = rows->thresholds[channel];
    const float *value = rows->values + channel;
    for (int64_t x = 0; x < rows->w; x++, value += rows->channels) {
        rows->labels[x] = *value > threshold ? channel : RFX_NO_LABEL;
        rows->scores[x] = *value;
    }
}

void rfx_label_rows_find(struct rfx_label_rows *rows, int i) {
    if (rows->source == RFX_LABELS_GIVEN) find_given(rows);
    if (rows->source == RFX_LABELS_LARGEST_CHANNEL) find_largest(rows);
    if (rows->source == RFX_LABELS_THRESHOLD) find_above(rows, i);
}

void rfx_label_rows_close(struct rfx_label_rows *rows) {
    if (rows->mem == NULL) return;
    rfx_memory_release(rows->mem, rows->thresholds);
    rfx_memory_release(rows->mem, rows->values);
    rfx_memory_release(rows->mem, rows->scores);
    rfx_memory_release(rows->mem, rows->labels);
    *rows = (struct rfx_label_rows){0};
}
