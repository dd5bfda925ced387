/* What a summary says of each area of a file (areas_file.h): the pixels of its classes, and the
 * values of its channels.
 *
 * For each row of the map: rfx_area_counts_begin, then rfx_area_counts_labels for each map of
 * labels; then, unless the map itself has labels, rfx_area_counts_values, and rfx_area_counts_sums
 * when NaN were replaced by 0. Memory grows with the file's corners and, for each area, with its
 * channels or the different labels in it. Exact sums are kept for areas that are open at a row. */
#ifndef RFX_RFEXEC_ANSWERS_AREA_COUNTS_H
#define RFX_RFEXEC_ANSWERS_AREA_COUNTS_H

#include <math.h>

#include "rfexec/answers/answer_text.h"
#include "rfexec/answers/label_rows.h"

/* Values of a channel, in the whole map or in an area. */
struct rfx_channel_values {
    float smallest, largest; /* infinities of the wrong sign: all are NaN so far */
    int64_t nan;
};
#define RFX_NO_CHANNEL_VALUES ((struct rfx_channel_values){INFINITY, -INFINITY, 0})

/* Returns whether the value is NaN. */
static inline bool rfx_channel_values_add(struct rfx_channel_values *values, float value) {
    if (value < values->smallest) values->smallest = value;
    if (value > values->largest) values->largest = value;
    values->nan += isnan(value);
    return isnan(value);
}

struct rfx_area_channel {
    struct rfx_channel_values values;
    int64_t pixels; /* of the class */
    double mean;    /* NaN: there is no value. Set when the area is over */
};

struct rfx_area_count {
    int64_t number;   /* of the feature in the file, from 1 */
    const char *name; /* UTF-8, not printable; NULL: none */
    int64_t pixels;
    const struct rfx_area_channel *channels; /* NULL: the map has labels */
    const int64_t *bins; /* counts of each channel (value_bins.h); NULL: none are wanted */
};

struct rfx_area_counts;

/* Memory of the counts of the file format->answer.within, with quantiles, or what the options
 * allow. If they set no limit, RFX_ANSWER_BYTES are counted for labels, or for tables of quantiles.
 */
size_t rfx_area_counts_bytes(const struct rfx_output_format *format, const struct rfx_tensor *map);

/* Reads the areas. Statuses of rfx_area_list_read. */
RFX_NODISCARD enum rfx_status rfx_area_counts_open(struct rfx_memory *mem,
                                                   const struct rfx_output_format *format,
                                                   const struct rfx_answer_text *text,
                                                   const struct rfx_tensor *map,
                                                   struct rfx_area_counts **out,
                                                   struct rfx_error *err);

/* Finds the areas' pixels in the next row. */
void rfx_area_counts_begin(struct rfx_area_counts *counts);

/* Returns the areas, and their pixels in the row that was begun last. */
struct rfx_areas *rfx_area_counts_areas(const struct rfx_area_counts *counts);
const struct rfx_area_span *rfx_area_counts_spans(const struct rfx_area_counts *counts, int64_t *n);

/* Counts the labels that rfx_label_rows_find found. BUDGET_IMPOSSIBLE: there are too many different
 * ones in the areas. */
RFX_NODISCARD enum rfx_status rfx_area_counts_labels(struct rfx_area_counts *counts,
                                                     const struct rfx_label_rows *rows,
                                                     struct rfx_error *err);

/* Take the values of the row, [w, channels]: with NaN, and with 0 in their place. */
void rfx_area_counts_values(struct rfx_area_counts *counts, const float *values);
void rfx_area_counts_sums(struct rfx_area_counts *counts, const float *values);

/* Returns the number of areas, and what was counted in area k. */
int64_t rfx_area_counts_number(const struct rfx_area_counts *counts);
struct rfx_area_count rfx_area_counts_of(const struct rfx_area_counts *counts, int64_t k);

/* Returns the next label of area k of a map of labels, in ascending order; false: there is no
 * further one. To be called for one area after the other when all rows were counted. */
bool rfx_area_counts_next(struct rfx_area_counts *counts, int64_t k, int64_t *label,
                          int64_t *pixels);

/* NULL is fine. */
void rfx_area_counts_free(struct rfx_area_counts *counts);
#endif
