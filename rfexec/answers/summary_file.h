/* Counts the pixels of each class of a map and writes them as JSON or CSV, in constant memory.
 *
 * Classes are those of regions (label_rows.h), the background's label 0 included: the labels that
 * occur in a map of labels, in ascending order, or all channels. A map of one channel of floats
 * without a threshold has one entry without a number of pixels. Each entry has
 * - pixels, area (in the square of the coordinates' unit, as for regions), and share of all pixels;
 * - unless the map has labels, the channel's smallest, largest and mean value over all pixels that
 *   are not NaN, and the number of NaN. The mean is the exact sum rounded to double, divided by the
 *   number of values. So no number depends on the order of the pixels;
 * - with bins, how many of the channel's values lie in each of them (value_bins.h);
 * - with quantiles, those of the channel's values (value_quantiles.h).
 * With areas, the same follows for the pixels of each area (area_counts.h), whose memory is added.
 * Without thresholds, pixels with NaN in any channel belong to no class. 32-bit integers of maps of
 * several channels are rounded to float32. Tests: test_summary_file.c, tests/oracle/answers.py. */
#ifndef RFX_RFEXEC_ANSWERS_SUMMARY_FILE_H
#define RFX_RFEXEC_ANSWERS_SUMMARY_FILE_H

#include "rfexec/output/output_format.h"

struct rfx_summary_file;

/* INVALID_ARGUMENT: there are several thresholds, and not one for each channel; bins are wanted of
 * a map of labels. UNSUPPORTED: the map has more than 2^40 pixels. */
RFX_NODISCARD enum rfx_status rfx_summary_file_check(const struct rfx_output_format *format,
                                                     const struct rfx_tensor *map, const char *path,
                                                     struct rfx_error *err);

/* Memory of the writer. */
size_t rfx_summary_file_bytes(const struct rfx_output_format *format, const struct rfx_tensor *map);

/* Opens the file under a temporary name, and reads the areas. Statuses of rfx_answer_text_open and
 * rfx_area_counts_open. */
RFX_NODISCARD enum rfx_status rfx_summary_file_open(struct rfx_memory *mem, const char *path,
                                                    const struct rfx_output_format *format,
                                                    const struct rfx_tensor *map,
                                                    enum rfx_answer_form form,
                                                    struct rfx_summary_file **out,
                                                    struct rfx_error *err);

/* Takes the next row of samples [w, channels]. UNSUPPORTED: more than RFX_LABEL_COUNTS different
 * labels. BUDGET_IMPOSSIBLE: the areas have too many (rfx_area_counts_labels). */
RFX_NODISCARD enum rfx_status rfx_summary_file_row(struct rfx_summary_file *file,
                                                   const void *samples, struct rfx_error *err);

/* Writes the entries and gives the file its name. */
RFX_NODISCARD enum rfx_status rfx_summary_file_commit(struct rfx_summary_file *file,
                                                      struct rfx_error *err);

/* After commit: how many entries were written. */
struct rfx_found rfx_summary_file_found(const struct rfx_summary_file *file);

/* NULL is fine. */
void rfx_summary_file_free(struct rfx_summary_file *file);
#endif
