/* The convolution backends: one row of functions per backend, and the choice of a backend for a
 * layer.
 *
 * Invariants: 1. The backend of a layer depends only on graph and node, never on budget, plan,
 * thread count or rectangle. So plans, shards and machines of one run agree on it. 2. A backend
 * gives every output element the same bits, whatever rectangle is requested and wherever it lies in
 * the map. If its arithmetic depends on the neighbours that are computed together with an element,
 * it computes whole blocks of a fixed grid (`block`) and discards the pixels that were not
 * requested. 3. All functions except `run` are pure, and `run` allocates nothing.
 *
 * Bias and slopes lie in front of a backend's packed weights; the operator packs them (packing.h).
 * The backend decides the layout of the weights. To add a backend, add its file and its row in
 * conv_backend.c. If the user names a backend, the graph records this when the model is loaded, so
 * that invariant 1 holds. */
#ifndef RFX_LAYERS_CONV_CONV_BACKEND_H
#define RFX_LAYERS_CONV_CONV_BACKEND_H

#include "layers/conv/conv.h"
#include "layers/kernels/packing.h"

/* Returns whether the threads divide among them the output channels of a layer that the direct
 * kernels compute. They do so if the layer has many weights, absolutely or compared to its input,
 * so that each thread reads only some of the weights. Otherwise the threads divide the pixels, and
 * each thread reads all weights. */
bool rfx_conv_shares_outputs(const struct rfx_conv_attr *a, double input_bytes, int threads);

/* Output pixels that are computed together: h rows by w columns. One block begins at row `from` and
 * column 0 of the full map; the other blocks lie on the same grid, and the map's borders cut them
 * off. 0 <= from < h. */
struct rfx_conv_block {
    int64_t h, w, from;
};

/* The work of a backend that computes tiles of output pixels. Time predictions use these counts. */
struct rfx_conv_tiles {
    int64_t edge;        /* rows, and columns, of a tile */
    int64_t together;    /* largest number of tiles that share one read of the weights */
    int64_t products;    /* multiply-adds per tile */
    int64_t transformed; /* transformed elements per tile: input windows and sums */
    int64_t made;        /* weights transformed at each read; 0: packed transformed */
};

/* The input of a backend's `pack`. */
struct rfx_conv_pack_job {
    const struct rfx_graph *graph;
    const struct rfx_node *node;
    const float *scale;               /* one scale factor per output channel, or NULL */
    const struct rfx_pack_part *part; /* the shard of the weights to pack; its temp is used */
    float *temp;                      /* temporary buffer: temp_elems uninitialised floats */
    int64_t temp_elems;               /* at least RFX_PACK_MIN_TEMP_ELEMS / 2 */
    float *weights; /* packed_bytes, aligned to RFX_ALIGNMENT_BYTES; shared by all shards */
};

struct rfx_conv_backend {
    const char *name; /* for reports, and for users to name: "openblas" */

    /* Returns whether the backend can compute this layer. If it cannot and `why` is not NULL,
     * writes the reason with its numbers into `why`, cut off at `size` bytes. Otherwise leaves
     * `why` unchanged. */
    bool (*accepts)(const struct rfx_graph *graph, const struct rfx_node *node, char *why,
                    size_t size);

    /* Returns the canonical block. NULL: pixels do not depend on their neighbours, block 1 x 1. */
    struct rfx_conv_block (*block)(const struct rfx_graph *graph, const struct rfx_node *node);

    /* Returns, for one axis, the output positions whose windows must be read to compute `out`. This
     * is more than `out` if the bits of a pixel depend on more than its own window. The required
     * input region follows from it. Schedules should compute whole blocks. NULL: `out` itself. */
    struct rfx_range (*widen)(const struct rfx_node *node, int axis, struct rfx_range out);

    /* Returns the bytes of the packed weights, without bias and slopes. */
    size_t (*packed_bytes)(const struct rfx_graph *graph, const struct rfx_node *node);

    /* Packs the job's shard of the node's weights, times scale, into job->weights. A backend that
     * cannot divide the work packs everything as shard 0. Returns the status of reading weights. */
    enum rfx_status (*pack)(const struct rfx_conv_pack_job *job, struct rfx_error *err);

    /* Returns the scratch bytes of one thread, enough for any rectangle. NULL: no scratch. */
    size_t (*scratch_bytes)(const struct rfx_graph *graph, const struct rfx_node *node);

    /* Returns the counts of its work by tiles. NULL: the backend does not compute tiles. */
    struct rfx_conv_tiles (*tiles)(const struct rfx_node *node);

    bool calls_blas; /* `run` calls OpenBLAS */

    /* Whether the output view of `run` may cover exactly the bytes of the residual. */
    bool in_place;

    /* Computes the job's rectangle with the job's threads: first the sums, then bias, residual and
     * activation, as rfx_conv_finish. */
    void (*run)(const struct rfx_conv_job *job);
};

/* Returns the backends, best first; *count receives their number. The table is constant. */
const struct rfx_conv_backend *const *rfx_conv_backends(int *count);

/* Returns the first backend that accepts the CONV node. Never returns NULL: the last backend
 * accepts every layer. */
const struct rfx_conv_backend *rfx_conv_backend_of(const struct rfx_graph *graph,
                                                   const struct rfx_node *node);

/* Returns the name of a choice: "direct", "openblas" or "winograd". */
const char *rfx_conv_choice_name(enum rfx_conv_choice choice);

/* Returns whether a choice has that name. If so, *choice receives it. */
bool rfx_conv_choice_find(const char *name, enum rfx_conv_choice *choice);

/* Returns the choice that takes effect on this processor: the graph's choice, or OpenBLAS if the
 * processor has no convolution kernels. */
enum rfx_conv_choice rfx_conv_choice_of(const struct rfx_graph *graph);

/* Returns the canonical block of any node: 1 x 1 if its pixels do not depend on each other. A
 * schedule that cuts rows at multiples of the block's height computes nothing twice. */
struct rfx_conv_block rfx_conv_block_of(const struct rfx_graph *graph, const struct rfx_node *node);

/* Returns the output positions whose windows the node's backend reads to compute `out` (see `widen`
 * above), clipped to the map. Returns `out` if the backend does not widen. */
struct rfx_range rfx_conv_widen(const struct rfx_graph *graph, const struct rfx_node *node,
                                int axis, struct rfx_range out);

/* Returns the number of rows that a stream must compute together to avoid recomputation: the block
 * of a backend that widens, else 1 x 1. */
struct rfx_conv_block rfx_conv_rows_together(const struct rfx_graph *graph,
                                             const struct rfx_node *node);

/* For backends: writes the reason into `why` unless `why` is NULL. Always returns false. */
bool rfx_conv_refuse(char *why, size_t size, const char *format, ...) RFX_PRINTF(3, 4);

/* For backends that use this library's own kernels: returns whether these kernels compute the
 * graph's convolutions. If not, writes the reason as rfx_conv_refuse does. */
bool rfx_conv_own_kernels(const struct rfx_graph *graph, char *why, size_t size);

/* For backends that store every weight once, as [group][tap][ic of the group][oc of the group]. For
 * depthwise filters `groups` is 1, and the layout is [tap][channel]. */
size_t rfx_conv_taps_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node);
RFX_NODISCARD enum rfx_status rfx_conv_taps_pack(const struct rfx_conv_pack_job *job,
                                                 int64_t groups, struct rfx_error *err);

/* Packs filters o0 .. o0 + n: reads [o][i][tap] from `reader`, writes [tap][i][o] to dst. A row of
 * dst has m floats, of which n are written. */
RFX_NODISCARD enum rfx_status rfx_conv_filters_pack(const struct rfx_conv_pack_job *job,
                                                    struct rfx_packing_reader *reader, int64_t o0,
                                                    int64_t n, float *dst, int64_t m);

/* Packs the outputs of every group in parts of `part` outputs; the last part has the outputs that
 * remain. Layout: [group][part][tap][ic of the group][output of the part]. */
RFX_NODISCARD enum rfx_status rfx_conv_parts_pack(const struct rfx_conv_pack_job *job, int64_t part,
                                                  struct rfx_error *err);

/* For backends that use the `conv` kernel: the kernel's weight layout (kernels.h), per group. */
size_t rfx_conv_panels_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node);
RFX_NODISCARD enum rfx_status rfx_conv_panels_pack(const struct rfx_conv_pack_job *job,
                                                   struct rfx_error *err);

extern const struct rfx_conv_backend rfx_conv_depthwise, rfx_conv_direct, rfx_conv_few_channels,
    rfx_conv_few_outputs, rfx_conv_grouped, rfx_conv_openblas, rfx_conv_winograd;
#endif
