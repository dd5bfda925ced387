/* Influence as the kernels themselves show it: pixels of one tensor are set to NaN, the nodes after
 * it run, and whatever reads a NaN becomes NaN. Nothing can cancel, whatever the weights are. */
#ifndef RFX_TESTS_SUPPORT_ORACLE_POISON_H
#define RFX_TESTS_SUPPORT_ORACLE_POISON_H

#include "tests/support/run/run_whole.h"

struct poison {
    const struct test_prepared *prepared;
    int source;   /* the node whose pixels are poisoned */
    float **base; /* every node's values without poison */
    float **outs; /* and with it; of nodes before `source` unused */
};

/* Replaces what can swallow a NaN or make one (LOG, SQRT, EXP, RECIPROCAL and POW become no
 * activation, DIV and POW of two maps a sum). To be called before the graph is prepared. */
void poison_tame(struct rfx_graph *graph);

/* Runs the graph once without poison. False when a NaN comes up by itself. */
bool poison_begin(const struct test_prepared *prepared, const float *input_nhwc,
                  struct poison *out);
void poison_end(struct poison *poison);

/* Runs all nodes after `source` with its marked pixels (row-major) NaN in all channels. */
void poison_run(struct poison *poison, int source, const bool *pixels);

/* Whether any channel of a pixel of node `i` is NaN now. */
bool poison_reached(const struct poison *poison, int i, int64_t pixel);
#endif
