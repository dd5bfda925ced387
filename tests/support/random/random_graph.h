/* Random valid networks from a seed. */
#ifndef RFX_TESTS_SUPPORT_RANDOM_RANDOM_GRAPH_H
#define RFX_TESTS_SUPPORT_RANDOM_RANDOM_GRAPH_H

#include <stdio.h>

#include "layers/graph/graph.h"

struct random_graph_options {
    int64_t min_size, max_size; /* rows and columns of the image */
    int64_t max_c;              /* channels; now and then up to 33 when wide */
    int min_nodes, max_nodes;   /* attempts; ops that refuse their input are skipped */
    uint64_t ops;               /* bit `op` set: may be used; 0: all */
    bool spatial_only;          /* no global pools, so that any node can be tiled cheaply */
    int64_t max_elems;          /* larger maps are not upsampled or joined any more; 0: 40000 */
    bool wide;                  /* also: of some seeds, an image of few rows and many columns */
    int heads;                  /* of a hundred networks, those that end in a detector's head */
    int bottlenecks;            /* of a hundred residuals, those of two convolutions */
    int modern; /* likewise those that surely ask for a norm or attention somewhere */
    int bytes;  /* of a hundred nodes, those that make elements of another type */
    bool rough; /* also ops with jumps, poles and overflow (FLOOR, LOG, EXP, DIV, ...): for
                   comparing bits, not for comparing with a reference */
};

struct random_graph_options random_graph_defaults(void);

/* A finished graph; fusing is random too. RFX_TEST_CONV = direct, openblas, winograd says what its
 * convolutions are computed by; with the last more of them are of the kind that it takes. Aborts
 * when there is no memory. The same seed and
 * options give the same graph. */
struct rfx_graph *random_graph_make(struct rfx_memory *mem, uint64_t seed,
                                    const struct random_graph_options *options);

/* Networks that have such nodes. */
struct random_graph_kinds {
    int64_t norms, attention, heads, any;
};

/* Adds what this one has. */
void random_graph_count(const struct rfx_graph *graph, struct random_graph_kinds *kinds);
void random_graph_print_kinds(const struct random_graph_kinds *kinds, FILE *out);

/* One node per line with its attributes. */
void random_graph_print(const struct rfx_graph *graph, FILE *out);
#endif
