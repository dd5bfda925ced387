/* Finding and loading the network of states. */
#include "tools/parts/files/states_network.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "layers/conv/conv_backend.h"
#include "rfexec/session/model.h"
#include "tools/cli/option_values.h"
#include "tools/parts/files/part_identity.h"

#define MOST_EXTENT ((int64_t)1 << 31)

static int64_t size_at(const json_t *run, size_t i) {
    return json_integer_value(json_array_get(json_object_get(run, "image"), i));
}

/* Where the model is: as it is named, or beside `path`. */
static enum rfx_status find_model(const char *model, const char *path, char *found, size_t size,
                                  struct rfx_error *err) {
    const char *folder_end = strrchr(path, '/'), *base = strrchr(model, '/');
    int folder = folder_end == NULL ? 0 : (int)(folder_end - path) + 1;
    int n = snprintf(found, size, "%s", model);
    if (n > 0 && (size_t)n < size && (rfx_builtin_exists(model) || access(model, F_OK) == 0))
        return RFX_OK;
    n = snprintf(found, size, "%.*s%s", folder, path, base == NULL ? model : base + 1);
    if (n > 0 && (size_t)n < size && access(found, F_OK) == 0) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "states '%.120s' are of model '%.120s', which is not there, nor beside them "
                    "as '%.120s'",
                    path, model, found);
}

/* Whether the image has the size that the parts had; inputs of a fixed size may have another. */
static enum rfx_status check_size(const struct rfx_graph *graph, const json_t *run,
                                  const char *path, struct rfx_error *err) {
    const struct rfx_tensor *in = &graph->nodes[graph->input].out;
    if (in->c == size_at(run, 0) && in->h == size_at(run, 1) && in->w == size_at(run, 2))
        return RFX_OK;
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "states '%.200s' are of an image of %lld x %lld x %lld, the network's is of "
                    "%lld x %lld x %lld",
                    path, (long long)size_at(run, 0), (long long)size_at(run, 1),
                    (long long)size_at(run, 2), (long long)in->c, (long long)in->h,
                    (long long)in->w);
}

static enum rfx_status check_hash(struct rfx_memory *mem, const struct rfx_graph *graph,
                                  const char *model, const char *wanted, const char *path,
                                  struct rfx_error *err) {
    char hash[RFX_PART_HASH_CHARS];
    enum rfx_status status = rfx_part_hash_model(mem, graph, model, hash, err);
    if (status != RFX_OK || strcmp(hash, wanted) == 0) return status;
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "states '%.120s' are not of model '%.120s': its hash is %s, not %.40s", path,
                    model, hash, wanted);
}

static enum rfx_status find_output(const struct rfx_graph *graph, const char *name,
                                   const char *model, const char *path, int *k,
                                   struct rfx_error *err) {
    for (*k = 0; *k < graph->n_outputs; ++*k)
        if (strcmp(graph->outputs[*k].name, name) == 0) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "states '%.120s' are of output '%.100s', which '%.120s' has not", path, name,
                    model);
}

enum rfx_status rfx_part_states_load_network(struct rfx_memory *mem,
                                             const struct rfx_part_states *states, const char *path,
                                             size_t memory_bytes, struct rfx_graph **out, int *k,
                                             struct rfx_error *err) {
    static const struct rfx_fuse_options nothing = {0}, no_add = {true, true, false, true, true};
    const json_t *run = states->run, *options = json_object_get(run, "options");
    const char *named = json_string_value(json_object_get(states->about, "model"));
    const char *fused = json_string_value(json_object_get(options, "fused"));
    const char *fit = json_string_value(json_object_get(options, "pad to"));
    const char *conv = json_string_value(json_object_get(run, "conv"));
    const char *wanted = json_string_value(json_object_get(run, "model"));
    char model[RFX_PART_PATH_CHARS];
    struct rfx_graph *graph;
    struct rfx_load_options load = {
        .h = size_at(run, 1),
        .w = size_at(run, 2),
        .seed = (uint64_t)json_integer_value(json_object_get(options, "seed")),
        .memory_bytes = memory_bytes};
    bool whole = named != NULL && fused != NULL && conv != NULL && wanted != NULL && load.h > 0 &&
                 load.w > 0 && load.h <= MOST_EXTENT && load.w <= MOST_EXTENT &&
                 rfx_conv_choice_find(conv, &load.conv) && fit != NULL &&
                 rfx_cli_parse_fit(fit, &load.fit);
    if (!whole)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%.300s.json does not say what network it is of",
                        path);
    if (strcmp(fused, "nothing") == 0) load.fuse = &nothing;
    if (strcmp(fused, "all but additions") == 0) load.fuse = &no_add;
    enum rfx_status status = find_model(named, path, model, sizeof model, err);
    if (status == RFX_OK) status = rfx_model_load(mem, model, &load, &graph, err);
    if (status != RFX_OK) return status;
    status = check_hash(mem, graph, model, wanted, path, err);
    if (status == RFX_OK) status = check_size(graph, run, path, err);
    if (status == RFX_OK) status = find_output(graph, states->output, model, path, k, err);
    if (status == RFX_OK)
        *out = graph;
    else
        rfx_graph_free(graph);
    return status;
}
