/* A map put down on disk from rectangles in any order, and taken up again row by row.
 *
 * For files that are written from top to bottom while the map comes in strips, or whose values
 * depend on the whole map. The file has no name, so nothing of it is left however the process ends;
 * it lies in the directory of the output and takes the bytes of the map there. */
#ifndef RFX_RFEXEC_OUTPUT_OUTPUT_SPOOL_H
#define RFX_RFEXEC_OUTPUT_OUTPUT_SPOOL_H

#include "layers/core/memory.h"
#include "layers/graph/tensor.h"

struct rfx_output_spool;

/* Makes a nameless file beside `path` and takes the disk for a map of map->c x map->h x map->w.
 * IO: it cannot be made, or the disk is full. */
RFX_NODISCARD enum rfx_status rfx_output_spool_open(struct rfx_memory *mem, const char *path,
                                                    const struct rfx_tensor *map,
                                                    struct rfx_output_spool **out,
                                                    struct rfx_error *err);

/* Puts down `rect`, which lies in the map and in the view, both of one element type. */
RFX_NODISCARD enum rfx_status rfx_output_spool_write(struct rfx_output_spool *spool,
                                                     struct rfx_rect rect,
                                                     const struct rfx_view *view,
                                                     struct rfx_error *err);

/* Takes up row y, elements [w, c] of the map's type. */
RFX_NODISCARD enum rfx_status rfx_output_spool_read(struct rfx_output_spool *spool, int64_t y,
                                                    void *row, struct rfx_error *err);

/* Closes and frees; NULL is fine. */
void rfx_output_spool_free(struct rfx_output_spool *spool);
#endif
