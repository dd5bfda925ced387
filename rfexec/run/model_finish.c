/* The last steps of loading a model, the same for built-in networks and files. */
#include "layers/conv/winograd/conv_tile_rows.h"
#include "rfexec/run/keep_tensors.h"
#include "rfexec/run/model.h"

enum rfx_status rfx_model_finish(struct rfx_graph *graph, const struct rfx_load_options *options,
                                 struct rfx_error *err) {
    enum rfx_status status = rfx_fit_cut_outputs(graph, &options->fit, err);
    if (status == RFX_OK) status = rfx_graph_keep(graph, options->keep, options->n_keep, err);
    if (status == RFX_OK) status = rfx_conv_set_tile_rows(graph, err);
    return status == RFX_OK ? rfx_graph_finish(graph, options->fuse, err) : status;
}
