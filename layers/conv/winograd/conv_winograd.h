/* Declarations that the files of the Winograd convolution share. conv_winograd.c has the choice of
 * layers and the sizes, conv_winograd_unit.c the computation, conv_winograd_pack.c the packing of
 * weights. */
#ifndef RFX_LAYERS_CONV_WINOGRAD_CONV_WINOGRAD_H
#define RFX_LAYERS_CONV_WINOGRAD_CONV_WINOGRAD_H

#include "layers/conv/conv_backend.h"

#define RFX_WINOGRAD_TAPS 9
#define RFX_WINOGRAD_MOST_WINDOW 49   /* most pixels of a window; also the most products */
#define RFX_WINOGRAD_OUT_CHANNELS 128 /* most output channels between two inverse transforms */
#define RFX_WINOGRAD_PAD 16           /* floats of padding: spreads products over the cache sets */

struct rfx_winograd {
    const struct rfx_conv_job *job;
    int64_t outputs, window;   /* edge of a tile (2 or 4; stride 2: 3), of its window */
    int64_t products, factors; /* per channel pair: of a tile; transformed weights */
    bool makes_factors;    /* transforms weights during the run; else they are packed transformed */
    int64_t out_channels;  /* output channels between two inverse transforms */
    int64_t slice, slices; /* input channels per slice, and number of slices */
    int64_t from;          /* row at which one tile begins */
    int64_t ty0, tx0, across, tiles;
    int64_t units, panel_parts;  /* work items: units of tiles, times parts of the panels */
    struct rfx_rect there;       /* the input pixels that exist */
    int64_t in_step, out_step;   /* floats from tile to tile */
    int64_t in_plane, out_plane; /* floats from product to product */
    size_t outside_bytes, in_bytes, sums_bytes, factors_bytes; /* of a thread's scratch, in order */
};

/* Computes work item `index` of the units * panel_parts items of a struct rfx_winograd. For
 * rfx_team_for. */
void rfx_winograd_make_unit(void *winograd, int64_t index, int thread);

/* Packs the transformed weights of every filter: for each of them the layout of
 * rfx_conv_panels_pack. If makes_factors, packs the untransformed weights instead:
 * [panel][ic][tap][filter of the panel]. */
RFX_NODISCARD enum rfx_status rfx_winograd_pack(const struct rfx_conv_pack_job *job,
                                                int64_t outputs, bool makes_factors,
                                                struct rfx_error *err);
#endif
