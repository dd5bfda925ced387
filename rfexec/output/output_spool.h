/* Stores a map on disk: written as rectangles in any order, read back by rows.
 *
 * Used for files that are written from top to bottom while the map comes in strips, or whose values
 * depend on the whole map. The file has no name, so nothing of it stays however the process ends.
 * It lies in the directory of the output and takes as many bytes as the map. */
#ifndef RFX_RFEXEC_OUTPUT_OUTPUT_SPOOL_H
#define RFX_RFEXEC_OUTPUT_OUTPUT_SPOOL_H

#include "layers/core/memory.h"
#include "layers/graph/tensor.h"

struct rfx_output_spool;

/* Memory to plan for an open file, which takes a little less: its chunk and its path. */
#define RFX_OUTPUT_SPOOL_BYTES ((size_t)32 << 10)

/* Makes a file without a name beside `path` and reserves disk space for the whole map, map->c x
 * map->h x map->w. IO: it cannot be made, or the disk is full. */
RFX_NODISCARD enum rfx_status rfx_output_spool_open(struct rfx_memory *mem, const char *path,
                                                    const struct rfx_tensor *map,
                                                    struct rfx_output_spool **out,
                                                    struct rfx_error *err);

/* Like rfx_output_spool_open, but reserves no disk space: what is not written takes none, and is
 * read as zeros. For maps that stay empty for the most part. */
RFX_NODISCARD enum rfx_status rfx_output_spool_open_sparse(struct rfx_memory *mem, const char *path,
                                                           const struct rfx_tensor *map,
                                                           struct rfx_output_spool **out,
                                                           struct rfx_error *err);

/* Writes `rect`, which must lie in the map and in the view. Both must have the same element type.
 */
RFX_NODISCARD enum rfx_status rfx_output_spool_write(struct rfx_output_spool *spool,
                                                     struct rfx_rect rect,
                                                     const struct rfx_view *view,
                                                     struct rfx_error *err);

/* Reads row y: elements [w, c] of the map's type. */
RFX_NODISCARD enum rfx_status rfx_output_spool_read(struct rfx_output_spool *spool, int64_t y,
                                                    void *row, struct rfx_error *err);

/* Reads columns [x0, x1) of row y, which must lie in the map. */
RFX_NODISCARD enum rfx_status rfx_output_spool_read_part(struct rfx_output_spool *spool, int64_t y,
                                                         int64_t x0, int64_t x1, void *part,
                                                         struct rfx_error *err);

/* Closes and frees; NULL is fine. */
void rfx_output_spool_free(struct rfx_output_spool *spool);
#endif
