/* An execution mode of a stage: everything that the planner, the schedule, the checker, plan files
 * and reports know about it, in one table of functions.
 *
 * A mode is one file. It owns the iterator that yields the steps of a stage, and the functions that
 * derive buffer sizes from that iterator; no other file describes the mode again. What all modes
 * share is written once elsewhere: places (stage.h), lifetimes and bytes (plan_records.c), the
 * phases around the body (schedule.c).
 *
 * Invariants: 1. the steps of a stage depend only on its specification, its places and the ring
 * sizes of its buffers; 2. the rectangle of a step can be computed from what `resident_region` says
 * is in memory at that step; 3. the rows that `measure` reports are enough for every step; 4. a
 * mode has no state besides the walk's. */
#ifndef RFX_TILER_PLAN_MODE_H
#define RFX_TILER_PLAN_MODE_H

#include "rf_analysis/regions.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/schedule.h"
#include "tiler/plan/tiling.h"

/* Row counts of one node in a stage. */
struct rfx_node_rows {
    int64_t most;     /* most rows in memory at a time */
    int64_t kept;     /* most rows that outlive the step that computed them */
    int64_t per_step; /* most rows computed in one step */
    int64_t computed; /* rows computed in total */
    bool lasting;     /* some row outlives its step, so the buffer lives as long as the stage */
};

#define RFX_MODE_SCRATCH 9 /* int64_t per node: size of the scratch table for measuring a stage */

/* Input of a mode's `measure`, and its scratch tables. */
struct rfx_mode_measure {
    const struct rfx_graph *graph;
    const enum rfx_node_place *places;
    const struct rfx_stage_spec *spec;
    int64_t *done;                   /* scratch: RFX_MODE_SCRATCH * n_nodes */
    struct rfx_axis_region *regions; /* scratch: RFX_SWEEP_REGIONS * n_nodes (stage.h) */
};

/* Input of a mode's `sweep_rows`, and its scratch tables. */
struct rfx_mode_sweep {
    const struct rfx_graph *graph;
    const struct rfx_stage *stage;
    int64_t *done;                   /* scratch: RFX_MODE_SCRATCH * n_nodes */
    struct rfx_axis_region *regions; /* scratch: RFX_SWEEP_REGIONS * n_nodes (stage.h) */
};

/* Receives the rows of a node that a step computes, and the number of steps that compute equally
 * many rows. Where `times` is above 1, no border clips anything (also not inside of a group), so
 * the steps differ only in position. */
typedef void rfx_rows_adder(void *user, int node, struct rfx_range rows, int64_t times);

/* The geometry of a stage. The tables have n_nodes entries and are borrowed. */
struct rfx_stage_shape {
    struct rfx_stage_spec spec;
    int first, end; /* computed nodes lie in [first, end) */
    const enum rfx_node_place *places;
    const struct rfx_node_rows *rows;
    const struct rfx_tile_extent *cols; /* columns of the tiles; NULL: full rows */
    int64_t overlap_rows;               /* image rows that consecutive tiles share */
};

/* Position of a schedule inside a stage. */
struct rfx_walk {
    const struct rfx_plan *plan;
    const struct rfx_stage *stage;
    bool restart; /* the next step that reads the image starts again at its first row */
    int64_t unit; /* finished units of progress of this stage */
    void *state;  /* the mode's own state, walk_bytes long */
};

/* Numbers and flags of a stage specification that a mode supports. */
enum rfx_mode_knows {
    RFX_KNOWS_TILES_Y = 1 << 0,
    RFX_KNOWS_TILES_X = 1 << 1,
    RFX_KNOWS_BANDS = 1 << 2,
    RFX_KNOWS_STAGING = 1 << 3,
    RFX_KNOWS_ROW_BY_ROW = 1 << 4,
};

/* When a node's result may overwrite an input whose lifetime ends at that node (in place). */
enum rfx_take_over {
    RFX_TAKE_NEVER,
    RFX_TAKE_SAME_TILE, /* only a local input that no other node reads: both then have the same tile
                         */
    RFX_TAKE_ANY,       /* always: full maps are written over full maps */
};

struct rfx_candidate_template;

struct rfx_mode {
    const char *name;   /* name in plan files and reports */
    const char *a_mode; /* name with article for messages, such as "a streamed stage" */
    bool local;         /* computes only nodes that are local in space, and feeds reductions */
    bool once;  /* visits nodes one after the other, so a stored map and packed weights are needed
                   only from their node's turn on */
    bool emits; /* computes the rows of its targets in order, so outputs can be handed out early;
                   adds a step that spills the new rows of a SPILLED node */
    bool rings; /* row y of a local node lies in slot y mod (rows of its buffer) */
    bool trims; /* even a single tile across is trimmed to the columns that its targets need */
    unsigned knows;
    enum rfx_take_over take_over;

    /* Candidate templates that the planner tries (search/); n_templates 0: the mode is used only on
     * request. */
    const struct rfx_candidate_template *templates;
    int n_templates;

    /* Checks those numbers of the specification that only the mode can judge. NULL: no check.
     * Fields that the mode does not support at all are rejected by the caller. */
    enum rfx_status (*check)(const struct rfx_stage_spec *spec, struct rfx_error *err);

    /* Fills rows[n_nodes] for computed nodes, and *overlap_rows. The specification's flags and
     * columns do not matter. */
    void (*measure)(const struct rfx_mode_measure *measure, struct rfx_node_rows *rows,
                    int64_t *overlap_rows);

    /* Measurement cache shared by similar stages: a block of cache_bytes that starts zeroed.
     * measure_cached works as measure does, and returns false where the cache does not cover the
     * stage. NULL: the mode has no such cache. */
    size_t (*cache_bytes)(const struct rfx_graph *graph);
    bool (*measure_cached)(void *cache, const struct rfx_mode_measure *measure,
                           struct rfx_node_rows *rows, int64_t *overlap_rows);

    /* Passes the rows of all steps of a tile of full columns to `add`, node by node; equal steps
     * are passed once, with their number. All tiles across run the same steps. Ends early when the
     * work is stopped. NULL: rows cannot be given this way, and callers walk the steps. */
    void (*sweep_rows)(const struct rfx_mode_sweep *sweep, rfx_rows_adder *add, void *user);

    /* Image rows that a source which is read from top to bottom has to keep. NULL: only the rows of
     * one read. */
    int64_t (*window_rows)(const struct rfx_stage_shape *shape, int input);

    /* Rows per step of a node that is computed row by row. NULL or 0: the whole tile at once. */
    int64_t (*step_rows)(const struct rfx_graph *graph, const struct rfx_stage_spec *spec,
                         int node);

    /* Row by row: returns whether the map of node `after`, which this stage stores, may be written
     * over the map of `before`, whose last reader is this stage; *down receives how many bytes
     * lower `after` must begin. scratch: 2 * n_nodes. *lag: the pair's lag from an earlier call, or
     * INT64_MAX if it has to be computed. NULL: maps overwrite inputs only within a single node
     * (step_rows). */
    bool (*slide)(const struct rfx_graph *graph, const struct rfx_stage_shape *shape, int before,
                  int after, int64_t *scratch, int64_t *lag, size_t *down);

    /* Staging: returns whether no other node reads the new rows of `before` any more, now or later,
     * once `after`, which reads them, has computed the same rows and all rows above. Both have full
     * rows. scratch and *lag as above. NULL: staging rows are never overwritten by another node. */
    bool (*frees)(const struct rfx_graph *graph, const struct rfx_stage_shape *shape, int before,
                  int after, int64_t *scratch, int64_t *lag);

    int64_t (*units)(const struct rfx_plan *plan,
                     const struct rfx_stage *stage); /* units of progress */
    size_t (*walk_bytes)(const struct rfx_graph *graph);

    /* Moves to the stage's first step: fills walk->state. */
    void (*enter)(struct rfx_walk *walk);

    /* Fills the next step of the body (kind, node, rect; rect may be empty); returns false at the
     * end. */
    bool (*next)(struct rfx_walk *walk, struct rfx_step *step);

    /* Fills the resident region of a local node at the last step; region->offset is already set.
     * NULL: the whole map is in memory. */
    void (*resident_region)(const struct rfx_walk *walk, int node,
                            struct rfx_resident_region *resident_region);

    /* Writes the stage in words, up to the target named `to`; alone: it is the only stage. Returns
     * as snprintf does. */
    int (*describe)(const struct rfx_stage_spec *spec, const char *to, bool alone, char *text,
                    size_t size);
};

/* Returns the built-in modes (modes/modes.c) in the planner's order, *count of them. The first one
 * can compute any node: it runs whatever the others leave. */
const struct rfx_mode *const *rfx_modes(int *count);

/* Returns the built-in mode with that name, or NULL. */
const struct rfx_mode *rfx_mode_find(const char *name);

/* Returns the default specification for a request that names a split and nothing else; it has no
 * targets. */
struct rfx_stage_spec rfx_ask_cut(void);

/* For `next`: fills the step that computes `rect` of a node, fetches it, or adds it to a reduction.
 */
void rfx_walk_compute(struct rfx_walk *walk, int node, struct rfx_rect rect, struct rfx_step *step);

/* Returns the rectangle of a target (of a reduction: of its input) that belongs to tile (y, x) of
 * the grid. */
struct rfx_rect rfx_walk_own_rect(const struct rfx_walk *walk, int node, int64_t y, int64_t x);
#endif
