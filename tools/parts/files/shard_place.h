/* Parts of an output that is joined of several maps, such as a detector's boxes of three levels.
 *
 * Such an output is a row of *cells*, the pixels of all its maps one after the other, each of as
 * many channels: (1, channels, cells), or (1, cells, channels), where a pixel may also be several
 * cells, such as anchors. A part has some rows of every map, and so a few ranges of cells; its
 * array is the output's with these cells alone, side by side. */
/* Rows of a map, given to somebody who counts from the first row and column of a part. */
#ifndef RFX_TOOLS_PARTS_FILES_SHARD_PLACE_H
#define RFX_TOOLS_PARTS_FILES_SHARD_PLACE_H

#include <jansson.h>

#include "layers/core/status.h"
#include "layers/graph/graph.h"
#include "layers/graph/tensor.h"

enum { RFX_PART_MOST_RANGES = 64, RFX_PART_CELLS_CHARS = 200 };

struct rfx_part_cells {
    int64_t of, channels; /* cells of the whole output; 0: this is none of cells */
    bool last;            /* channel c of cell p is element c * of + p, else p * channels + c */
    int n;
    struct rfx_range ranges[RFX_PART_MOST_RANGES]; /* ascending, without overlap, none empty */
};

/* Whether output k has such cells: begins without any of them. false: it is a map, or made of
 * something else than maps of one form. */
bool rfx_part_cells_of(const struct rfx_graph *graph, int k, struct rfx_part_cells *out);

/* Adds the cells of some rows of an end, whose map it is. false: there are too many ranges. */
bool rfx_part_cells_add(struct rfx_part_cells *cells, const struct rfx_end *end,
                        const struct rfx_node *map, struct rfx_rect rows);

/* Cells of the part. */
int64_t rfx_part_cells_count(const struct rfx_part_cells *cells);

/* The array of the part. */
struct rfx_tensor rfx_part_cells_tensor(const struct rfx_part_cells *cells);

/* Where rows of an end lie in the array of a part that has them. */
struct rfx_end rfx_part_cells_end(const struct rfx_part_cells *cells, const struct rfx_end *end,
                                  const struct rfx_node *map, struct rfx_rect rows);

/* A run of elements that follow each other in the part's array and in the output. */
struct rfx_part_run {
    int64_t from, to, count; /* first in the array, first in the output */
};

/* Runs of the part, and number i of them in the order of the array. */
int64_t rfx_part_cells_runs(const struct rfx_part_cells *cells);
struct rfx_part_run rfx_part_cells_run(const struct rfx_part_cells *cells, int64_t i);

bool rfx_part_cells_equal(const struct rfx_part_cells *a, const struct rfx_part_cells *b);

/* "0 to 24, 96 to 104", cut where it is long. */
const char *rfx_part_cells_text(const struct rfx_part_cells *cells,
                                char text[RFX_PART_CELLS_CHARS]);

/* {"of", "channels", "last", "ranges": [[first, end], ...]}, a new reference, and those of an
 * output of so many elements; false: they are none. */
json_t *rfx_part_cells_json(const struct rfx_part_cells *cells);
json_t *rfx_part_cells_ranges_json(const struct rfx_part_cells *cells);
bool rfx_part_cells_read(const json_t *json, int64_t elems, struct rfx_part_cells *out);

typedef enum rfx_status rfx_part_put_fn(void *user, struct rfx_rect rect,
                                        const struct rfx_view *view, struct rfx_error *err);

/* Hands `rect` of the map, which lies in the view and in the part, to `put`: such rows as lie one
 * behind the other in the view at a time, as a view of their own. */
RFX_NODISCARD enum rfx_status rfx_part_put_rows(struct rfx_rect part, struct rfx_rect rect,
                                                const struct rfx_view *view, rfx_part_put_fn *put,
                                                void *user, struct rfx_error *err);
#endif
