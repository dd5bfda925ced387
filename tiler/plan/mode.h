/* A way of running a stage: everything that the planner, the schedule, the checker, plan files and
 * reports know of it, in one table of functions.
 *
 * A mode is one file. It owns the iterator that gives the stage's steps, and next to it the sizes
 * that follow from walking it: nobody else describes the mode a second time. What modes have in
 * common is said once, outside: places (stage.h), lifetimes and bytes (plan_records.c), phases
 * around the body (schedule.c).
 *
 * Invariants: 1. steps of a stage depend on its spec, its places and the buffers' ring sizes only;
 * 2. a step computes what its inputs, as `part` gives them at that step, allow; 3. the rows that
 * `measure` reports suffice for every step; 4. a mode has no state but the walk's. */
#ifndef RFX_TILER_PLAN_MODE_H
#define RFX_TILER_PLAN_MODE_H

#include "rf_analysis/regions.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/schedule.h"
#include "tiler/plan/tiling.h"

/* Rows of one node in a stage. */
struct rfx_node_rows {
    int64_t most;     /* at hand at a time, at most */
    int64_t kept;     /* of them, those that outlive the step that made them, at most */
    int64_t fresh;    /* that one step makes, at most */
    int64_t computed; /* in all */
    bool lasting;     /* some row outlives the step that made it: the buffer lasts for the stage */
};

#define RFX_MODE_SCRATCH 9 /* int64_t per node that measuring a stage may write over */

/* What a mode has to know to measure a stage, and tables that it may write over. */
struct rfx_mode_measure {
    const struct rfx_graph *graph;
    const enum rfx_node_place *places;
    const struct rfx_stage_spec *spec;
    int64_t *done;                   /* scratch: RFX_MODE_SCRATCH * n_nodes */
    struct rfx_axis_region *regions; /* scratch: RFX_SWEEP_REGIONS * n_nodes (stage.h) */
};

/* A stage whose steps' rows a mode is to give, and tables that it may write over. */
struct rfx_mode_sweep {
    const struct rfx_graph *graph;
    const struct rfx_stage *stage;
    int64_t *done;                   /* scratch: RFX_MODE_SCRATCH * n_nodes */
    struct rfx_axis_region *regions; /* scratch: RFX_SWEEP_REGIONS * n_nodes (stage.h) */
};

/* Takes rows of a node that a step makes, of so many steps that make as many. Of several, no border
 * cuts anything off inside of a group: they are alike in all but their place. */
typedef void rfx_rows_adder(void *user, int node, struct rfx_range rows, int64_t times);

/* The geometry of a stage. Tables of n_nodes, borrowed. */
struct rfx_stage_shape {
    struct rfx_stage_spec spec;
    int first, end; /* nodes computed here lie in [first, end) */
    const enum rfx_node_place *places;
    const struct rfx_node_rows *rows;
    const struct rfx_tile_extent *cols; /* columns of the parts; NULL: whole rows */
    int64_t overlap_rows;               /* image rows shared by parts that follow each other */
};

/* The stage at hand of a schedule. */
struct rfx_walk {
    const struct rfx_plan *plan;
    const struct rfx_stage *stage;
    bool restart; /* the next step of the image reads it from its first row */
    int64_t unit; /* of the stage's units, those that are done */
    void *state;  /* walk_bytes of the mode's own */
};

/* Which of the numbers and flags of a spec a mode has. */
enum rfx_mode_knows {
    RFX_KNOWS_PARTS_Y = 1 << 0,
    RFX_KNOWS_PARTS_X = 1 << 1,
    RFX_KNOWS_BANDS = 1 << 2,
    RFX_KNOWS_TIGHT = 1 << 3,
    RFX_KNOWS_ROW_BY_ROW = 1 << 4,
};

/* When a node's result may take over the bytes of an input that dies with it. */
enum rfx_take_over {
    RFX_TAKE_NEVER,
    RFX_TAKE_SAME_PART, /* of a local input that nobody else reads: both have the same part then */
    RFX_TAKE_ANY,       /* full maps lie in full maps */
};

struct rfx_trial;

struct rfx_mode {
    const char *name;   /* in plan files and reports */
    const char *a_mode; /* "a streamed stage", in messages */
    bool local;         /* computes only what is local in space, and feeds reductions */
    bool once;  /* visits its nodes one after the other: a stored map and packed constants are
                   needed only from their node's turn on */
    bool emits; /* makes the rows of its targets in order, so that outputs can be handed out, and
                   gives a step that spills the rows just made of a SPILLED node */
    bool rings; /* a local row y lies in slot y mod the rows of its buffer */
    bool trims; /* a single part across is cut to the columns that its targets need */
    unsigned knows;
    enum rfx_take_over take_over;

    /* What the planner tries of it (search/); n_trials 0: only what is asked for. */
    const struct rfx_trial *trials;
    int n_trials;

    /* Checks what of the spec's numbers the mode alone can judge. NULL: nothing. What it does not
     * know at all is refused for it. */
    enum rfx_status (*check)(const struct rfx_stage_spec *spec, struct rfx_error *err);

    /* Fills rows[n_nodes] for computed nodes, and *overlap_rows, from a spec without flags. Columns
     * do not matter to it. */
    void (*measure)(const struct rfx_mode_measure *measure, struct rfx_node_rows *rows,
                    int64_t *overlap_rows);

    /* The same of a stage that has much in common with others, by what a block of notes_bytes has
     * of all of them, which begins as zeros; false: it is none of those. NULL: nothing is noted. */
    size_t (*notes_bytes)(const struct rfx_graph *graph);
    bool (*recall)(void *notes, const struct rfx_mode_measure *measure, struct rfx_node_rows *rows,
                   int64_t *overlap_rows);

    /* Gives `add` the rows of all steps of a part of whole columns, node by node as they come,
     * alike ones together: every part across is run in the same steps of rows. Ends early when the
     * work is to stop. NULL: that is not so, or not known; then steps are walked. */
    void (*sweep_rows)(const struct rfx_mode_sweep *sweep, rfx_rows_adder *add, void *user);

    /* Image rows that a source which is read from top to bottom has to keep. NULL: none but the
     * rows that are asked for at a time. */
    int64_t (*window_rows)(const struct rfx_stage_shape *shape, int input);

    /* Rows per step of a node that is made row by row. NULL, 0: all of a part at once. */
    int64_t (*step_rows)(const struct rfx_graph *graph, const struct rfx_stage_spec *spec,
                         int node);

    /* Row by row: whether the map that a stage stores of node `after` may be written over that of
     * `before`, which nobody reads after the stage, and by how many bytes it then has to begin
     * below it. scratch: 2 * n_nodes; *lag: known of the two from an earlier stage, or INT64_MAX
     * and to be found. NULL: what slides does so while a single node is made (step_rows). */
    bool (*slide)(const struct rfx_graph *graph, const struct rfx_stage_shape *shape, int before,
                  int after, int64_t *scratch, int64_t *lag, size_t *down);

    /* Tight: whether rows of a step of `before` are read by no other node any more, then or later,
     * once `after` has made the same rows, which read them, and all those above. Both have whole
     * rows. scratch and *lag as above. NULL: no node is written over another one's rows. */
    bool (*frees)(const struct rfx_graph *graph, const struct rfx_stage_shape *shape, int before,
                  int after, int64_t *scratch, int64_t *lag);

    int64_t (*units)(const struct rfx_plan *plan, const struct rfx_stage *stage); /* of progress */
    size_t (*walk_bytes)(const struct rfx_graph *graph);

    /* To the stage's first step: fills walk->state. */
    void (*enter)(struct rfx_walk *walk);

    /* The next step of the body: kind, node and rect, which may be empty; false at the end. */
    bool (*next)(struct rfx_walk *walk, struct rfx_step *step);

    /* What of a local node is in memory while the last step runs; part->offset is set. NULL: the
     * whole map. */
    void (*part)(const struct rfx_walk *walk, int node, struct rfx_part *part);

    /* The stage in words, up to the target named `to`; alone: it is the whole plan. As snprintf. */
    int (*describe)(const struct rfx_stage_spec *spec, const char *to, bool alone, char *text,
                    size_t size);
};

/* The built-in modes (modes/modes.c) in the planner's order; *count of them. The first computes any
 * node: it takes what the others leave. */
const struct rfx_mode *const *rfx_modes(int *count);

/* The built-in mode of that name, or NULL. */
const struct rfx_mode *rfx_mode_find(const char *name);

/* The way that is meant where a cut is named and nothing else; no targets. */
struct rfx_stage_spec rfx_ask_cut(void);

/* For `next`: the step that computes `rect` of a node, fetches it or adds it to a reduction. */
void rfx_walk_compute(struct rfx_walk *walk, int node, struct rfx_rect rect, struct rfx_step *step);

/* The part of a target (of a reduction: of its input) that part (y, x) of the grid stands for. */
struct rfx_rect rfx_walk_own_rect(const struct rfx_walk *walk, int node, int64_t y, int64_t x);
#endif
