/* What `run --overlay` shows: which output, as what, settled before anything is run. */
#ifndef RFX_TOOLS_OVERLAY_OVERLAY_CHOICE_H
#define RFX_TOOLS_OVERLAY_OVERLAY_CHOICE_H

#include "layers/graph/graph.h"
#include "rfexec/output/output_stream.h"
#include "tools/cli/options.h"

struct rfx_overlay_choice {
    int output;      /* of the graph */
    int map;         /* the node of its map; of an output without channels not the output's own */
    int64_t channel; /* counted from 0; -1: labels */
    struct rfx_output_format format;
};

/* Settles the choice from the options: by default the first output that is a map over space, its
 * labels where it has several channels or is what ArgMax and the like give, else its values. Prints
 * why not and returns RFX_EXIT_USAGE. */
RFX_NODISCARD int rfx_overlay_choose(const struct rfx_graph *graph,
                                     const struct rfx_cli_run_options *options,
                                     struct rfx_overlay_choice *choice);

/* As rfx_overlay_choose for the page of --report alone, which nobody asked an overlay of: *shown
 * says whether there is one. Without --overlay-of and the like there is none, and nothing is
 * printed, where no output is a map, or where the first that is one may be a picture itself (of
 * three channels, or larger than the input); of channels that are shares each by itself it is the
 * first.
 */
RFX_NODISCARD int rfx_overlay_choose_for_page(const struct rfx_graph *graph,
                                              const struct rfx_cli_run_options *options,
                                              struct rfx_overlay_choice *choice, bool *shown);

/* The map that is shown. */
const struct rfx_tensor *rfx_overlay_map(const struct rfx_graph *graph,
                                         const struct rfx_overlay_choice *choice);

/* The picture that is written: as large as the network's input, three channels. */
struct rfx_tensor rfx_overlay_picture(const struct rfx_graph *graph);
#endif
