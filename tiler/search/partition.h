/* TODO */
#ifndef RFX_TILER_SEARCH_PARTITION_H
#define RFX_TILER_SEARCH_PARTITION_H

#include "tiler/plan/plan.h"

enum rfx_partition_kind {
    RFX_PARTITION_REST,  /* one stage for all */
    RFX_PARTITION_MAP,   /* a stage that stores the map at `cut`, the rest */
    RFX_PARTITION_CUT,   /* the same, but reductions of that map where nothing else reads it */
    RFX_PARTITION_CUTS,  /* a stage that stores the map at `cut`, one on to `second`, the rest */
    RFX_PARTITION_CHAIN, /* everything that is local in space, a stage per level. At the first
                           `passes` barriers no map is stored, and none of more than `store_to`
                           bytes at any: stages that need one start again from the image */
};

struct rfx_partition {
    enum rfx_partition_kind kind;
    int cut, second, passes;
    size_t spill_from; /* CHAIN: maps that a later stage reads, of at least so many bytes, are
                          spilled; 0: none */
    int more;          /* CHAIN: so many more stages, cut off where little has to be spilled */
    size_t store_to;   /* CHAIN: 0: no limit */
    size_t late_to;    /* CHAIN: in place of it from level `late` on; 0: the same */
    int late;
    const int *until; /* CHAIN: n_nodes: up to which level a map is stored for later stages, which
                         make it again from then on; -1: it is not stored. In place of what passes
                         and sizes say; NULL: that */
    int waist; /* CHAIN: around which of the network's waists it is cut too, from 1; 0: none */
};

/* Most stages that a chain may be given more. */
#define RFX_PARTITION_MAX_MORE 12

/* Who wants a node's tensor. */
enum rfx_node_use {
    RFX_USE_OUTPUT = 1 << 0, /* the user */
    RFX_USE_LOCAL = 1 << 1,  /* a node that is local in space */
    RFX_USE_ONWARD = 1 << 2, /* such a node of a higher level */
    RFX_USE_REST = 1 << 3,   /* a node that is neither local nor a reduction */
};

/* Sizes from which on maps may be spilled, or not stored, that are worth a trial. */
enum { RFX_PARTITION_MAX_SPILLS = 6 };

/* Levels of a graph's nodes, and who reads them, computed once. */
struct rfx_levels {
    const struct rfx_graph *graph;
    int *level;     /* n_nodes */
    int *last;      /* n_nodes: the highest level of a local node that reads it, or its own */
    bool *local;    /* n_nodes: what a stage of a local mode can compute */
    unsigned *uses; /* n_nodes: enum rfx_node_use */
    int *feeds;     /* n_feeds: the reductions over space, by rising index */
    int n_feeds;
    bool *stored; /* n_nodes: scratch */
    int n; /* levels: 1 + the highest level of a local node; 0: none is local, or there are so many
              that chains of stages are not tried */
};

/* Tables from graph->mem; free with rfx_levels_release. cuts: rising indices after which a further
 * level begins, as if there were barriers of other kinds (skeleton_cuts.c). */
RFX_NODISCARD enum rfx_status rfx_levels_init(struct rfx_levels *levels,
                                              const struct rfx_graph *graph, const int *cuts,
                                              int n_cuts, struct rfx_error *err);

/* Indices after which a graph is best cut into so many stages more, each with its share of the
 * bytes of a row of all maps, where little is read over the cut: cuts[more], rising. false: there
 * are not so many, or no memory for scratch. */
bool rfx_partition_find_cuts(const struct rfx_graph *graph, int more, int *cuts);

/* Where maps are small between larger ones, as in the middle of a U-Net. */
struct rfx_waist {
    int64_t pixels;   /* that its maps have at most */
    int cuts[2];      /* the first of them, and the last */
    size_t cut_bytes; /* of the larger of these two */
    bool is_one;      /* larger ones are before and behind it */
};

/* The waist of maps with the most pixels below a number; false: no map has fewer. */
bool rfx_partition_find_waist(const struct rfx_graph *graph, int64_t below,
                              struct rfx_waist *waist);
void rfx_levels_release(struct rfx_levels *levels);

/* Most stages that any skeleton of the graph has. */
int rfx_partition_max_stages(const struct rfx_levels *levels);

/* The sizes of maps that stages of a chain store for later ones, largest first; of many, some
 * spread over them, the smallest among them. Fills sizes[RFX_PARTITION_MAX_SPILLS], returns their
 * number. */
int rfx_partition_spills(const struct rfx_levels *levels, size_t *sizes);

/* Fills specs[max_stages] (targets, what is forgotten, and mode NULL for stages of what is local,
 * `rest` for the rest) and returns their number; targets and spilled are storage for max_stages *
 * n_nodes elements. */
int rfx_partition_stages(const struct rfx_levels *levels, const struct rfx_partition *partition,
                         const struct rfx_mode *rest, struct rfx_stage_spec *specs, int *targets,
                         bool *spilled);
#endif
