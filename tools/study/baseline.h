/* What an inference run keeps in memory under three ways of counting.
 *
 * While a node runs, its inputs, its output and every tensor that is needed later are counted.
 * Constants count as parameters, not as activations. All sizes are in bytes of float32.
 *
 * Source: paper 003, sections 2.1 and 3 (its figures are those of EAGER, see
 * docs/notes/tradeoff.md). Sizes are given per node, so that whole maps and tiles are counted by
 * the same code. */
#ifndef RFX_TOOLS_STUDY_BASELINE_H
#define RFX_TOOLS_STUDY_BASELINE_H

#include "layers/graph/graph.h"

enum rfx_baseline {
    RFX_BASELINE_EAGER,     /* batch norm, activation and Add write new tensors */
    RFX_BASELINE_FUSED,     /* batch norm and activation are part of the convolution */
    RFX_BASELINE_COALESCED, /* as FUSED, and Add writes its result over an operand that is not
                               needed afterwards */
    RFX_BASELINE_COUNT
};

/* "eager", "fused", "coalesced". */
const char *rfx_baseline_name(enum rfx_baseline baseline);

/* Returns false if `text` is none of the names. */
bool rfx_baseline_parse(const char *text, enum rfx_baseline *out);

/* Returns the options for loading a graph so that it has the tensors that this baseline counts. */
struct rfx_fuse_options rfx_baseline_fuse(enum rfx_baseline baseline);

struct rfx_liveness {
    struct rfx_memory *mem;
    const struct rfx_graph *graph; /* borrowed */
    int *last_use;                 /* per node: the last reader, n_nodes for outputs */
    int *in_place;                 /* per node: the operand that it overwrites, or -1 */
    size_t *whole_bytes;           /* per node: its whole map, 0 for constants */
    size_t weights_bytes; /* every parameter as float32; a fused batch norm has its scale in the
                             weights and its shift in the bias */
};

/* Computes when the tensors of a graph are needed. The graph must have been loaded with
 * rfx_baseline_fuse(baseline). Free with rfx_liveness_free. */
RFX_NODISCARD enum rfx_status rfx_liveness_create(const struct rfx_graph *graph,
                                                  enum rfx_baseline baseline,
                                                  struct rfx_liveness **out, struct rfx_error *err);

void rfx_liveness_free(struct rfx_liveness *liveness);

/* Runs the nodes [first, end) with tensors of bytes[i] (indexed by node) and returns the largest
 * sum of live bytes, without weights. Tensors computed before `first` are not counted. *peak (may
 * be NULL): the first node with that sum. live[i] (may be NULL): the live bytes while node i runs.
 * Takes O(edges). */
size_t rfx_liveness_peak(const struct rfx_liveness *liveness, int first, int end,
                         const size_t *bytes, int *peak, size_t *live);
#endif
