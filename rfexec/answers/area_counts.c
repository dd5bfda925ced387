/* Tables for each area, and one of pairs of an area and a label; see area_counts.h. */
#include "rfexec/answers/area_counts.h"

#include <inttypes.h>

#include "layers/core/checked.h"
#include "layers/kernels/exact_sum.h"
#include "rfexec/answers/area_slots.h"
#include "rfexec/answers/areas_file.h"
#include "rfexec/answers/label_counts.h"
#include "rfexec/answers/value_bins.h"
#include "rfexec/answers/value_quantiles.h"

#define LEAST_PAIRS INT64_C(1024)
#define MOST_PAIRS (INT64_C(1) << 24)

struct rfx_area_counts {
    struct rfx_memory *mem;
    struct rfx_area_list list;
    int64_t n, c;
    int64_t *pixels;                   /* of each area */
    const struct rfx_area_span *spans; /* of the row */
    int64_t n_spans;
    struct rfx_area_channel *channels; /* [n, c]; NULL: the map has labels */
    struct rfx_answer_bins bins;
    int64_t *in_bins;               /* [n, c, counts of bins]; NULL: none are wanted */
    struct rfx_area_slots *slots;   /* NULL: the map has labels */
    unsigned char *sums;            /* an accumulator of c channels for each slot (exact_sum.h) */
    struct rfx_label_counts *pairs; /* of labels area * 2^32 + label */
    int64_t most_pairs;
    int64_t next, n_pairs; /* of those that are listed */
    const struct rfx_label_count *listed;
};

/* Memory of n areas, of which so many are open at a row, without quantiles. */
static size_t bytes_of(int64_t n, int64_t slots, const struct rfx_output_format *format,
                       const struct rfx_tensor *map) {
    size_t items = sizeof(struct rfx_area_counts) + (size_t)n * sizeof(int64_t);
    if (rfx_label_source_of(format, map) == RFX_LABELS_GIVEN) return items;
    size_t counts = (size_t)rfx_value_counts(&format->answer.bins) * sizeof(int64_t);
    return items + (size_t)(n * map->c) * (sizeof(struct rfx_area_channel) + counts) +
           rfx_area_slots_bytes(n, slots) + (size_t)slots * rfx_exact_sum_bytes(map->c);
}

size_t rfx_area_counts_bytes(const struct rfx_output_format *format, const struct rfx_tensor *map) {
    size_t n;
    if (format->answer.most_bytes > 0) return format->answer.most_bytes;
    size_t list = rfx_area_list_bytes(format->answer.within, &n);
    return list + bytes_of((int64_t)n, (int64_t)n, format, map) +
           rfx_value_quantiles_area_bytes(&format->answer.quantiles, map, (int64_t)n, 0) +
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
    int64_t slots = rfx_areas_most_at_once(counts->list.areas);
    size_t sums = (size_t)slots * rfx_exact_sum_bytes(counts->c);
    enum rfx_status status = rfx_area_slots_create(mem, counts->list.areas, &counts->slots, err);
    if (status != RFX_OK) return status;
    counts->channels = rfx_memory_calloc(mem, (size_t)all, sizeof *counts->channels);
    counts->sums = rfx_memory_alloc(mem, sums);
    if (counts->channels == NULL || counts->sums == NULL)
        return rfx_memory_fail(mem, "sums of areas", sums, err);
    size_t bins = (size_t)(all * rfx_value_counts(&counts->bins));
    if (bins > 0) counts->in_bins = rfx_memory_calloc(mem, bins, sizeof *counts->in_bins);
    if (bins > 0 && counts->in_bins == NULL)
        return rfx_memory_fail(mem, "bins of areas", bins * sizeof *counts->in_bins, err);
    for (int64_t i = 0; i < all; i++)
        counts->channels[i] =
            (struct rfx_area_channel){.values = RFX_NO_CHANNEL_VALUES, .mean = NAN};
    return RFX_OK;
}

/* Adds to a text what quantiles take. */
static enum rfx_status fail_quantiles(enum rfx_status status, int64_t n, int64_t slots,
                                      const struct rfx_output_format *format,
                                      const struct rfx_tensor *map, struct rfx_error *err) {
    const struct rfx_answer_quantiles *list = &format->answer.quantiles;
    return rfx_fail_within(err, status,
                           "%d quantiles of %" PRId64 " channels in %" PRId64
                           " areas, up to %" PRId64 " of them on a row, take %zu bytes",
                           list->n, map->c, n, slots,
                           rfx_value_quantiles_area_bytes(list, map, n, slots));
}

static enum rfx_status make_tables(struct rfx_area_counts *counts,
                                   const struct rfx_output_format *format,
                                   const struct rfx_tensor *map, struct rfx_error *err) {
    size_t most = format->answer.most_bytes, n = (size_t)rfx_areas_count(counts->list.areas);
    int64_t slots = rfx_areas_most_at_once(counts->list.areas);
    size_t used = counts->list.bytes + bytes_of((int64_t)n, slots, format, map) +
                  rfx_value_quantiles_area_bytes(&format->answer.quantiles, map, (int64_t)n, slots);
    if (most > 0 && used > most) {
        enum rfx_status status = too_small(used, most, err);
        if (format->answer.quantiles.n == 0) return status;
        return fail_quantiles(status, (int64_t)n, slots, format, map, err);
    }
    counts->n = (int64_t)n;
    counts->pixels = rfx_memory_calloc(counts->mem, n, sizeof *counts->pixels);
    if (counts->pixels == NULL)
        return rfx_memory_fail(counts->mem, "counts of areas", n * sizeof *counts->pixels, err);
    return rfx_label_source_of(format, map) == RFX_LABELS_GIVEN
               ? make_pairs(counts, used, most, err)
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
    if (status == RFX_OK) status = make_tables(counts, format, map, err);
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
        counts->pixels[span->area] += span->x1 - span->x0;
    }
}

struct rfx_areas *rfx_area_counts_areas(const struct rfx_area_counts *counts) {
    return counts->list.areas;
}

const struct rfx_area_span *rfx_area_counts_spans(const struct rfx_area_counts *counts,
                                                  int64_t *n) {
    *n = counts->n_spans;
    return counts->spans;
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

/* Sets the means of an area from the sums in a slot. */
static void set_means(struct rfx_area_counts *counts, int32_t area, int64_t slot) {
    struct rfx_area_channel *channels = counts->channels + area * counts->c;
    for (int64_t k = 0; k < counts->c; k++) {
        int64_t values = counts->pixels[area] - channels[k].values.nan;
        if (values > 0)
            channels[k].mean = rfx_exact_sum_total(sums_of(counts, slot), k) / (double)values;
    }
}

void rfx_area_counts_sums(struct rfx_area_counts *counts, const float *values) {
    int64_t slot = 0;
    for (int64_t i = 0; i < counts->n_spans; i++) {
        const struct rfx_area_span *span = &counts->spans[i];
        bool is_new;
        void *sums = sums_of(counts, rfx_area_slots_take(counts->slots, span->area, &is_new));
        if (is_new) (void)rfx_exact_sum_reset(sums, counts->c);
        rfx_exact_sum_add(sums, values + span->x0 * counts->c, span->x1 - span->x0);
    }
    for (int32_t area; (area = rfx_area_slots_leave(counts->slots, &slot)) >= 0;)
        set_means(counts, area, slot);
}

int64_t rfx_area_counts_number(const struct rfx_area_counts *counts) {
    return counts->n;
}

struct rfx_area_count rfx_area_counts_of(const struct rfx_area_counts *counts, int64_t k) {
    return (struct rfx_area_count){
        .number = counts->list.titles[k].number,
        .name = rfx_area_name(&counts->list, k),
        .pixels = counts->pixels[k],
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
    rfx_area_slots_free(counts->slots);
    rfx_memory_release(counts->mem, counts->pixels);
    rfx_memory_release(counts->mem, counts->channels);
    rfx_memory_release(counts->mem, counts->in_bins);
    rfx_memory_release(counts->mem, counts->sums);
    rfx_memory_release(counts->mem, counts);
}
