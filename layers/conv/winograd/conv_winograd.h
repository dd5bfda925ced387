/* What the parts of Winograd convolutions share: conv_winograd.c has the choice and the sizes,
 * conv_winograd_unit.c the work, conv_winograd_pack.c the filters. */
#ifndef RFX_LAYERS_CONV_WINOGRAD_CONV_WINOGRAD_H
#define RFX_LAYERS_CONV_WINOGRAD_CONV_WINOGRAD_H

#include "layers/conv/conv_backend.h"

#define RFX_WINOGRAD_TAPS 9
#define RFX_WINOGRAD_MOST_WINDOW 49   /* pixels, and products */
#define RFX_WINOGRAD_OUT_CHANNELS 128 /* at most, whose sums wait for the transform back */
#define RFX_WINOGRAD_PAD 16           /* floats: keeps products apart in the sets of a cache */

struct rfx_winograd {
    const struct rfx_conv_job *job;
    int64_t outputs, window;   /* of a tile: 2 or 4, or 3 with stride 2; rfx_winograd_window */
    int64_t products, factors; /* per input and output channel: of a tile, of a filter */
    bool makes_factors;        /* while they are used; else they are packed */
    int64_t out_channels;      /* whose sums wait for the transform back */
    int64_t slice, slices;     /* input channels at a time, and how often */
    int64_t from;              /* row at which a tile begins */
    int64_t ty0, tx0, across, tiles;
    int64_t units, panel_parts;  /* work: of tiles, of output channels */
    struct rfx_rect there;       /* of the input */
    int64_t in_step, out_step;   /* floats from tile to tile */
    int64_t in_plane, out_plane; /* and from product to product */
    size_t outside_bytes, in_bytes, sums_bytes, factors_bytes; /* of a thread's scratch, in turn */
};

/* Item `index` of units * panel_parts of a struct rfx_winograd, for rfx_team_for. */
void rfx_winograd_make_unit(void *winograd, int64_t index, int thread);

/* Packs the factors of every filter, in the layout of rfx_conv_panels_pack per factor; or only
 * what they are made from: [panel][ic][tap][filter of the panel]. */
RFX_NODISCARD enum rfx_status rfx_winograd_pack(const struct rfx_conv_pack_job *job,
                                                int64_t outputs, bool makes_factors,
                                                struct rfx_error *err);
#endif
