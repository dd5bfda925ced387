/* Runs a network where a mask selects pixels of one output (mask.h). The program and the library
 * both run masks through it.
 *
 * Each rectangle of the mask is planned and run within the budget, like a shard. After a global
 * operation every rectangle would need the whole image. Then the whole output is computed once, and
 * the mask only decides which pixels are written.
 *
 * Life: fill in the first members, rfx_masked_run_open, rfx_masked_run_execute,
 * rfx_masked_run_release. */
#ifndef RFX_RFEXEC_SHARDS_MASKED_RUN_H
#define RFX_RFEXEC_SHARDS_MASKED_RUN_H

#include "layers/graph/graph.h"
#include "rfexec/output/output_sink.h"
#include "rfexec/shards/mask.h"

struct rfx_masked_run {
    /* Set by the caller. All pointers are borrowed until rfx_masked_run_release. */
    struct rfx_memory *mem;
    const struct rfx_graph *graph; /* the whole network */
    int k;                         /* number of the output in the network */
    const char *path;              /* the mask image */
    const char *no_data;           /* the image's no-data value; NULL: none */
    size_t memory_bytes;           /* budget; 0: none */
    /* Plans the graph of a rectangle (part NULL: the whole network). Runs the plan with the sink,
     * unless the sink is NULL. */
    enum rfx_status (*make)(void *user, struct rfx_graph *part, const struct rfx_output_sink *sink,
                            struct rfx_error *err);
    void *user; /* first argument of make */
    /* Receives every pixel of the output once, in any order: begin, write and end are called. */
    const struct rfx_output_sink *to;

    /* Set by rfx_masked_run_open: */
    struct rfx_tensor map; /* the output's map */
    struct rfx_end end;    /* position of the map in the output */
    float fill;            /* value of pixels outside of the mask: the no-data value, or else 0 */
    bool is_global;        /* the whole output is computed */
    int global_node;       /* the global operation before the output; -1: none */
    struct rfx_mask mask;
    struct rfx_mask_rects rects;
    int64_t pixels; /* of all rectangles */

    /* Set by rfx_masked_run_execute: */
    int64_t done_pixels;  /* of the rectangles that are complete */
    struct rfx_rect rect; /* the current rectangle */
    int received;         /* number of the output in the graph of the current rectangle */
    float *block;         /* pixels on their way to run->to */
};

/* Looks at the output, reads the mask and finds the rectangles. is_global and global_node are also
 * set when reading the mask fails. Statuses: UNSUPPORTED: the output is not a map; those of
 * rfx_mask_open and rfx_part_graph_rounds. */
RFX_NODISCARD enum rfx_status rfx_masked_run_open(struct rfx_masked_run *run,
                                                  struct rfx_error *err);

/* Returns the memory that the run holds besides the plan of a rectangle and the output's files. */
size_t rfx_masked_run_bytes(const struct rfx_masked_run *run);

/* Under a budget, first plans all rectangles, the largest one first, so that a budget that is too
 * small fails before any rectangle is computed. Then calls run->to->begin, computes all rectangles,
 * writes the fill value between them, and calls run->to->end. Fails with the statuses of make and
 * of run->to. */
RFX_NODISCARD enum rfx_status rfx_masked_run_execute(struct rfx_masked_run *run,
                                                     struct rfx_error *err);

void rfx_masked_run_release(struct rfx_masked_run *run);
#endif
