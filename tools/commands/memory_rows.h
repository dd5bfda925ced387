/* The part of `memory` about runs row by row: tile-aware placements of the same tensors. */
#ifndef RFX_TOOLS_COMMANDS_MEMORY_ROWS_H
#define RFX_TOOLS_COMMANDS_MEMORY_ROWS_H

#include <jansson.h>

#include "layers/graph/graph.h"
#include "tools/study/tile_placement.h"

struct rfx_memory_rows {
    size_t slides;                 /* arena of what the executor runs with */
    size_t tiles[RFX_TILES_COUNT]; /* of paper 004's orders */
    size_t bound;                  /* no placement needs less */
};

/* Places the maps nodes[n] (rising) of the graph. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_memory_rows_fill(struct rfx_memory *mem,
                                                   const struct rfx_graph *graph, const int *nodes,
                                                   int n, struct rfx_memory_rows *rows,
                                                   struct rfx_error *err);

/* Adds row_by_row_bytes and row_by_row_lower_bound_bytes to a document. */
void rfx_memory_rows_json(const struct rfx_memory_rows *rows, json_t *document);

/* Prints a table whose columns are those of `memory`, in MiB. */
void rfx_memory_rows_print(const struct rfx_memory_rows *rows);
#endif
