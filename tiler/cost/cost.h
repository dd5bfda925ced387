/* TODO */
#ifndef RFX_TILER_COST_COST_H
#define RFX_TILER_COST_COST_H

#include "layers/graph/group.h"
#include "tiler/plan/mode.h"
#include "tiler/plan/plan.h"

/* What is counted. Names: rfx_cost_unit_name. */
enum rfx_cost_unit {
    RFX_COST_DIRECT_MAC,    /* of convolutions by own kernels, filled up to whole vectors */
    RFX_COST_WINOGRAD_MAC,  /* of products of transformed tiles */
    RFX_COST_OPENBLAS_MAC,  /* of convolutions by OpenBLAS */
    RFX_COST_CHANNEL_MAC,   /* of depthwise filters */
    RFX_COST_POOL_TAP,      /* an element of the window of a pool */
    RFX_COST_FEW_MAC,       /* of convolutions with few channels */
    RFX_COST_OTHER_MAC,     /* matrices, transposed convolutions */
    RFX_COST_CONV_ELEMENT,  /* an output of a convolution, where its sum begins and ends */
    RFX_COST_TILE_ELEMENT,  /* of a tile, transformed or transformed back */
    RFX_COST_TILE_FACTOR,   /* of a filter, made while it is used */
    RFX_COST_ELEMENT,       /* an output of anything else */
    RFX_COST_ACT_ELEMENT,   /* an activation that is no clamp */
    RFX_COST_SUM_ELEMENT,   /* taken into an exact sum over space */
    RFX_COST_IMAGE_ELEMENT, /* read from the image */
    RFX_COST_RUN,           /* a row of pixels for a panel of channels: a call of a kernel */
    RFX_COST_STEP,          /* a node computing a rectangle */
    RFX_COST_MEETING,       /* the same, with threads that share it */
    RFX_COST_WEIGHT_BYTE,   /* of constants that a core's own cache does not hold */
    RFX_COST_SHARED_BYTE,   /* of maps, likewise, where multiply-adds go on meanwhile */
    RFX_COST_PLAIN_BYTE,    /* of maps, likewise, of all nodes but dense convolutions */
    RFX_COST_COLD_BYTE,     /* of constants that no cache holds: they are asked for ahead */
    RFX_COST_AHEAD_BYTE,    /* of maps that no cache holds, asked for by dense convolutions */
    RFX_COST_DRAM_BYTE,     /* of maps that no cache holds, of all other nodes */
    RFX_COST_LOAD_BYTE,     /* of constants packed again */
    RFX_COST_SPILL_BYTE,    /* of maps, written to a file or read from it */
    RFX_COST_DECODING,      /* picoseconds of passes over an image that is decoded from the top */
    RFX_COST_UNITS
};

/* "direct_mac" and so on. */
const char *rfx_cost_unit_name(enum rfx_cost_unit unit);

struct rfx_cost_counts {
    double n[RFX_COST_UNITS];
};

/* What is known of a group of the graph: positions of each map inside, for rows (axis 0) or columns
 * of the last one, grow evenly up to the map's size. */
struct rfx_cost_group {
    int64_t one[2][RFX_GROUP_MAX_NODES];  /* that one position needs */
    int64_t more[2][RFX_GROUP_MAX_NODES]; /* that each further one adds */
    double ring_bytes;
};

/* What is known of a node before it is known how it runs. */
struct rfx_cost_node {
    const struct rfx_cost_group *group; /* of which it is the last node; NULL: none */
    struct rfx_cost_counts pixel;       /* per pixel computed */
    double least;                       /* picoseconds that a pixel takes at least */
    double runs;                        /* per row of a step: kernel calls */
    double bytes;                       /* of a pixel */
    double packed;                      /* bytes of constants */
    int64_t halo;                       /* input rows of the first input that a step reads again */
    bool dense;                         /* a convolution whose sums go over channels */
    bool by_units;       /* reads its constants once per unit of the direct kernels */
    int64_t tile, tiles; /* pixels of a tile, both ways, and of how many constants are read once;
                            0: it has none */
    double made;         /* factors made each time */
};

struct rfx_cost_model {
    const struct rfx_graph *graph;
    const double *picoseconds; /* [RFX_COST_UNITS], of one thread */
    struct rfx_caches caches;  /* none is 0 */
    int threads;
    double pass_picoseconds;     /* of the image's source; 0 until rfx_cost_read is called */
    double dram_speed;           /* of memory for these threads, one thread's as 1 */
    struct rfx_cost_node *nodes; /* of the graph's base, under the same indices */
    struct rfx_cost_group *groups;
    double *bytes;                /* n_nodes + 1: scratch */
    double *whole_bytes;          /* n_nodes + 1, and */
    double whole_round;           /* what one time through all touches: of `whole` */
    struct rfx_stage_shape whole; /* the whole graph as one stage, node by node */
    enum rfx_node_place *whole_places;
    struct rfx_node_rows *whole_rows;
};

/* The model of a graph, grouped or not; caches of 0 bytes are taken for usual ones. Tables from
 * graph->mem, freed with rfx_cost_release. */
RFX_NODISCARD enum rfx_status rfx_cost_init(struct rfx_cost_model *model,
                                            const struct rfx_graph *graph,
                                            const struct rfx_caches *caches, int threads,
                                            struct rfx_error *err);
void rfx_cost_release(struct rfx_cost_model *model);

/* Counts the passes over this image from now on: each stage that begins there is one, and in column
 * strips each strip. */
void rfx_cost_read(struct rfx_cost_model *model, const struct rfx_source_traits *source);

/* Adds what a stage makes and moves to counts; of node `only`, or of all (-1). O(edges). */
void rfx_cost_count(const struct rfx_cost_model *model, const struct rfx_stage_shape *shape,
                    int only, struct rfx_cost_counts *counts);

/* What the whole graph run node by node makes and moves. */
void rfx_cost_count_untiled(const struct rfx_cost_model *model, struct rfx_cost_counts *counts);

/* Fills what does not depend on the steps and strips of a group: all but its ring_bytes. */
void rfx_cost_describe_group(const struct rfx_group_attr *group, struct rfx_cost_group *fact);

/* Adds a node of the base made whole at once, between nodes that are, or a group of such nodes. */
void rfx_cost_count_whole(const struct rfx_cost_model *model, int node,
                          struct rfx_cost_counts *counts);
void rfx_cost_count_group(const struct rfx_cost_model *model, const struct rfx_group_attr *group,
                          const struct rfx_cost_group *fact, struct rfx_cost_counts *counts);

/* The time that counts come to, at least 1. */
uint64_t rfx_cost_picoseconds(const struct rfx_cost_model *model,
                              const struct rfx_cost_counts *counts);

/* Picoseconds that a stage takes at least: what it computes, without bytes and without calls. Many
 * times as fast as counting. */
double rfx_cost_least(const struct rfx_cost_model *model, const struct rfx_stage_shape *shape);

/* What a finished plan makes and moves, node by node: counts[n_nodes]. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_cost_count_plan(const struct rfx_plan *plan,
                                                  const struct rfx_caches *caches,
                                                  struct rfx_cost_counts *counts,
                                                  struct rfx_error *err);
#endif
