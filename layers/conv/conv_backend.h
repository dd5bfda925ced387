/* What computes convolutions: a row of functions per backend, and the choice among them.
 *
 * Invariants: 1. which backend computes a layer is a function of graph and node alone, never of
 * budget, plan, thread count or rectangle: plans, pieces and machines of one run agree on it; 2. a
 * backend gives every output element the same bits whatever rectangle it is asked for, at whatever
 * place of the map; where its arithmetic depends on the neighbours that are computed with an
 * element, it computes whole blocks of a fixed grid (`block`) and throws away what is not wanted;
 * 3. all but `run` are pure, and `run` allocates nothing.
 *
 * Bias and slopes lie in front of a backend's packed weights and are the operator's business
 * (packing.h); the layout of the weights is the backend's. Adding one: its file, its row in
 * conv_backend.c. A backend that the user asks for by name is told to the graph when the model is
 * loaded, so that invariant 1 holds. */
#ifndef RFX_LAYERS_CONV_CONV_BACKEND_H
#define RFX_LAYERS_CONV_CONV_BACKEND_H

#include "layers/conv/conv.h"
#include "layers/kernels/packing.h"

/* Whether threads share the output channels of a step of a layer that the direct kernels compute,
 * as its weights are many, or many beside its input, so that each reads some of them. Else threads
 * share the pixels, and each reads all weights. */
bool rfx_conv_shares_outputs(const struct rfx_conv_attr *a, double input_bytes, int threads);

/* Output pixels that are computed as one: h x w, one of them at row `from` and column 0 of the full
 * map, the others beside it, cut off at the map's ends. 0 <= from < h. */
struct rfx_conv_block {
    int64_t h, w, from;
};

/* Work by tiles of output pixels, in counts that predictions of time are made from. */
struct rfx_conv_tiles {
    int64_t edge;        /* pixels of a tile, both ways */
    int64_t together;    /* tiles, at most, for which weights are read once */
    int64_t products;    /* multiply-adds of a tile */
    int64_t transformed; /* elements of its windows and sums */
    int64_t made;        /* factors made each time that weights are read; 0: they are kept */
};

/* What a backend packs from. */
struct rfx_conv_pack_job {
    const struct rfx_graph *graph;
    const struct rfx_node *node;
    const float *scale;               /* one factor per output channel, or NULL: none */
    const struct rfx_pack_part *part; /* what of it is asked for; its temp is taken */
    float *temp;                      /* temp_elems floats of garbage */
    int64_t temp_elems;               /* at least RFX_PACK_MIN_TEMP_ELEMS / 2 */
    float *weights; /* packed_bytes, aligned to RFX_ALIGNMENT_BYTES; all parts are given it alike */
};

struct rfx_conv_backend {
    const char *name; /* for reports and for asking: "openblas" */

    /* Whether it can compute this layer. If not, and `why` is not NULL, `why` receives the reason
     * in words, with the numbers, cut off at `size` bytes; else it is left alone. */
    bool (*accepts)(const struct rfx_graph *graph, const struct rfx_node *node, char *why,
                    size_t size);

    /* The canonical block. NULL: every pixel is computed alone (1 x 1). */
    struct rfx_conv_block (*block)(const struct rfx_graph *graph, const struct rfx_node *node);

    /* Of one axis, the output positions whose windows `out` reads: where a pixel's bits depend on
     * more than its own window, more than `out`. Regions of the input follow from it, and
     * schedules do well to make whole blocks. NULL: `out` itself. */
    struct rfx_range (*widen)(const struct rfx_node *node, int axis, struct rfx_range out);

    /* Bytes of its packed weights (without bias and slopes). */
    size_t (*packed_bytes)(const struct rfx_graph *graph, const struct rfx_node *node);

    /* Packs the job's part of the node's weights, times scale, into job->weights; a backend that
     * cannot cut its work does all of it as part 0. Statuses of reading weights. */
    enum rfx_status (*pack)(const struct rfx_conv_pack_job *job, struct rfx_error *err);

    /* Scratch of one thread, for any rectangle. NULL: none. */
    size_t (*scratch_bytes)(const struct rfx_graph *graph, const struct rfx_node *node);

    /* Its work by tiles. NULL: it has none. */
    struct rfx_conv_tiles (*tiles)(const struct rfx_node *node);

    bool calls_blas; /* `run` does */

    /* Whether `run` may be given an output view over exactly the bytes of the residual. */
    bool in_place;

    /* Computes the job's rectangle, with its threads: sums, then rfx_conv_finish. */
    void (*run)(const struct rfx_conv_job *job);
};

/* The backends, best first; *count receives their number. Constant. */
const struct rfx_conv_backend *const *rfx_conv_backends(int *count);

/* The first backend that accepts the CONV node; never NULL: the last one accepts all. */
const struct rfx_conv_backend *rfx_conv_backend_of(const struct rfx_graph *graph,
                                                   const struct rfx_node *node);

/* "direct", "openblas", "winograd". */
const char *rfx_conv_choice_name(enum rfx_conv_choice choice);

/* Whether there is a choice of that name; *choice receives it. */
bool rfx_conv_choice_find(const char *name, enum rfx_conv_choice *choice);

/* What a graph's choice comes to on this processor. */
enum rfx_conv_choice rfx_conv_choice_of(const struct rfx_graph *graph);

/* The canonical block of any node: 1 x 1 where pixels are computed alone. Schedules that cut rows
 * at multiples of its height compute nothing twice. */
struct rfx_conv_block rfx_conv_block_of(const struct rfx_graph *graph, const struct rfx_node *node);

/* Returns the output positions whose windows the node's backend reads to compute `out` (see `widen`
 * above), clipped to the map. Returns `out` if the backend does not widen. */
struct rfx_range rfx_conv_widen(const struct rfx_graph *graph, const struct rfx_node *node,
                                int axis, struct rfx_range out);

/* Returns the number of rows that a stream must compute together to avoid recomputation: the block
 * of a backend that widens, else 1 x 1. */
struct rfx_conv_block rfx_conv_rows_together(const struct rfx_graph *graph,
                                             const struct rfx_node *node);

/* For backends: writes the reason into `why` unless it is NULL; returns false. */
bool rfx_conv_refuse(char *why, size_t size, const char *format, ...) RFX_PRINTF(3, 4);

/* For backends with own kernels: whether those compute the graph's convolutions. If not, writes the
 * reason as rfx_conv_refuse does. */
bool rfx_conv_own_kernels(const struct rfx_graph *graph, char *why, size_t size);

/* For backends that keep every weight once, as [group][tap][ic of the group][oc of the group]:
 * `groups` is 1 for depthwise filters, which are then [tap][channel]. */
size_t rfx_conv_taps_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node);
RFX_NODISCARD enum rfx_status rfx_conv_taps_pack(const struct rfx_conv_pack_job *job,
                                                 int64_t groups, struct rfx_error *err);

/* Up to 16 filters o0 .. o0 + n: source [o][i][tap] -> dst [tap][i][o], m floats for the o's, of
 * which n are written. */
RFX_NODISCARD enum rfx_status rfx_conv_filters_pack(const struct rfx_conv_pack_job *job,
                                                    struct rfx_packing_reader *reader, int64_t o0,
                                                    int64_t n, float *dst, int64_t m);

/* The same for every group's outputs in parts of `part`, the last one as narrow as what is left:
 * [group][part][tap][ic of the group][output of the part]. */
RFX_NODISCARD enum rfx_status rfx_conv_parts_pack(const struct rfx_conv_pack_job *job, int64_t part,
                                                  struct rfx_error *err);

/* For backends that compute with the `conv` kernel: its layout (kernels.h), per group. */
size_t rfx_conv_panels_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node);
RFX_NODISCARD enum rfx_status rfx_conv_panels_pack(const struct rfx_conv_pack_job *job,
                                                   struct rfx_error *err);

extern const struct rfx_conv_backend rfx_conv_depthwise, rfx_conv_direct, rfx_conv_few_channels,
    rfx_conv_few_outputs, rfx_conv_grouped, rfx_conv_openblas, rfx_conv_winograd;
#endif
