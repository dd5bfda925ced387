/* A plan: how to run one graph on one image size, and where every buffer lies.
 *
 * A plan is a list of stages. A stage computes its targets, and every node they need that no
 * earlier stage has stored (or that a stage has stored and forgotten again). So a node may be
 * computed again in a later stage.
 *
 * Invariants: 1. a plan is const once created; 2. a tensor is stored whole by at most one stage, in
 * the arena or, spilled, in a file; 3. peak_bytes is the sum of the breakdown; 4. the executor runs
 * the plan's schedule (schedule.h), and buffer sizes come from the modes that make its steps
 * (mode.h). */
#ifndef RFX_TILER_PLAN_PLAN_H
#define RFX_TILER_PLAN_PLAN_H

#include "layers/graph/graph.h"
#include "tiler/plan/source_traits.h"

struct rfx_mode;

/* How one stage runs: what the planner chooses and plan files contain. Fields that the mode
 * (modes/) does not support are 0 or false; tile counts are 1. */
struct rfx_stage_spec {
    const struct rfx_mode *mode;
    /* The targets' maps are divided into this grid of tiles (or column strips), which are computed
     * one after the other. An axis has at most as many tiles as positions. */
    int64_t tiles_y, tiles_x;
    int64_t band_rows; /* image rows per step */
    /* Compute row by row, overwriting input rows that are no longer needed. In a streamed stage: a
     * stored map overwrites rows of a map that the stage reads. */
    bool row_by_row;
    /* The new rows of a step are computed in staging memory that all nodes share. Rows that are
     * needed after the step are then copied to the ring of their node. */
    bool staging;
    bool weights_by_stage; /* packed weights are loaded when the stage begins */
    int n_targets;
    const int *targets;  /* nodes that the stage stores (of a reduction: its result) */
    const bool *spilled; /* n_targets: stored in a file instead of memory; NULL: none */
    int n_forgotten;
    const int *forgotten; /* nodes stored by this or an earlier stage that no later stage reads:
                             later stages that need one compute it again */
};

/* What a stage does with a node. */
enum rfx_node_place {
    RFX_PLACE_NONE,
    RFX_PLACE_READ,    /* full map, stored by an earlier stage */
    RFX_PLACE_FETCHED, /* spilled to a file by an earlier stage; read from it tile by tile, as the
                          image is; needs no inputs */
    RFX_PLACE_LOCAL,   /* computed here; its resident region lies in a buffer of the stage */
    RFX_PLACE_STORED,  /* computed here, into its full map */
    RFX_PLACE_EMITTED, /* like LOCAL, and an output of the network: handed out as it is computed */
    RFX_PLACE_SPILLED, /* like LOCAL, and written to a file as it is computed */
    RFX_PLACE_REDUCED, /* reduction that receives its input tile by tile; its result is stored */
};

/* Returns whether a stage produces the node's values: computes or fetches them. */
static inline bool rfx_place_is_computed(enum rfx_node_place place) {
    return place >= RFX_PLACE_FETCHED;
}

/* Number of inputs that a stage needs to produce the node. */
static inline int rfx_place_inputs(enum rfx_node_place place, const struct rfx_node *node) {
    return place == RFX_PLACE_FETCHED ? 0 : node->n_in;
}

/* Returns whether the node's resident region lies in a buffer of the stage, not in its full map. */
static inline bool rfx_place_is_local(enum rfx_node_place place) {
    return place == RFX_PLACE_FETCHED || place == RFX_PLACE_LOCAL || place == RFX_PLACE_EMITTED ||
           place == RFX_PLACE_SPILLED;
}

/* Returns whether the node's full map exists while the stage runs: the stage makes it or reads it.
 */
static inline bool rfx_place_has_map(enum rfx_node_place place) {
    return place == RFX_PLACE_READ || place == RFX_PLACE_STORED || place == RFX_PLACE_REDUCED;
}

struct rfx_buffer {
    size_t offset, bytes; /* in the arena; bytes 0: no buffer */
};

struct rfx_stage_node {
    struct rfx_buffer buffer;  /* local nodes: the resident region; REDUCED: the state */
    int64_t ring_rows;         /* rows of the ring; 0: no ring, the region's rows are contiguous */
    struct rfx_buffer staging; /* staging: the new rows of a step; bytes 0: they lie in the ring */
    int last_reader;           /* staging: node after which the rows are copied to the ring */
    /* staging: this node's new rows overwrite those of node `over`, row for row; -1: none */
    int over;
    /* rows reserved before the staging rows, for nodes that lag behind this one and overwrite it */
    int64_t lead;
    int64_t step_rows;        /* row by row: rows per step; 0: all at once */
    bool upwards;             /* row by row, from the last rows to the first */
    struct rfx_buffer packed; /* packed weights, where they are loaded by stage */
};

struct rfx_stage {
    struct rfx_stage_spec spec;   /* its targets are copies owned by the plan */
    int first, last;              /* computed nodes lie in [first, last] */
    enum rfx_node_place *places;  /* n_nodes */
    struct rfx_stage_node *nodes; /* n_nodes */
    int *targets;
    bool *spilled;  /* n_targets */
    int *forgotten; /* spec.n_forgotten */
};

/* Bytes that a plan moves to files and back; all 0 where nothing is spilled. */
struct rfx_plan_spill {
    uint64_t written, read; /* total bytes */
    uint64_t most;          /* most bytes in the files at a time */
};

struct rfx_plan_bytes { /* breakdown of the peak memory of the process */
    size_t arena;       /* activations; also packed weights that are loaded by stage */
    size_t weights;     /* packed weights that stay in memory */
    size_t scratch;     /* im2col panels and other workspace */
    size_t source;      /* image decoder and window of rows */
    size_t reserve; /* code, libraries, stacks, BLAS buffers, tables: measured (docs/memory.md) */
};

struct rfx_plan {
    struct rfx_memory *mem;
    const struct rfx_graph *graph; /* borrowed, or equal to `grouped`; node indices are the same */
    struct rfx_graph *grouped;     /* graph variant with groups of nodes (group.h) or with stored
                                      transformed weights; NULL: none */
    int threads;
    int n_stages;
    struct rfx_stage *stages;
    int split;                 /* the only target of a tiled first stage, or -1 */
    struct rfx_buffer *stored; /* n_nodes: full maps; bytes 0: not stored */
    bool *resident;            /* n_nodes: packed weights stay in memory for the whole run */
    bool in_place;             /* results may overwrite inputs that are no longer needed */
    int64_t window_rows;       /* argument of rfx_image_set_window */
    struct rfx_plan_bytes bytes;
    struct rfx_plan_spill spill;
    size_t peak_bytes;
    size_t lower_bound_bytes; /* lower bound of the arena: the largest sum of live buffers */
    const char *placement;    /* name of the packer that chose the offsets */
    uint64_t macs, macs_untiled;
    uint64_t cost, cost_untiled; /* predicted time of the plan and of the untiled graph, in
                                    picoseconds (docs/notes/tradeoff.md) */
};

/* Cache sizes of the processor: groups of nodes are chosen and times predicted for them. */
struct rfx_caches {
    size_t second_bytes; /* second-level cache of each core; 0: nodes are not grouped */
    size_t shared_bytes; /* last-level cache, shared by all cores */
};

/* Returns the cache sizes of this machine as the system reports them, or usual sizes. */
struct rfx_caches rfx_machine_caches(void);

/* What the caller asks for, and what is left to the planner. */
struct rfx_plan_request {
    struct rfx_source_traits source;
    int threads;         /* >= 1 */
    size_t memory_bytes; /* 0: no budget */
    const char *split;   /* NULL: the planner chooses */
    /* How stages run. If its mode is NULL, the planner chooses the modes, and the flags apply to
     * every stage whose mode supports them. Otherwise the stages before the split run as it says.
     * It has no targets. */
    struct rfx_stage_spec asked;
    /* All stages, given by the caller. NULL: the planner chooses. */
    const struct rfx_stage_spec *stages;
    int n_stages;
    bool emit_outputs; /* an output that a stream computes in order is handed out, not stored */
    bool no_inplace;   /* no result overwrites an input */
    bool may_spill;    /* the planner may store maps between stages in files */
    /* Groups of nodes that are computed depth first (group.h), given by the caller. NULL: the
     * planner groups nodes where that is predicted to save time with these caches, unless stages
     * are given or no_groups is set. */
    const struct rfx_group_attr *groups;
    int n_groups;
    bool no_groups;
    /* Winograd convolutions whose transformed weights are stored, given by the caller. NULL: the
     * planner stores as many as the budget has room for, if the plan is predicted to take no
     * longer. NULL with stages given: none are stored. */
    const int *keepers;
    int n_keepers;
    struct rfx_caches caches; /* zeros: no groups, and times are predicted for usual caches */
    const struct rfx_mode *const *modes; /* modes that the planner may use; NULL: all */
    int n_modes;
    struct rfx_plan_cache *cache; /* measurements of earlier planning; NULL: none */
    /* Bytes of code, libraries and stacks that the caller has measured. Used if they exceed the
     * planner's own value. 0: not measured. */
    size_t process_bytes;
};

/* Measurement cache for planning or surveying the same graph again. It may grow to a few MiB, and
 * must be freed before the graph. */
RFX_NODISCARD enum rfx_status rfx_plan_cache_create(struct rfx_memory *mem,
                                                    struct rfx_plan_cache **out,
                                                    struct rfx_error *err);
void rfx_plan_cache_free(struct rfx_plan_cache *cache);

/* Makes a plan. What the request fixes is kept.
 *
 * With memory_bytes, the plan has the least predicted time of those whose peak fits. If none fits,
 * BUDGET_IMPOSSIBLE names the smallest possible budget and its breakdown. Without memory_bytes, the
 * plan is untiled unless the request names a mode or stages. A request for tiles without a split
 * gets the split with the smallest peak.
 *
 * The planner drops groups that it chose itself where a plan without them is the only one that
 * fits, is predicted to be faster or, if nothing fits, is smaller. INVALID_ARGUMENT: what the
 * caller gave is not a valid plan. Free with rfx_plan_free; the graph must outlive the plan. */
RFX_NODISCARD enum rfx_status rfx_plan_create(const struct rfx_graph *graph,
                                              const struct rfx_plan_request *request,
                                              struct rfx_plan **out, struct rfx_error *err);

/* As rfx_plan_create. When it returns BUDGET_IMPOSSIBLE, *smallest receives the plan with the
 * smallest possible peak; the caller frees it. */
RFX_NODISCARD enum rfx_status rfx_plan_create_or_smallest(const struct rfx_graph *graph,
                                                          const struct rfx_plan_request *request,
                                                          struct rfx_plan **out,
                                                          struct rfx_plan **smallest,
                                                          struct rfx_error *err);

void rfx_plan_free(struct rfx_plan *plan);

/* Returns the bytes of code, libraries and stacks of a process with this many threads
 * (docs/memory.md says how they were measured). */
size_t rfx_plan_reserve_bytes(int threads);

/* Returns whether some stage loads its packed weights when it begins. */
bool rfx_plan_loads_by_stage(const struct rfx_plan *plan);

/* Returns the bytes of a run besides its arena, weights, workspace and image:
 * rfx_plan_reserve_bytes, OpenBLAS where a node calls it, the graph, and the tables of planner and
 * session. O(nodes). */
size_t rfx_plan_process_bytes(const struct rfx_graph *graph,
                              const struct rfx_plan_request *request);

/* Returns how many more bytes of tables a plan with n_stages stages takes than one with a single
 * stage. */
size_t rfx_plan_table_bytes(const struct rfx_graph *graph, int n_stages);

/* Returns the peak of the process before the run: the larger of the peak while it loads the model
 * and the peak while it plans, which tries up to max_stages stages and chooses n_stages. */
size_t rfx_plan_prepare_bytes(const struct rfx_graph *graph, const struct rfx_plan_request *request,
                              int max_stages, int n_stages);

/* Returns the buffer that holds a node while the given stage runs. */
const struct rfx_buffer *rfx_plan_buffer(const struct rfx_plan *plan, int stage, int node);

/* Returns the last stage that needs the file of a spilled map; -1: the map is not spilled. */
int rfx_plan_spill_last(const struct rfx_plan *plan, int node);

#define RFX_PLAN_TEXT 1600 /* characters; enough for 16 stages with names of usual lengths */

/* Writes the plan in words, such as "to features.6 in 4x4 tiles; rest whole" or "untiled". */
void rfx_plan_describe(const struct rfx_plan *plan, char *text, size_t size);
#endif
