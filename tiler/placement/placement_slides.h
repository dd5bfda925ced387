/* Tile-aware placement for stages that run row by row: a map may be written over rows of its input
 * that are already dead.
 *
 * It is paper 004's idea (tensors may share bytes as long as no two of their tiles do at one time)
 * for row tiles in the executor's order, where the collision of two tensors has a closed form: a
 * distance each way (struct rfx_slide). Strided tiles and the paper's own algorithms:
 * placement_tiles.h. */
#ifndef RFX_TILER_PLACEMENT_PLACEMENT_SLIDES_H
#define RFX_TILER_PLACEMENT_PLACEMENT_SLIDES_H

#include "tiler/placement/placement.h"

/* Fills the offsets of records[n], the direction upwards[n_slides] of each slide, and the arena's
 * size: the best over the paper's three orders (size, lifetime, number of peers), order of time,
 * and, unless the bound is met, a fixed number of reshuffled ones (few when quick, or of very many
 * records). Two records are in one slide at most, and slides of a node follow each other.
 * OUT_OF_MEMORY. O(orders * n^2). */
RFX_NODISCARD enum rfx_status rfx_slides_place_greedily(struct rfx_memory *mem,
                                                        struct rfx_record *records, int n,
                                                        const struct rfx_slide *slides,
                                                        int n_slides, bool quick, size_t bound,
                                                        bool *upwards, size_t *arena_bytes,
                                                        struct rfx_error *err);

/* The same, or, unless the bound is met, what is better: rows of slides spread out
 * (placement_spread.c). */
RFX_NODISCARD enum rfx_status rfx_slides_place(struct rfx_memory *mem, struct rfx_record *records,
                                               int n, const struct rfx_slide *slides, int n_slides,
                                               bool quick, size_t bound, bool *upwards,
                                               size_t *arena_bytes, struct rfx_error *err);
#endif
