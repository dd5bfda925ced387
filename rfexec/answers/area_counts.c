/* Tables for each area, and one of pairs of an area and a label; see area_counts.h. */
#include "rfexec/answers/area_counts.h"

#include <inttypes.h>

#include "layers/core/checked.h"
#include "layers/kernels/exact_sum.h"
#include "rfexec/answers/areas_file.h"
#include "rfexec/answers/label_counts.h"
#include "rfexec/answers/value_bins.h"

#define LEAST_PAIRS INT64_C(1024)
#define MOST_PAIRS (INT64_C(1) << 24)

struct item {
    int64_t pixels;
    int32_t slot; /* of the exact sums; -1: none */
};

struct rfx_area_counts {
    struct rfx_memory *mem;
    struct rfx_area_list list;
    int64_t n, c;
    struct item *items;
    const struct rfx_area_span *spans; /* of the row */
    int64_t n_spans;
    struct rfx_area_channel *channels; /* [n, c]; NULL: the map has labels */
    struct rfx_answer_bins bins;
    int64_t *in_bins; /* [n, c, counts of bins]; NULL: none are wanted */
    int32_t *owners;  /* the area of each slot; -1: none */
    int32_t *unused;  /* slots without an owner */
    int64_t slots, n_unused;
    unsigned char *sums;            /* an accumulator of c channels for each slot (exact_sum.h) */
    struct rfx_label_counts *pairs; /* of labels area * 2^32 + label */
    int64_t most_pairs;
    int64_t next, n_pairs; /* of those that are listed */
    const struct rfx_label_count *listed;
};

static size_t bytes_of(int64_t n, int64_t slots, int64_t c, enum rfx_label_source source,
                       const struct rfx_answer_bins *bins) {
    size_t items = sizeof(struct rfx_area_counts) + (size_t)n * sizeof(struct item);
    if (source == RFX_LABELS_GIVEN) return items;
    size_t counts = (size_t)rfx_value_counts(bins) * sizeof(int64_t);
    return items + (size_t)(n * c) * (sizeof(struct rfx_area_channel) + counts) +
           (size_t)slots * (2 * sizeof(int32_t) + rfx_exact_sum_bytes(c));
}

size_t rfx_area_counts_bytes(const struct rfx_output_format *format, const struct rfx_tensor *map) {
    enum rfx_label_source source = rfx_label_source_of(format, map);
    size_t n;
    if (format->answer.most_bytes > 0) return format->answer.most_bytes;
    size_t list = rfx_area_list_bytes(format->answer.within, &n);
    return list + bytes_of((int64_t)n, (int64_t)n, map->c, source, &format->answer.bins) +
           RFX_ANSWER_BYTES;
}

static enum rfx_status too_small(size_t bytes, size_t most, struct rfx_error *err) {
    return rfx_fail(err, RFX_STATUS_BUDGET_IMPOSSIBLE,
                    "counts of areas: %zu bytes are needed, --answer-memory is %zu", bytes, most);
}

/* Makes the table of pairs as large as the memory allows that is left of `most` bytes. */
static enum rfx_status make_pairs(struct rfx_area_counts *counts, size_t used, size_t most,
                                  struct rfx_error *err) {
    int64_t pairs = LEAST_PAIRS;
    if (most == 0) most = used + RFX_ANSWER_BYTES;
    while (pairs < MOST_PAIRS && used + rfx_label_counts_bytes(2 * pairs) <= most) pairs *= 2;
    if (used + rfx_label_counts_bytes(pairs) > most)
        return too_small(used + rfx_label_counts_bytes(pairs), most, err);
    counts->most_pairs = pairs;
    return rfx_label_counts_create(counts->mem, pairs, &counts->pairs, err);
}

static enum rfx_status make_channels(struct rfx_area_counts *counts, struct rfx_error *err) {
    struct rfx_memory *mem = counts->mem;
    int64_t all = counts->n * counts->c;
    size_t sums = (size_t)counts->slots * rfx_exact_sum_bytes(counts->c);
    counts->channels = rfx_memory_calloc(mem, (size_t)all, sizeof *counts->channels);
    counts->owners = rfx_memory_calloc(mem, (size_t)counts->slots, sizeof *counts->owners);
    counts->unused = rfx_memory_calloc(mem, (size_t)counts->slots, sizeof *counts->unused);
    counts->sums = rfx_memory_alloc(mem, sums);
    if (counts->channels == NULL || counts->owners == NULL || counts->unused == NULL ||
        counts->sums == NULL)
        return rfx_memory_fail(mem, "sums of areas", sums, err);
    size_t bins = (size_t)(all * rfx_value_counts(&counts->bins));
    if (bins > 0) counts->in_bins = rfx_memory_calloc(mem, bins, sizeof *counts->in_bins);
    if (bins > 0 && counts->in_bins == NULL)
        return rfx_memory_fail(mem, "bins of areas", bins * sizeof *counts->in_bins, err);
    for (int64_t i = 0; i < all; i++)
        counts->channels[i] =
            (struct rfx_area_channel){.values = RFX_NO_CHANNEL_VALUES, .mean = NAN};
    for (int64_t i = 0; i < counts->slots; i++) {
        counts->owners[i] = -1;
        counts->unused[counts->n_unused++] = (int32_t)i;
    }
    return RFX_OK;
}

static enum rfx_status make_tables(struct rfx_area_counts *counts, enum rfx_label_source source,
                                   size_t most, struct rfx_error *err) {
    counts->n = rfx_areas_count(counts->list.areas);
    counts->slots = rfx_areas_most_at_once(counts->list.areas);
    size_t used =
        counts->list.bytes + bytes_of(counts->n, counts->slots, counts->c, source, &counts->bins);
    if (most > 0 && used > most) return too_small(used, most, err);
    counts->items = rfx_memory_calloc(counts->mem, (size_t)counts->n, sizeof *counts->items);
    if (counts->items == NULL)
        return rfx_memory_fail(counts->mem, "counts of areas",
                               (size_t)counts->n * sizeof *counts->items, err);
    for (int64_t k = 0; k < counts->n; k++) counts->items[k].slot = -1;
    return source == RFX_LABELS_GIVEN ? make_pairs(counts, used, most, err)
                                      : make_channels(counts, err);
}

enum rfx_status rfx_area_counts_open(struct rfx_memory *mem, const struct rfx_output_format *format,
                                     const struct rfx_answer_text *text,
                                     const struct rfx_tensor *map, struct rfx_area_counts **out,
                                     struct rfx_error *err) {
    struct rfx_area_counts *counts = rfx_memory_calloc(mem, 1, sizeof *counts);
    if (counts == NULL) return rfx_memory_fail(mem, "counts of areas", sizeof *counts, err);
    counts->mem = mem;
    counts->c = map->c;
    counts->bins = format->answer.bins;
    enum rfx_status status =
        rfx_area_list_read(&counts->list, mem, &format->answer, text, map, err);
    if (status == RFX_OK)
        status =
            make_tables(counts, rfx_label_source_of(format, map), format->answer.most_bytes, err);
    if (status != RFX_OK) {
        rfx_area_counts_free(counts);
        return status;
    }
    *out = counts;
    return RFX_OK;
}

void rfx_area_counts_begin(struct rfx_area_counts *counts) {
    counts->spans = rfx_areas_row(counts->list.areas, &counts->n_spans);
    for (int64_t i = 0; i < counts->n_spans; i++) {
        const struct rfx_area_span *span = &counts->spans[i];
        counts->items[span->area].pixels += span->x1 - span->x0;
    }
}

/* Counts the labels of a span of a map of labels. */
static enum rfx_status count_pairs(struct rfx_area_counts *counts, const int64_t *labels,
                                   const struct rfx_area_span *span, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int64_t x = span->x0, end; x < span->x1 && status == RFX_OK; x = end) {
        int64_t pair = ((int64_t)span->area << 32) + labels[x];
        for (end = x + 1; end < span->x1 && labels[end] == labels[x];) end++;
        status = rfx_label_counts_add_run(counts->pairs, pair, end - x, err);
    }
    if (status != RFX_STATUS_UNSUPPORTED) return status;
    return rfx_fail(err, RFX_STATUS_BUDGET_IMPOSSIBLE,
                    "the areas have more than %" PRId64
                    " different labels, each counted in each area that has it; raise "
                    "--answer-memory",
                    counts->most_pairs);
}

enum rfx_status rfx_area_counts_labels(struct rfx_area_counts *counts,
                                       const struct rfx_label_rows *rows, struct rfx_error *err) {
    const int64_t *labels = rows->labels;
    enum rfx_status status = RFX_OK;
    for (int64_t i = 0; i < counts->n_spans && status == RFX_OK; i++) {
        const struct rfx_area_span *span = &counts->spans[i];
        if (counts->pairs != NULL) {
            status = count_pairs(counts, labels, span, err);
            continue;
        }
        struct rfx_area_channel *channels = counts->channels + span->area * counts->c;
        for (int64_t x = span->x0; x < span->x1; x++)
            if (labels[x] != RFX_NO_LABEL) channels[labels[x]].pixels++;
    }
    return status;
}

static int64_t *bins_of(const struct rfx_area_counts *counts, int64_t area, int64_t channel) {
    if (counts->in_bins == NULL) return NULL;
    return counts->in_bins + (area * counts->c + channel) * rfx_value_counts(&counts->bins);
}

static void count_bins(struct rfx_area_counts *counts, const struct rfx_area_span *span,
                       const float *values) {
    for (int64_t x = span->x0; x < span->x1; x++)
        for (int64_t k = 0; k < counts->c; k++)
            rfx_value_count(&counts->bins, values[x * counts->c + k],
                            bins_of(counts, span->area, k));
}

void rfx_area_counts_values(struct rfx_area_counts *counts, const float *values) {
    int64_t c = counts->c;
    for (int64_t i = 0; i < counts->n_spans; i++) {
        const struct rfx_area_span *span = &counts->spans[i];
        struct rfx_area_channel *channels = counts->channels + span->area * c;
        const float *value = values + span->x0 * c;
        for (int64_t x = span->x0; x < span->x1; x++)
            for (int64_t k = 0; k < c; k++)
                (void)rfx_channel_values_add(&channels[k].values, *value++);
        if (counts->in_bins != NULL) count_bins(counts, span, values);
    }
}

static void *sums_of(const struct rfx_area_counts *counts, int64_t slot) {
    return counts->sums + (size_t)slot * rfx_exact_sum_bytes(counts->c);
}

/* Gives an area a slot for its sums. */
static void take_slot(struct rfx_area_counts *counts, int32_t area) {
    int32_t slot = counts->unused[--counts->n_unused];
    counts->items[area].slot = slot;
    counts->owners[slot] = area;
    (void)rfx_exact_sum_reset(sums_of(counts, slot), counts->c);
}

/* Sets the means of an area and frees its slot. */
static void finish_area(struct rfx_area_counts *counts, int32_t area) {
    struct item *item = &counts->items[area];
    struct rfx_area_channel *channels = counts->channels + area * counts->c;
    for (int64_t k = 0; k < counts->c; k++) {
        int64_t values = item->pixels - channels[k].values.nan;
        if (values > 0)
            channels[k].mean = rfx_exact_sum_total(sums_of(counts, item->slot), k) / (double)values;
    }
    counts->owners[item->slot] = -1;
    counts->unused[counts->n_unused++] = item->slot;
    item->slot = -1;
}

void rfx_area_counts_sums(struct rfx_area_counts *counts, const float *values) {
    for (int64_t i = 0; i < counts->n_spans; i++) {
        const struct rfx_area_span *span = &counts->spans[i];
        const struct item *item = &counts->items[span->area];
        if (item->slot < 0) take_slot(counts, span->area);
        rfx_exact_sum_add(sums_of(counts, item->slot), values + span->x0 * counts->c,
                          span->x1 - span->x0);
    }
    for (int64_t slot = 0; slot < counts->slots; slot++) {
        int32_t area = counts->owners[slot];
        if (area >= 0 && rfx_areas_is_over(counts->list.areas, area)) finish_area(counts, area);
    }
}

int64_t rfx_area_counts_number(const struct rfx_area_counts *counts) {
    return counts->n;
}

struct rfx_area_count rfx_area_counts_of(const struct rfx_area_counts *counts, int64_t k) {
    return (struct rfx_area_count){
        .number = counts->list.titles[k].number,
        .name = rfx_area_name(&counts->list, k),
        .pixels = counts->items[k].pixels,
        .channels = counts->channels != NULL ? counts->channels + k * counts->c : NULL,
        .bins = bins_of(counts, k, 0)};
}

bool rfx_area_counts_next(struct rfx_area_counts *counts, int64_t k, int64_t *label,
                          int64_t *pixels) {
    if (counts->listed == NULL)
        counts->listed = rfx_label_counts_list(counts->pairs, &counts->n_pairs);
    if (counts->next == counts->n_pairs) return false;
    const struct rfx_label_count *pair = &counts->listed[counts->next];
    *label = pair->label - (k << 32);
    *pixels = pair->pixels;
    if (*label > INT32_MAX) return false; /* of a later area */
    counts->next++;
    return true;
}

void rfx_area_counts_free(struct rfx_area_counts *counts) {
    if (counts == NULL) return;
    rfx_area_list_release(&counts->list);
    rfx_label_counts_free(counts->pairs);
    rfx_memory_release(counts->mem, counts->items);
    rfx_memory_release(counts->mem, counts->channels);
    rfx_memory_release(counts->mem, counts->in_bins);
    rfx_memory_release(counts->mem, counts->owners);
    rfx_memory_release(counts->mem, counts->unused);
    rfx_memory_release(counts->mem, counts->sums);
    rfx_memory_release(counts->mem, counts);
}
