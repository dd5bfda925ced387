/* What an inference run keeps in memory: three ways of counting, exact on the graph.
 *
 * Invariants: 1. while a node runs, its inputs, its output and every tensor that is needed later
 * are alive; 2. constants are parameters, not activations; 3. all sizes are float32 bytes.
 * Source: paper 003, sections 2.1 and 3 (its figures count as EAGER, docs/notes/tradeoff.md).
 * It knows sizes per node only, so that whole maps and the parts of a tile are counted alike. */
#ifndef RFX_TOOLS_STUDY_BASELINE_H
#define RFX_TOOLS_STUDY_BASELINE_H

#include "layers/graph/graph.h"

enum rfx_baseline {
    RFX_BASELINE_EAGER,     /* batch norm, activation and Add each out of place */
    RFX_BASELINE_FUSED,     /* batch norm and activation inside the convolution */
    RFX_BASELINE_COALESCED, /* as FUSED, and Add writes over an operand that dies there */
    RFX_BASELINE_COUNT
};

/* "eager", "fused", "coalesced". */
const char *rfx_baseline_name(enum rfx_baseline baseline);

/* false when `text` is none of the names. */
bool rfx_baseline_parse(const char *text, enum rfx_baseline *out);

/* How a graph is to be loaded so that its tensors are the ones this baseline counts. */
struct rfx_fuse_options rfx_baseline_fuse(enum rfx_baseline baseline);

struct rfx_liveness {
    struct rfx_memory *mem;
    const struct rfx_graph *graph; /* borrowed */
    int *last_use;                 /* per node: the last reader, n_nodes for outputs */
    int *in_place;                 /* per node: the operand it writes over, or -1 */
    size_t *whole_bytes;           /* per node: its full map, 0 for constants */
    size_t weights_bytes; /* every parameter as float32; a fused batch norm's scale is in the
                             weights, its shift the bias */
};

/* The liveness of a graph loaded with rfx_baseline_fuse(baseline). Free with rfx_liveness_free. */
RFX_NODISCARD enum rfx_status rfx_liveness_create(const struct rfx_graph *graph,
                                                  enum rfx_baseline baseline,
                                                  struct rfx_liveness **out, struct rfx_error *err);

void rfx_liveness_free(struct rfx_liveness *liveness);

/* Runs nodes [first, end) with bytes[i] per tensor (indexed by node). Tensors made before `first`
 * are not counted. Returns the largest sum of live bytes, without weights; *peak (may be NULL) is
 * the first node that reaches it; live[i] (may be NULL) what is alive while node i runs.
 * O(edges). Pinned by tests/unit/rf_analysis/test_baseline.c. */
size_t rfx_liveness_peak(const struct rfx_liveness *liveness, int first, int end,
                         const size_t *bytes, int *peak, size_t *live);
#endif
