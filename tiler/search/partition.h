/* Partitions of a network into stages: which stages the planner tries, with which targets. Modes,
 * bands and tiles are chosen afterwards.
 *
 * Global operations are barriers: a node after one can begin only when the whole input of the
 * operation has been seen. A stream is also cut behind attention in large windows, because it would
 * hold a window of each, and where maps go through files because it would hold too many rows. The
 * level of a node is the number of barriers and cuts before it. */
#ifndef RFX_TILER_SEARCH_PARTITION_H
#define RFX_TILER_SEARCH_PARTITION_H

#include "tiler/plan/plan.h"

enum rfx_partition_kind {
    RFX_PARTITION_REST,  /* one stage for everything */
    RFX_PARTITION_MAP,   /* a stage that stores the map at `cut`, then the tail */
    RFX_PARTITION_CUT,   /* the same, but if only reductions read that map, the stage stores their
                            results instead */
    RFX_PARTITION_CUTS,  /* a stage that stores the map at `cut`, one that goes on to `second`, then
                            the tail */
    RFX_PARTITION_CHAIN, /* all nodes that are local in space, one stage per level. No map is stored
                            at the first `passes` barriers, and no map of more than `store_to` bytes
                            at any barrier; a stage that needs such a map computes it again from the
                            image */
};

struct rfx_partition {
    enum rfx_partition_kind kind;
    int cut, second, passes;
    size_t spill_from; /* CHAIN: maps of at least this many bytes that a later stage reads are
                          spilled; 0: none */
    int more;          /* CHAIN: number of additional stages, cut where few bytes must be spilled */
    size_t store_to;   /* CHAIN: 0: no limit */
    size_t late_to;    /* CHAIN: replaces store_to from level `late` on; 0: no change */
    int late;
    const int
        *until; /* CHAIN: n_nodes: last level for which a map is stored (later stages compute it
                   again); -1: not stored. Overrides `passes` and the sizes; NULL: they apply */
    int waist; /* CHAIN: number (from 1) of the waist around which the chain is cut as well; 0: none
                */
};

/* Most additional stages of a chain. */
#define RFX_PARTITION_MAX_MORE 12

/* Most cuts behind attention in large windows. */
#define RFX_PARTITION_MAX_WINDOWS 32

/* Kinds of readers of a node's tensor. */
enum rfx_node_use {
    RFX_USE_OUTPUT = 1 << 0, /* the user reads it as an output */
    RFX_USE_LOCAL = 1 << 1,  /* a node that is local in space */
    RFX_USE_ONWARD = 1 << 2, /* a local node of a higher level */
    RFX_USE_REST = 1 << 3,   /* a node that is neither local nor a reduction */
};

/* Number of map sizes that are tried as limits for spilling or storing. */
enum { RFX_PARTITION_MAX_SPILLS = 6 };

/* Levels of a graph's nodes and their readers, computed once. */
struct rfx_levels {
    const struct rfx_graph *graph;
    int *level;     /* n_nodes */
    int *last;      /* n_nodes: highest level of a local node that reads it, or its own level */
    bool *local;    /* n_nodes: a stage of a local mode can compute it */
    unsigned *uses; /* n_nodes: enum rfx_node_use */
    int *feeds;     /* n_feeds: reductions over space, by rising index */
    int n_feeds;
    bool *stored; /* n_nodes: scratch */
    int n; /* number of levels, 1 + the highest level of a local node; 0: no node is local, or there
              are too many levels to try chains */
};

/* Computes the levels. Allocates tables from graph->mem; free them with rfx_levels_release. cuts:
 * node indices, rising; a further level begins after each of them. */
RFX_NODISCARD enum rfx_status rfx_levels_init(struct rfx_levels *levels,
                                              const struct rfx_graph *graph, const int *cuts,
                                              int n_cuts, struct rfx_error *err);

/* Finds the best node indices at which to cut a graph into `more` additional stages: each stage
 * gets its share of the row bytes of all maps, and few bytes are read across a cut. Fills
 * cuts[more], rising. *are_there: false if there are too few such cuts. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_partition_find_cuts(const struct rfx_graph *graph, int more,
                                                      int *cuts, bool *are_there,
                                                      struct rfx_error *err);

/* Finds a cut behind each of the first RFX_PARTITION_MAX_WINDOWS attentions in large windows, where
 * few bytes are read across the cut. Fills cuts[*n_cuts], rising. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_partition_window_cuts(const struct rfx_graph *graph, int *cuts,
                                                        int *n_cuts, struct rfx_error *err);

/* A waist: maps that are smaller than the maps before and after them, as in the middle of a
 * U-Net. */
struct rfx_waist {
    int64_t pixels;   /* most pixels of its maps */
    int cuts[2];      /* the first and the last of its maps */
    size_t cut_bytes; /* bytes of the larger of these two */
    bool is_one;      /* larger maps lie before and after it */
};

/* Finds the waist whose maps have the most pixels, but fewer than `below`. Returns false if no map
 * has fewer. */
bool rfx_partition_find_waist(const struct rfx_graph *graph, int64_t below,
                              struct rfx_waist *waist);
void rfx_levels_release(struct rfx_levels *levels);

/* Returns the most stages of any partition of the graph. */
int rfx_partition_max_stages(const struct rfx_levels *levels);

/* Lists the sizes of the maps that a chain's stages store for later stages, largest first. If there
 * are too many sizes, lists some that are spread over them and include the smallest. Fills
 * sizes[RFX_PARTITION_MAX_SPILLS] and returns their number. */
int rfx_partition_spills(const struct rfx_levels *levels, size_t *sizes);

/* Fills specs[max_stages] with targets, forgotten nodes and the mode (NULL for stages of local
 * nodes, `rest` for the others), and returns their number. targets and spilled: storage for
 * max_stages * n_nodes elements. */
int rfx_partition_stages(const struct rfx_levels *levels, const struct rfx_partition *partition,
                         const struct rfx_mode *rest, struct rfx_stage_spec *specs, int *targets,
                         bool *spilled);
#endif
