/* Labels of the pixels of a map's rows: which class a pixel belongs to, and its score.
 *
 * There are three sources. 1. With thresholds, each channel is a class, and there is a map of
 * labels for each channel: the channel where the value is above the threshold. 2. Without, a map of
 * several channels has for each pixel the first channel of the largest value; none where a value is
 * NaN. 3. A map of one channel of integers has labels. A map of one channel of floats has no
 * labels. */
#ifndef RFX_RFEXEC_ANSWERS_LABEL_ROWS_H
#define RFX_RFEXEC_ANSWERS_LABEL_ROWS_H

#include "rfexec/output/output_format.h"

#define RFX_NO_LABEL INT64_MIN /* of pixels that belong to no class, or to the background */

enum rfx_label_source {
    RFX_LABELS_GIVEN,
    RFX_LABELS_LARGEST_CHANNEL,
    RFX_LABELS_THRESHOLD,
    RFX_LABELS_NONE
};

struct rfx_label_rows { /* zeros: nothing is open */
    struct rfx_memory *mem;
    enum rfx_label_source source;
    enum rfx_type sample;
    bool all_labels; /* label 0, and the first channel, are no background */
    int64_t w, channels;
    int n;             /* maps of labels: one, or with thresholds one for each channel */
    float *thresholds; /* of each channel; NULL: none */
    float *values;     /* the row as floats, [w, channels]; not of 32-bit labels */
    float *scores;     /* [w]; NULL: labels have none */
    int64_t *labels;   /* [w] */
};

enum rfx_label_source rfx_label_source_of(const struct rfx_output_format *format,
                                          const struct rfx_tensor *map);

/* INVALID_ARGUMENT: there are several thresholds, and not one for each channel. */
RFX_NODISCARD enum rfx_status rfx_label_thresholds_check(const struct rfx_answer_options *options,
                                                         const struct rfx_tensor *map,
                                                         const char *path, struct rfx_error *err);

/* Copies the thresholds, one for each channel, to *out; release it. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_label_thresholds_copy(struct rfx_memory *mem,
                                                        const struct rfx_answer_options *options,
                                                        int64_t channels, float **out,
                                                        struct rfx_error *err);

/* Memory of the rows. */
size_t rfx_label_rows_bytes(const struct rfx_output_format *format, const struct rfx_tensor *map);

/* OUT_OF_MEMORY. Close with rfx_label_rows_close, after a failure too. */
RFX_NODISCARD enum rfx_status rfx_label_rows_open(struct rfx_label_rows *rows,
                                                  struct rfx_memory *mem,
                                                  const struct rfx_output_format *format,
                                                  const struct rfx_tensor *map,
                                                  struct rfx_error *err);

/* Takes the next row of samples [w, channels]. */
void rfx_label_rows_load(struct rfx_label_rows *rows, const void *samples);

/* Sets labels and scores to those of map i of labels. Not of RFX_LABELS_NONE. */
void rfx_label_rows_find(struct rfx_label_rows *rows, int i);

void rfx_label_rows_close(struct rfx_label_rows *rows);
#endif
