/* Which part of an output a shard holds, and where the shard's elements lie in the output.
 *
 * An output that is a map of rows and columns is cut into rectangles. An output that is joined of
 * several maps, such as a detector's boxes of three levels, is cut into cells: a cell is a pixel of
 * one of the maps, or several cells are one pixel (anchors). Its shape is (1, channels, cells) or
 * (1, cells, channels). A shard of it holds some rows of every map, which are a few ranges of
 * cells; the shard's array has these cells alone, one range after the other. */
#ifndef RFX_RFEXEC_SHARDS_SHARD_PLACE_H
#define RFX_RFEXEC_SHARDS_SHARD_PLACE_H

#include <jansson.h>

#include "layers/core/status.h"
#include "layers/graph/graph.h"
#include "layers/graph/tensor.h"

enum { RFX_SHARD_MOST_RANGES = 64, RFX_SHARD_CELLS_CHARS = 200 };

struct rfx_shard_cells {
    int64_t of, channels; /* cells of the whole output; 0: the output is not joined of maps */
    bool last;            /* channel c of cell p is element c * of + p, else p * channels + c */
    int n;
    struct rfx_range ranges[RFX_SHARD_MOST_RANGES]; /* ascending, without overlap, none empty */
};

/* The most shards that output k can have: the rows of its tallest map. */
int64_t rfx_shard_most(const struct rfx_graph *graph, int k);

/* Sets the layout of the cells of output k, without ranges. false: the output is a map, or is
 * joined of something else than maps with cells of one form. */
bool rfx_shard_cells_of(const struct rfx_graph *graph, int k, struct rfx_shard_cells *out);

/* The cells of shard `index` (from 0) of `count` of output k: some rows of each map. false: the
 * output has no cells, or more than RFX_SHARD_MOST_RANGES ranges would be needed. */
bool rfx_shard_cells_share(const struct rfx_graph *graph, int k, int64_t index, int64_t count,
                           struct rfx_shard_cells *cells);

/* The array of a shard that holds these cells. */
struct rfx_tensor rfx_shard_cells_tensor(const struct rfx_shard_cells *cells);

/* Number of cells in all ranges. */
int64_t rfx_shard_cells_count(const struct rfx_shard_cells *cells);

/* Where `rows` of the map of an end lie in the array of a shard that holds them. */
struct rfx_end rfx_shard_cells_end(const struct rfx_shard_cells *cells, const struct rfx_end *end,
                                   const struct rfx_node *map, struct rfx_rect rows);

/* Elements that follow each other both in the shard's array and in the output. */
struct rfx_shard_span {
    int64_t from, to, count; /* first element in the array, first element in the output */
};

/* Number of spans, and span i in the order of the array. */
int64_t rfx_shard_cells_spans(const struct rfx_shard_cells *cells);
struct rfx_shard_span rfx_shard_cells_span(const struct rfx_shard_cells *cells, int64_t i);

bool rfx_shard_cells_equal(const struct rfx_shard_cells *a, const struct rfx_shard_cells *b);

/* Writes "0 to 24, 96 to 104" into text, cut off where it is too long, and returns text. */
const char *rfx_shard_cells_text(const struct rfx_shard_cells *cells,
                                 char text[RFX_SHARD_CELLS_CHARS]);

/* The cells as {"of", "channels", "last", "ranges": [[first, end], ...]} and the ranges alone; new
 * references. */
json_t *rfx_shard_cells_json(const struct rfx_shard_cells *cells);
json_t *rfx_shard_cells_ranges_json(const struct rfx_shard_cells *cells);

/* Reads such an object. false: it describes no cells of an output of `elems` elements. */
bool rfx_shard_cells_read(const json_t *json, int64_t elems, struct rfx_shard_cells *out);

typedef enum rfx_status rfx_shard_put_fn(void *user, struct rfx_rect rect,
                                         const struct rfx_view *view, struct rfx_error *err);

/* Hands the pixels of `rect` to `put`, with rows and columns counted from the first ones of
 * `part`. `rect` is given in coordinates of the whole map and lies in the view and in `part`. Each
 * call of `put` gets rows that lie one after the other in memory, as a view of their own. */
RFX_NODISCARD enum rfx_status rfx_shard_put_rows(struct rfx_rect part, struct rfx_rect rect,
                                                 const struct rfx_view *view, rfx_shard_put_fn *put,
                                                 void *user, struct rfx_error *err);
#endif
