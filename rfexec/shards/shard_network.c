/* See shard_network.h. */
#include "rfexec/shards/shard_network.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rfexec/run/join_cuts.h"
#include "rfexec/run/model.h"
#include "rfexec/shards/shard_file.h"
#include "rfexec/shards/shard_head.h"
#include "rfexec/shards/shard_identity.h"

bool rfx_shard_has_late_nodes(const json_t *run) {
    const json_t *head = json_object_get(run, "head");
    const char *name = json_string_value(json_object_get(head, "name"));
    return name != NULL && strcmp(name, RFX_CUTS_HEAD) == 0 &&
           json_object_get(head, "file") == NULL;
}

/* Returns member i of the list "image": channels, rows, columns. */
static int64_t size_at(const json_t *run, size_t i) {
    return json_integer_value(json_array_get(json_object_get(run, "image"), i));
}

/* Writes the path of the model file to found[size]: `model` itself, or the file of the same name in
 * the folder of `path`. */
static enum rfx_status find_model(const struct rfx_shard_network *of, const char *model,
                                  char *found, size_t size, struct rfx_error *err) {
    const char *path = of->path;
    const char *folder_end = strrchr(path, '/'), *base = strrchr(model, '/');
    int folder = folder_end == NULL ? 0 : (int)(folder_end - path) + 1;
    int n = snprintf(found, size, "%s", model);
    if (n > 0 && (size_t)n < size && (rfx_builtin_exists(model) || access(model, F_OK) == 0))
        return RFX_OK;
    n = snprintf(found, size, "%.*s%s", folder, path, base == NULL ? model : base + 1);
    if (n > 0 && (size_t)n < size && access(found, F_OK) == 0) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "%s '%.120s' are of model '%.120s', which is not there, nor beside them "
                    "as '%.120s'",
                    of->what, path, model, found);
}

/* Checks that the network takes images of the size that the shards had. */
static enum rfx_status check_size(const struct rfx_graph *graph, const struct rfx_shard_network *of,
                                  struct rfx_error *err) {
    const json_t *run = of->run;
    const struct rfx_tensor *in = &graph->nodes[graph->input].out;
    if (in->c == size_at(run, 0) && in->h == size_at(run, 1) && in->w == size_at(run, 2))
        return RFX_OK;
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "%s '%.200s' are of an image of %lld x %lld x %lld, the network's is of "
                    "%lld x %lld x %lld",
                    of->what, of->path, (long long)size_at(run, 0), (long long)size_at(run, 1),
                    (long long)size_at(run, 2), (long long)in->c, (long long)in->h,
                    (long long)in->w);
}

/* Checks that the loaded model has the hash `wanted`. */
static enum rfx_status check_hash(struct rfx_memory *mem, const struct rfx_graph *graph,
                                  const struct rfx_shard_network *of, const char *model,
                                  const char *wanted, struct rfx_error *err) {
    char hash[RFX_FINGERPRINT_CHARS];
    enum rfx_status status = rfx_shard_hash_model(mem, graph, model, hash, err);
    if (status != RFX_OK || strcmp(hash, wanted) == 0) return status;
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "%s '%.120s' are not of model '%.120s': its hash is %s, not %.40s", of->what,
                    of->path, model, hash, wanted);
}

/* Loads the network as the shards had it, and checks it. */
static enum rfx_status load(struct rfx_memory *mem, const struct rfx_shard_network *of,
                            const struct rfx_load_options *options, const char *model,
                            struct rfx_graph **out, struct rfx_error *err) {
    const char *wanted = json_string_value(json_object_get(of->run, "model"));
    struct rfx_graph *graph;
    enum rfx_status status = rfx_model_load(mem, model, options, &graph, err);
    if (status != RFX_OK) return status;
    status = check_hash(mem, graph, of, model, wanted, err);
    if (status == RFX_OK) status = check_size(graph, of, err);
    if (status == RFX_OK)
        *out = graph;
    else
        rfx_graph_free(graph);
    return status;
}

/* Finds the model and the options with which the shards loaded it. */
static enum rfx_status find(const struct rfx_shard_network *of, struct rfx_detector *detector,
                            struct rfx_load_options *options, char model[RFX_SHARD_PATH_CHARS],
                            struct rfx_error *err) {
    const char *named = json_string_value(json_object_get(of->about, "model"));
    *options = (struct rfx_load_options){.memory_bytes = of->memory_bytes};
    if (named == NULL || !json_is_string(json_object_get(of->run, "model")) ||
        !rfx_shard_identity_load_options(of->run, options))
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%.300s.json does not say what network it is of",
                        of->path);
    enum rfx_status status = rfx_shard_head_load(of->run, detector, options, err);
    if (status != RFX_OK) return rfx_fail_within(err, status, "%.200s.json", of->path);
    options->late = options->join_cuts = rfx_shard_has_late_nodes(of->run);
    return find_model(of, named, model, RFX_SHARD_PATH_CHARS, err);
}

enum rfx_status rfx_shard_network_load(struct rfx_memory *mem, const struct rfx_shard_network *of,
                                       struct rfx_graph **out, struct rfx_error *err) {
    struct rfx_load_options options;
    struct rfx_detector detector;
    char model[RFX_SHARD_PATH_CHARS];
    enum rfx_status status = find(of, &detector, &options, model, err);
    return status == RFX_OK ? load(mem, of, &options, model, out, err) : status;
}

enum rfx_status rfx_shard_network_load_late(struct rfx_memory *mem,
                                            const struct rfx_shard_network *of, bool boxes,
                                            struct rfx_graph **out, struct rfx_error *err) {
    struct rfx_load_options options;
    struct rfx_detector detector;
    struct rfx_graph *joined = NULL;
    char model[RFX_SHARD_PATH_CHARS];
    enum rfx_status status = find(of, &detector, &options, model, err);
    if (status == RFX_OK) status = load(mem, of, &options, model, &joined, err);
    rfx_graph_free(joined);
    options.join_cuts = options.head_only = false;
    options.join_heads = boxes;
    if (status == RFX_OK) status = rfx_model_load(mem, model, &options, out, err);
    if (status != RFX_OK || (*out)->late != NULL) return status;
    rfx_graph_free(*out);
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "%s '%.120s' are of cut tensors, and model '%.120s' has no late nodes",
                    of->what, of->path, model);
}
