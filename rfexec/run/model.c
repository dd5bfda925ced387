/* Finds a model: a built-in network by its name, else a file. If the name is neither, the error
 * text lists the closest built-in names. */
#include "rfexec/run/model.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "layers/conv/winograd/conv_tile_rows.h"
#include "layers/graph/near_names.h"
#include "rfexec/late/late_boxes.h"
#include "rfexec/run/class_map.h"
#include "rfexec/run/join_cuts.h"
#include "rfexec/run/join_detector.h"
#include "rfexec/run/join_heads.h"
#include "rfexec/run/keep_tensors.h"

enum { NEAR_EDITS = 3 };

static enum rfx_status fail_unknown(const char *model, struct rfx_error *err) {
    char near[256] = "";
    size_t used = 0;
    int count;
    const struct rfx_builtin *list = rfx_builtin_list(&count);
    for (int i = 0; i < count; i++) {
        bool prefix = model[0] != '\0' && strncasecmp(list[i].name, model, strlen(model)) == 0;
        if (!prefix && rfx_edit_distance(model, list[i].name) > NEAR_EDITS) continue;
        int n =
            snprintf(near + used, sizeof near - used, "%s%s", used == 0 ? "" : ", ", list[i].name);
        if (n < 0 || (size_t)n >= sizeof near - used) break;
        used += (size_t)n;
    }
    if (count == 0)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "model '%s': no such file, and this build has no built-in networks "
                        "(RFX_WITH_BUILTINS=OFF)",
                        model);
    if (used == 0)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "model '%s': neither a built-in network nor a file", model);
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "model '%s': neither a built-in network nor a file; near names: %s", model,
                    near);
}

static enum rfx_status build(struct rfx_memory *mem, const char *name,
                             const struct rfx_load_options *options, struct rfx_graph **out,
                             struct rfx_error *err) {
    size_t before = rfx_memory_taken_bytes(mem);
    enum rfx_status status = rfx_builtin_build(mem, name, options, out, err);
    if (status == RFX_OK) (*out)->held_bytes = rfx_memory_taken_bytes(mem) - before;
    return status;
}

enum rfx_status rfx_model_find(const char *model, bool *builtin, struct rfx_error *err) {
    *builtin = rfx_builtin_exists(model);
    if (*builtin || access(model, R_OK) == 0) return RFX_OK;
    size_t length = strlen(model);
    bool path =
        strchr(model, '/') != NULL || (length > 5 && strcmp(model + length - 5, ".onnx") == 0);
    if (path || errno != ENOENT)
        return rfx_fail(err, RFX_STATUS_IO, "model '%s': cannot be opened: %s", model,
                        strerror(errno));
    return fail_unknown(model, err);
}

enum rfx_status rfx_model_load(struct rfx_memory *mem, const char *model,
                               const struct rfx_load_options *options, struct rfx_graph **out,
                               struct rfx_error *err) {
    bool builtin;
    enum rfx_status status = rfx_model_find(model, &builtin, err);
    if (status != RFX_OK) return status;
    return builtin ? build(mem, model, options, out, err)
                   : rfx_onnx_load(mem, model, options, out, err);
}

enum rfx_status rfx_model_finish(struct rfx_graph *graph, const struct rfx_load_options *options,
                                 struct rfx_error *err) {
    if (graph->late != NULL && (options->fit.multiple > 1 || options->detector != NULL))
        return rfx_fail(
            err, RFX_STATUS_UNSUPPORTED,
            "the model ends in nodes whose sizes depend on data, which take its tensors "
            "as they are: no padding of images and no head file go with it");
    enum rfx_status status = rfx_fit_cut_outputs(graph, &options->fit, err);
    if (status == RFX_OK && options->join_cuts && graph->late != NULL)
        status = rfx_graph_join_cuts(graph, err);
    if (status == RFX_OK && options->detector != NULL)
        status = rfx_graph_join_detector(graph, options->detector, options->head_only, err);
    else if (status == RFX_OK && options->join_heads && graph->late != NULL)
        status = rfx_late_join_boxes(graph->late, err);
    else if (status == RFX_OK && options->join_heads)
        status = rfx_graph_join_heads(graph, options->head_only, err);
    if (status == RFX_OK)
        status = rfx_graph_keep(graph, options->keep, options->n_keep, options->keep_how, err);
    if (status == RFX_OK && options->class_map) status = rfx_class_map_keep(graph, err);
    if (status == RFX_OK) status = rfx_conv_set_tile_rows(graph, err);
    return status == RFX_OK ? rfx_graph_finish(graph, options->fuse, err) : status;
}
