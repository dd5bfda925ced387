/* The cost model predicts the time of a plan. It counts the operations and the moved bytes of the
 * plan's stages from their shapes, and multiplies each count by the measured cost of its unit on
 * this instruction set (cost_constants.h).
 *
 * The predicted time is a sum of counts times constants and nothing else. So the constants can be
 * fitted to measured times, and a candidate is predicted without being placed. Invariants: 1.
 * nothing measured during a run enters, except the cache sizes that the request gives; 2. counts
 * never fall with more pixels, more steps or smaller caches. The model does not know budgets, nor
 * where buffers lie. */
#ifndef RFX_TILER_COST_COST_H
#define RFX_TILER_COST_COST_H

#include "layers/graph/group.h"
#include "tiler/plan/mode.h"
#include "tiler/plan/plan.h"

/* Units of cost. Names: rfx_cost_unit_name. */
enum rfx_cost_unit {
    RFX_COST_DIRECT_MAC,    /* of convolutions by our own kernels, rounded up to whole vectors */
    RFX_COST_WINOGRAD_MAC,  /* of products of Winograd-transformed tiles */
    RFX_COST_OPENBLAS_MAC,  /* of convolutions by OpenBLAS */
    RFX_COST_CHANNEL_MAC,   /* of depthwise filters */
    RFX_COST_POOL_TAP,      /* one element of a pooling window */
    RFX_COST_FEW_MAC,       /* of convolutions with few channels */
    RFX_COST_OTHER_MAC,     /* matrices, transposed convolutions */
    RFX_COST_CONV_ELEMENT,  /* one output of a convolution, where its sum begins and ends */
    RFX_COST_TILE_ELEMENT,  /* of a Winograd tile, transformed or transformed back */
    RFX_COST_TILE_FACTOR,   /* of a filter whose transformed weights are computed during use */
    RFX_COST_ELEMENT,       /* one output of any other operator */
    RFX_COST_ACT_ELEMENT,   /* an activation that is not a clamp */
    RFX_COST_SUM_ELEMENT,   /* added to an exact sum over space */
    RFX_COST_IMAGE_ELEMENT, /* read from the image */
    RFX_COST_RUN,           /* one call of a kernel: a row of pixels for a panel of channels */
    RFX_COST_STEP,          /* one node computing one rectangle */
    RFX_COST_MEETING,       /* one node computing one rectangle by several threads together */
    RFX_COST_WEIGHT_BYTE,   /* weights read from outside a core's own cache */
    RFX_COST_SHARED_BYTE,   /* maps read from outside a core's own cache while multiply-adds go on
                               (dense convolutions) */
    RFX_COST_PLAIN_BYTE,    /* maps read from outside a core's own cache by all other nodes */
    RFX_COST_COLD_BYTE,     /* weights that no cache holds, prefetched */
    RFX_COST_AHEAD_BYTE,    /* maps that no cache holds, prefetched by dense convolutions */
    RFX_COST_DRAM_BYTE,     /* maps that no cache holds, of all other nodes */
    RFX_COST_LOAD_BYTE,     /* weights that are packed again */
    RFX_COST_SPILL_BYTE,    /* maps written to a file or read from it */
    RFX_COST_DECODING, /* picoseconds of decoding passes over an image that is read from the top */
    RFX_COST_UNITS
};

/* Returns the name of a unit, such as "direct_mac". */
const char *rfx_cost_unit_name(enum rfx_cost_unit unit);

struct rfx_cost_counts {
    double n[RFX_COST_UNITS];
};

/* Sizes inside of a group: the positions of each map grow linearly with the rows (axis 0) or
 * columns (axis 1) of the last one, up to the map's size. */
struct rfx_cost_group {
    int64_t one[2][RFX_GROUP_MAX_NODES];  /* positions needed for one position of the last map */
    int64_t more[2][RFX_GROUP_MAX_NODES]; /* positions added by each further one */
    double ring_bytes;
};

/* Costs of a node that do not depend on how it runs. */
struct rfx_cost_node {
    const struct rfx_cost_group *group; /* the group of which it is the last node; NULL: none */
    struct rfx_cost_counts pixel;       /* counts per computed pixel */
    double least;                       /* picoseconds per pixel, without bytes and calls */
    double runs;                        /* kernel calls per row of a step */
    double bytes;                       /* bytes per pixel */
    double packed;                      /* bytes of packed weights */
    int64_t halo;                       /* rows of the first input that the next step reads again */
    bool dense;                         /* a convolution that sums over channels */
    bool by_units;       /* the direct kernels read its weights once per block of the input */
    bool of_bytes;       /* an integer convolution: its maps are of one byte an element */
    int64_t tile, tiles; /* edge of a Winograd tile in pixels, and number of tiles per reading of
                            the weights; 0: no tiles */
    double made;         /* number of transformed weights computed at each reading; 0: stored */
};

struct rfx_cost_model {
    const struct rfx_graph *graph;
    const double *picoseconds; /* [RFX_COST_UNITS], for one thread */
    struct rfx_caches caches;  /* never 0 */
    int threads;
    double pass_picoseconds;     /* of the image's source; 0 until rfx_cost_read is called */
    double dram_speed;           /* speed of memory with these threads, relative to one thread */
    struct rfx_cost_node *nodes; /* of the graph's base, under the same indices */
    struct rfx_cost_group *groups;
    double *bytes;                /* n_nodes + 1: scratch */
    double *whole_bytes;          /* n_nodes + 1; for `whole` */
    double whole_round;           /* for `whole`: bytes that one pass over all nodes touches */
    struct rfx_stage_shape whole; /* the whole graph as one stage, node by node */
    enum rfx_node_place *whole_places;
    struct rfx_node_rows *whole_rows;
};

/* Makes the cost model of a graph with or without layer groups. Caches of 0 bytes are replaced by
 * usual sizes. Tables are allocated from graph->mem; the caller frees them with rfx_cost_release.
 */
RFX_NODISCARD enum rfx_status rfx_cost_init(struct rfx_cost_model *model,
                                            const struct rfx_graph *graph,
                                            const struct rfx_caches *caches, int threads,
                                            struct rfx_error *err);
void rfx_cost_release(struct rfx_cost_model *model);

/* Lets later counts include decoding passes over this image: one for each stage that begins at the
 * image or, in column strips, one for each strip. */
void rfx_cost_read(struct rfx_cost_model *model, const struct rfx_source_traits *source);

/* Adds the counts of a stage to *counts: of the node `only`, or of all nodes (-1). Cost: O(edges).
 */
void rfx_cost_count(const struct rfx_cost_model *model, const struct rfx_stage_shape *shape,
                    int only, struct rfx_cost_counts *counts);

/* Adds the counts of the whole graph run node by node. */
void rfx_cost_count_untiled(const struct rfx_cost_model *model, struct rfx_cost_counts *counts);

/* Fills the members of *fact that do not depend on the steps and strips of a group: all except
 * ring_bytes. */
void rfx_cost_describe_group(const struct rfx_group_attr *group, struct rfx_cost_group *fact);

/* Add the counts of a node of the base graph, or of a group of such nodes, when this node or group
 * and its neighbours are computed whole. */
void rfx_cost_count_whole(const struct rfx_cost_model *model, int node,
                          struct rfx_cost_counts *counts);
void rfx_cost_count_group(const struct rfx_cost_model *model, const struct rfx_group_attr *group,
                          const struct rfx_cost_group *fact, struct rfx_cost_counts *counts);

/* Returns the predicted time of the counts, at least 1. */
uint64_t rfx_cost_picoseconds(const struct rfx_cost_model *model,
                              const struct rfx_cost_counts *counts);

/* Returns a lower bound of a stage's time in picoseconds: its computation, without bytes and calls.
 * Much faster than counting. */
double rfx_cost_least(const struct rfx_cost_model *model, const struct rfx_stage_shape *shape);

/* Fills counts[i] with the cost counts of node i of a finished plan, for all n_nodes nodes; earlier
 * counts are overwritten. OUT_OF_MEMORY: its tables cannot be allocated. */
RFX_NODISCARD enum rfx_status rfx_cost_count_plan(const struct rfx_plan *plan,
                                                  const struct rfx_caches *caches,
                                                  struct rfx_cost_counts *counts,
                                                  struct rfx_error *err);

/* Predicted time of a group in all steps of a plan, in picoseconds. */
struct rfx_cost_times {
    double grouped; /* with the halos that each step computes again */
    double apart;   /* of its nodes, if they ran one by one in the same stages */
};

/* Fills times[i] for each group i of a finished plan whose graph has groups; 0 for all other nodes
 * of the n_nodes. OUT_OF_MEMORY: its tables cannot be allocated. */
RFX_NODISCARD enum rfx_status rfx_cost_time_groups(const struct rfx_plan *plan,
                                                   const struct rfx_caches *caches,
                                                   struct rfx_cost_times *times,
                                                   struct rfx_error *err);
#endif
