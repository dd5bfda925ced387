/* Finds the peaks of a map (peaks.h) and writes them as GeoJSON or CSV, row by row.
 *
 * A point is the middle of its pixel, in the coordinates of regions (answer_text.h). Its label is
 * the channel, and its score the pixel's value as float32; 32-bit integers are rounded to float32.
 */
#ifndef RFX_RFEXEC_ANSWERS_POINTS_FILE_H
#define RFX_RFEXEC_ANSWERS_POINTS_FILE_H

#include "rfexec/output/output_format.h"

struct rfx_points_file;

/* INVALID_ARGUMENT: there is no threshold, or there are several and not one for each channel. */
RFX_NODISCARD enum rfx_status rfx_points_file_check(const struct rfx_output_format *format,
                                                    const struct rfx_tensor *map, const char *path,
                                                    struct rfx_error *err);

/* Memory of the writer, which grows with the distance. */
size_t rfx_points_file_bytes(const struct rfx_output_format *format, const struct rfx_tensor *map);

/* Opens the file under a temporary name. Statuses of rfx_answer_text_open and rfx_peaks_create. */
RFX_NODISCARD enum rfx_status rfx_points_file_open(struct rfx_memory *mem, const char *path,
                                                   const struct rfx_output_format *format,
                                                   const struct rfx_tensor *map,
                                                   enum rfx_answer_form form,
                                                   struct rfx_points_file **out,
                                                   struct rfx_error *err);

/* Takes the next row of samples [w, channels]. IO. */
RFX_NODISCARD enum rfx_status rfx_points_file_row(struct rfx_points_file *file, const void *samples,
                                                  struct rfx_error *err);

/* Writes the last points and gives the file its name. */
RFX_NODISCARD enum rfx_status rfx_points_file_commit(struct rfx_points_file *file,
                                                     struct rfx_error *err);

/* What was written so far. */
struct rfx_found rfx_points_file_found(const struct rfx_points_file *file);

/* NULL is fine. */
void rfx_points_file_free(struct rfx_points_file *file);
#endif
