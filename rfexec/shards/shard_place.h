/* The part of an output that a shard contains, and the positions of the shard's elements in the
 * output.
 *
 * An output that is a map of rows and columns is divided into rectangles. An output that is joined
 * of several maps, such as a detector's boxes of three levels, is divided into cells. Each pixel of
 * the maps is one cell or (with anchors) several cells. The shape of such an output is (1,
 * channels, cells) or (1, cells, channels). A shard of it contains some rows of every map, which
 * are a few ranges of cells. The shard's array contains only these cells, one range after the
 * other. */
#ifndef RFX_RFEXEC_SHARDS_SHARD_PLACE_H
#define RFX_RFEXEC_SHARDS_SHARD_PLACE_H

#include <jansson.h>

#include "layers/core/status.h"
#include "layers/graph/graph.h"
#include "layers/graph/tensor.h"

enum { RFX_SHARD_MOST_RANGES = 64, RFX_SHARD_CELLS_CHARS = 200 };

struct rfx_shard_cells {
    int64_t of, channels; /* cells of the whole output; 0: the output is not joined of maps */
    bool last;            /* true: channel c of cell p is element c * of + p; false: element
                           * p * channels + c */
    int n;
    struct rfx_range ranges[RFX_SHARD_MOST_RANGES]; /* ascending, without overlap, none empty */
};

/* Returns the largest number of shards of output k: the number of rows of its tallest map. */
int64_t rfx_shard_most(const struct rfx_graph *graph, int k);

/* Sets *out to the layout of the cells of output k, without ranges. Returns false when the output
 * is a map, or is not joined of maps whose cells have the same form. */
bool rfx_shard_cells_of(const struct rfx_graph *graph, int k, struct rfx_shard_cells *out);

/* Sets *cells to those of shard `index` (from 0) of `count` of output k: some rows of each map.
 * Returns false when the output has no cells, or more than RFX_SHARD_MOST_RANGES ranges are needed.
 */
bool rfx_shard_cells_share(const struct rfx_graph *graph, int k, int64_t index, int64_t count,
                           struct rfx_shard_cells *cells);

/* Returns the tensor of a shard with these cells. */
struct rfx_tensor rfx_shard_cells_tensor(const struct rfx_shard_cells *cells);

/* Returns the number of cells in all ranges. */
int64_t rfx_shard_cells_count(const struct rfx_shard_cells *cells);

/* Returns the position of `rows` of an output piece's map in the array of a shard that contains
 * these rows. */
struct rfx_end rfx_shard_cells_end(const struct rfx_shard_cells *cells, const struct rfx_end *end,
                                   const struct rfx_node *map, struct rfx_rect rows);

/* A run of elements that is contiguous in the shard's array and in the output. */
struct rfx_shard_span {
    int64_t from, to, count; /* first element in the array, first element in the output */
};

/* Return the number of spans, and span i in the order of the array. */
int64_t rfx_shard_cells_spans(const struct rfx_shard_cells *cells);
struct rfx_shard_span rfx_shard_cells_span(const struct rfx_shard_cells *cells, int64_t i);

bool rfx_shard_cells_equal(const struct rfx_shard_cells *a, const struct rfx_shard_cells *b);

/* Writes ranges such as "0 to 24, 96 to 104" to `text`, cut when too long. Returns `text`. */
const char *rfx_shard_cells_text(const struct rfx_shard_cells *cells,
                                 char text[RFX_SHARD_CELLS_CHARS]);

/* Return new JSON values: the cells as {"of", "channels", "last", "ranges": [[first, end], ...]},
 * and the list of ranges alone. */
json_t *rfx_shard_cells_json(const struct rfx_shard_cells *cells);
json_t *rfx_shard_cells_ranges_json(const struct rfx_shard_cells *cells);

/* Reads an object made by rfx_shard_cells_json. Returns false when it does not describe cells of an
 * output of `elems` elements. */
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
