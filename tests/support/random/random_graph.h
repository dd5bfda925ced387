/* Random valid networks from a seed. */
#ifndef RFX_TESTS_SUPPORT_RANDOM_RANDOM_GRAPH_H
#define RFX_TESTS_SUPPORT_RANDOM_RANDOM_GRAPH_H

#include <stdio.h>

#include "layers/graph/graph.h"

struct random_graph_options {
    int64_t min_size, max_size; /* rows, and columns, of the image */
    int64_t max_c;              /* most channels; sometimes up to 33 if `wide` */
    int min_nodes, max_nodes;   /* number of attempts; a node that is refused is skipped */
    uint64_t ops;               /* bit `op`: the op may be used; 0: all ops */
    bool spatial_only;          /* no global pools, so that any node can be tiled cheaply */
    int64_t max_elems;          /* larger maps are not upsampled or joined; 0: 40000 */
    bool wide;                  /* some seeds also give an image of few rows and many columns */
    int heads;                  /* percentage of networks that end in a detector's head */
    int bottlenecks;            /* percentage of residuals with two convolutions */
    int modern;                 /* percentage of networks that certainly try a norm or attention */
    int bytes;                  /* percentage of nodes that convert elements to another type */
    int quantised;              /* percentage of networks that try a block of one-byte integers */
    bool rough; /* also ops with jumps, poles and overflow (FLOOR, LOG, EXP, DIV, ...): for
                   comparing bits, not for comparing with a reference */
};

struct random_graph_options random_graph_defaults(void);

/* Returns whether RFX_NETWORKS is "quantised": all random networks are then of one-byte integers.
 * Their values are the same with every instruction set. */
bool random_graph_only_bytes(void);

/* Returns a finished graph, with random rewrites. The same seed and options give the same graph.
 * RFX_TEST_CONV sets the choice of convolutions; with "winograd", more of them are of the kind that
 * Winograd computes. Aborts if there is no memory. */
struct rfx_graph *random_graph_make(struct rfx_memory *mem, uint64_t seed,
                                    const struct random_graph_options *options);

/* Numbers of networks that contain nodes of a kind. */
struct random_graph_kinds {
    int64_t norms, attention, heads, any; /* any: of these three */
    int64_t quantised;
};

/* Counts one network. */
void random_graph_count(const struct rfx_graph *graph, struct random_graph_kinds *kinds);
void random_graph_print_kinds(const struct random_graph_kinds *kinds, FILE *out);

/* Prints one node per line, with its attributes. */
void random_graph_print(const struct rfx_graph *graph, FILE *out);
#endif
