/* A plan: how to run one graph on one image size, and where every buffer lives.
 *
 * A plan is a list of stages. A stage computes its targets and all that they need and no earlier
 * stage has stored, or has stored and forgotten; so a node may be computed again in a later stage.
 * Invariants: 1. a plan is const once created; 2. a tensor is stored, whole, by one stage at most,
 * in the arena or, spilled, in a file; 3. peak_bytes is the sum of the breakdown; 4. the schedule
 * over the plan (schedule.h) is what the executor runs, and sizes come from the modes that make its
 * steps (mode.h). */
#ifndef RFX_TILER_PLAN_PLAN_H
#define RFX_TILER_PLAN_PLAN_H

#include "layers/graph/graph.h"
#include "tiler/plan/source_traits.h"

struct rfx_mode;

/* How one stage is to run: what the planner chooses and plan files say. What a mode (modes/) does
 * not know is 0, false or, of parts, 1. */
struct rfx_stage_spec {
    const struct rfx_mode *mode;
    int64_t parts_y, parts_x; /* the targets' maps are cut into so many parts, made one after the
                                 other: tiles, column strips; at most one per position */
    int64_t band_rows;        /* image rows per step */
    bool row_by_row;          /* each node in steps of rows, so that a map may be written over
                                 dead rows of its input; streamed: a map that is stored, over
                                 dead rows of one that is read */
    bool tight;               /* a step's new rows lie in bytes that all nodes share, and those
                                 that outlive the step are copied to their ring after it */
    bool weights_by_stage;    /* packed constants are loaded when the stage begins */
    int n_targets;
    const int *targets;  /* nodes that the stage stores (of a reduction: its result) */
    const bool *spilled; /* n_targets: stored in a file, not in memory; NULL: none is */
    int n_forgotten;
    const int *forgotten; /* nodes that this stage or earlier ones stored and that no later one
                             reads: what needs them makes them again */
};

/* What a stage does with a node. */
enum rfx_node_place {
    RFX_PLACE_NONE,
    RFX_PLACE_READ,    /* full map that an earlier stage stored */
    RFX_PLACE_FETCHED, /* read part by part from the file to which an earlier stage spilled it, as
                          the image is: no input of it is needed */
    RFX_PLACE_LOCAL,   /* computed here; what is at hand of it lives in a buffer of the stage */
    RFX_PLACE_STORED,  /* computed here, into its full map */
    RFX_PLACE_EMITTED, /* as LOCAL, and an output of the network: handed out part by part */
    RFX_PLACE_SPILLED, /* as LOCAL, and written to a file part by part */
    RFX_PLACE_REDUCED, /* reduction fed part by part; its result is stored */
};

/* Whether a stage makes the node's values, part by part or whole: computes or fetches them. */
static inline bool rfx_place_is_computed(enum rfx_node_place place) {
    return place >= RFX_PLACE_FETCHED;
}

/* How many inputs a stage needs to make the node. */
static inline int rfx_place_inputs(enum rfx_node_place place, const struct rfx_node *node) {
    return place == RFX_PLACE_FETCHED ? 0 : node->n_in;
}

/* Whether what is at hand of the node lies in a buffer of the stage, not in its full map. */
static inline bool rfx_place_is_local(enum rfx_node_place place) {
    return place == RFX_PLACE_FETCHED || place == RFX_PLACE_LOCAL || place == RFX_PLACE_EMITTED ||
           place == RFX_PLACE_SPILLED;
}

/* Whether the node's full map is there while the stage runs: it makes it, or reads it. */
static inline bool rfx_place_has_map(enum rfx_node_place place) {
    return place == RFX_PLACE_READ || place == RFX_PLACE_STORED || place == RFX_PLACE_REDUCED;
}

struct rfx_buffer {
    size_t offset, bytes; /* in the arena; bytes 0: no buffer */
};

struct rfx_stage_node {
    struct rfx_buffer buffer; /* LOCAL and alike: the part at hand; REDUCED: the state */
    int64_t ring_rows;        /* rows of a ring; 0: the rows of the view, linear */
    struct rfx_buffer fresh;  /* of a tight ring: the rows of the step; bytes 0: in the ring */
    int last_reader;          /* of a tight ring: after this node the rows are copied */
    int over;                 /* of a tight ring: the node over whose rows of the step those of this
                                 one are written, row over row; -1: none */
    int64_t lead;             /* rows of `fresh` before those of a step, for nodes that lag behind
                                 this one and are written over it */
    int64_t step_rows;        /* row by row: rows per step; 0: all at once */
    bool upwards;             /* row by row from the last rows to the first */
    struct rfx_buffer packed; /* packed constants when they are loaded by stage */
};

struct rfx_stage {
    struct rfx_stage_spec spec;   /* its targets are the plan's own copy */
    int first, last;              /* nodes computed here lie in [first, last] */
    enum rfx_node_place *places;  /* n_nodes */
    struct rfx_stage_node *nodes; /* n_nodes */
    int *targets;
    bool *spilled;  /* n_targets */
    int *forgotten; /* spec.n_forgotten */
};

/* What a plan moves to files and back; all 0 where it spills nothing. */
struct rfx_plan_spill {
    uint64_t written, read; /* bytes in all */
    uint64_t most;          /* that the files hold at a time, at most */
};

struct rfx_plan_bytes { /* breakdown of the process peak */
    size_t arena;       /* activations; packed constants too when they are loaded by stage */
    size_t weights;     /* packed constants that stay */
    size_t scratch;     /* im2col panels and the like */
    size_t source;      /* image decoder and row window */
    size_t reserve;     /* code, libraries, stacks, BLAS buffers, tables: measured, see docs */
};

struct rfx_plan {
    struct rfx_memory *mem;
    const struct rfx_graph
        *graph;                /* borrowed, or `grouped`: the nodes are under the same indices */
    struct rfx_graph *grouped; /* the graph with groups of nodes (group.h), or with convolutions
                                  that keep factors; NULL: neither */
    int threads;
    int n_stages;
    struct rfx_stage *stages;
    int split;                 /* the only target of a first stage in parts, or -1 */
    struct rfx_buffer *stored; /* n_nodes: full maps; bytes 0: never stored */
    bool *resident;            /* n_nodes: packed constants are there for the whole run */
    bool in_place;             /* results may take over the bytes of inputs that die */
    int64_t window_rows;       /* for rfx_image_set_window */
    struct rfx_plan_bytes bytes;
    struct rfx_plan_spill spill;
    size_t peak_bytes;
    size_t lower_bound_bytes; /* of the arena: the largest sum of live buffers */
    const char *placement;    /* the strategy that gave the offsets */
    uint64_t macs, macs_untiled;
    uint64_t cost, cost_untiled; /* predicted time, and that of the same graph untiled, in
                                    picoseconds; see docs/notes/tradeoff.md */
};

/* The caches of the processor, for which nodes are grouped and times predicted. */
struct rfx_caches {
    size_t second_bytes; /* of each core; 0: nodes are not grouped */
    size_t shared_bytes; /* of all cores together */
};

/* Those of this machine, as the system reports them, or usual ones. */
struct rfx_caches rfx_machine_caches(void);

/* What is asked for, and what is left to the planner. */
struct rfx_plan_request {
    struct rfx_source_traits source;
    int threads;         /* >= 1 */
    size_t memory_bytes; /* 0: no budget */
    const char *split;   /* NULL: the planner chooses */
    /* The way of running. Mode NULL: the planner chooses it, and the flags hold for every stage
     * whose mode knows them. Else the stages before the cut run like this; no targets. */
    struct rfx_stage_spec asked;
    const struct rfx_stage_spec *stages; /* the whole plan by hand; NULL: the planner chooses */
    int n_stages;
    bool emit_outputs; /* outputs need not be stored where a stream makes them in order */
    bool no_inplace;   /* every tensor has bytes of its own */
    bool may_spill;    /* the planner may put maps between stages into files */
    /* Nodes computed depth first (group.h): these, by hand (NULL: none), or, when no stages are
     * given and no_groups is false, those that pay with these caches. */
    const struct rfx_group_attr *groups;
    int n_groups;
    bool no_groups;
    /* Convolutions that keep factors which they make otherwise (--conv winograd): these, by hand
     * (NULL: none), or, when no stages are given, those for which there is room, where that is
     * predicted to pay. */
    const int *keepers;
    int n_keepers;
    struct rfx_caches caches; /* zeros: nodes are not grouped, and usual caches are meant */
    const struct rfx_mode *const *modes; /* that the planner may use; NULL: all */
    int n_modes;
    struct rfx_plan_notes *notes; /* NULL: none */
    /* Code, libraries and stacks of this process, where its owner has measured them and they are
     * more than usual; 0: as usual. */
    size_t process_bytes;
};

/* What planning a graph has measured, for the next time the same graph is planned or surveyed. To
 * be freed before it; may take some MiB, as planning does. */
RFX_NODISCARD enum rfx_status rfx_plan_notes_create(struct rfx_memory *mem,
                                                    struct rfx_plan_notes **out,
                                                    struct rfx_error *err);
void rfx_plan_notes_free(struct rfx_plan_notes *notes);

/* Makes a plan. With memory_bytes: the least predicted time whose peak fits (what is given is
 * kept); BUDGET_IMPOSSIBLE names the smallest possible budget and its breakdown. Without: untiled
 * unless a mode or stages are given; parts without a split take the split with the smallest peak.
 * Groups that the planner chose itself are left out where a plan without them is smaller (when
 * nothing fits), the only one that fits, or predicted to be faster. INVALID_ARGUMENT: what is given
 * by hand is no plan. Free with rfx_plan_free; the graph must outlive the plan. */
RFX_NODISCARD enum rfx_status rfx_plan_create(const struct rfx_graph *graph,
                                              const struct rfx_plan_request *request,
                                              struct rfx_plan **out, struct rfx_error *err);

/* As rfx_plan_create; when it returns BUDGET_IMPOSSIBLE, *smallest receives the plan with the
 * smallest possible peak, to be freed by the caller. */
RFX_NODISCARD enum rfx_status rfx_plan_create_or_smallest(const struct rfx_graph *graph,
                                                          const struct rfx_plan_request *request,
                                                          struct rfx_plan **out,
                                                          struct rfx_plan **smallest,
                                                          struct rfx_error *err);

void rfx_plan_free(struct rfx_plan *plan);

/* Code, libraries and stacks of a process with this many threads (docs/memory.md says how that was
 * measured). */
size_t rfx_plan_reserve_bytes(int threads);

/* Whether some stage loads its packed constants when it begins. */
bool rfx_plan_loads_by_stage(const struct rfx_plan *plan);

/* What a run takes beside its arena, weights, scratch and image: as above, OpenBLAS where a node
 * calls it, the graph, and the tables of planner and session. O(nodes). */
size_t rfx_plan_process_bytes(const struct rfx_graph *graph,
                              const struct rfx_plan_request *request);

/* What a plan of so many stages takes more than one of a single stage. */
size_t rfx_plan_table_bytes(const struct rfx_graph *graph, int n_stages);

/* The peak of the process before it runs: while it loads the model, and while it plans, trying up
 * to max_stages stages and choosing n_stages. */
size_t rfx_plan_prepare_bytes(const struct rfx_graph *graph, int max_stages, int n_stages);

/* Where the bytes of a node are while the given stage runs. */
const struct rfx_buffer *rfx_plan_buffer(const struct rfx_plan *plan, int stage, int node);

/* The last stage that needs the file of a spilled map: -1: it is not spilled. */
int rfx_plan_spill_last(const struct rfx_plan *plan, int node);

#define RFX_PLAN_TEXT 400 /* characters that describe any plan of few stages */

/* "to features.6 in 4x4 tiles; rest whole" or "untiled" into text. */
void rfx_plan_describe(const struct rfx_plan *plan, char *text, size_t size);
#endif
