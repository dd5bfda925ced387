/* Finds the regions of a map and writes them as GeoJSON or CSV, row by row. */
#ifndef RFX_RFEXEC_ANSWERS_REGIONS_FILE_H
#define RFX_RFEXEC_ANSWERS_REGIONS_FILE_H

#include "rfexec/output/output_format.h"

struct rfx_regions_file;

/* INVALID_ARGUMENT: the map has one channel of floats and there is no threshold. */
RFX_NODISCARD enum rfx_status rfx_regions_file_check(const struct rfx_output_format *format,
                                                     const struct rfx_tensor *map, const char *path,
                                                     struct rfx_error *err);

/* Memory of the writer, rows and open regions included. */
size_t rfx_regions_file_bytes(const struct rfx_output_format *format, const struct rfx_tensor *map);

/* Opens the file under a temporary name. Statuses of rfx_answer_text_open and rfx_regions_create.
 */
RFX_NODISCARD enum rfx_status rfx_regions_file_open(struct rfx_memory *mem, const char *path,
                                                    const struct rfx_output_format *format,
                                                    const struct rfx_tensor *map,
                                                    enum rfx_answer_form form,
                                                    struct rfx_regions_file **out,
                                                    struct rfx_error *err);

/* Takes the next row of samples [w, channels]. Statuses of rfx_regions_row; IO. */
RFX_NODISCARD enum rfx_status rfx_regions_file_row(struct rfx_regions_file *file,
                                                   const void *samples, struct rfx_error *err);

/* Writes the last regions and gives the file its name. */
RFX_NODISCARD enum rfx_status rfx_regions_file_commit(struct rfx_regions_file *file,
                                                      struct rfx_error *err);

/* What was written so far. */
struct rfx_found rfx_regions_file_found(const struct rfx_regions_file *file);

/* NULL is fine. */
void rfx_regions_file_free(struct rfx_regions_file *file);
#endif
