/* Built-in networks on bytes: the float32 network, its quantiser, and the model file that is made
 * of them while it is read. */
#include "rfexec/builtin/builtin_int8.h"

#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/builtin/builtin_ranges.h"
#include "rfexec/onnx/file/onnx_file.h"
#include "rfexec/quantise/quantiser.h"

static const char suffix[] = ":int8";
enum { SUFFIX = sizeof suffix - 1, NAME = 64 };

static const struct rfx_quantiser_request request = {
    .range = {.method = RFX_RANGE_MINMAX, .type = RFX_TYPE_UINT8}};

/* What the made file is computed from. */
struct network {
    struct rfx_memory *mem;
    struct rfx_graph *graph; /* in float32 */
    struct rfx_quantiser quantiser;
    struct rfx_onnx_made *made;
};

static void free_network(void *handle) {
    struct network *network = handle;
    if (network == NULL) return;
    struct rfx_memory *mem = network->mem;
    rfx_onnx_made_free(network->made);
    rfx_quantiser_release(&network->quantiser);
    rfx_graph_free(network->graph);
    rfx_memory_release(mem, network);
}

bool rfx_builtin_is_int8(const char *name) {
    size_t length = strlen(name);
    return length > SUFFIX && strcmp(name + length - SUFFIX, suffix) == 0;
}

/* Returns the ranges of the network `name`, or NULL. */
static const struct rfx_builtin_ranges *find_ranges(const char *name) {
    size_t length = strlen(name) - SUFFIX;
    for (const struct rfx_builtin_ranges *r = rfx_builtin_ranges; r->network != NULL; r++)
        if (strlen(r->network) == length && strncmp(r->network, name, length) == 0) return r;
    return NULL;
}

static enum rfx_status fail_without_ranges(struct rfx_error *err) {
    char names[256] = "";
    size_t used = 0;
    for (const struct rfx_builtin_ranges *r = rfx_builtin_ranges; r->network != NULL; r++) {
        int n =
            snprintf(names + used, sizeof names - used, "%s%s", used == 0 ? "" : ", ", r->network);
        if (n < 0 || (size_t)n >= sizeof names - used) break;
        used += (size_t)n;
    }
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "':int8' follows only the names %s; for any other network: 'rfexec quantize'",
                    names);
}

/* Finds the range of each tensor that is counted, and the scales. */
static enum rfx_status find_scales(struct network *network, const struct rfx_builtin_ranges *table,
                                   struct rfx_error *err) {
    const struct rfx_graph *graph = network->graph;
    size_t n = (size_t)graph->n_nodes;
    struct rfx_value_counts *counts = rfx_memory_calloc(network->mem, n, sizeof *counts);
    if (counts == NULL) return rfx_memory_fail(network->mem, "ranges", n * sizeof *counts, err);
    enum rfx_status status = RFX_OK;
    for (int i = 0; status == RFX_OK && i < graph->n_nodes; i++) {
        if (!rfx_quantiser_counts(&network->quantiser, i)) continue;
        const char *name = rfx_quantiser_name(&network->quantiser, i);
        int k = 0;
        while (k < table->n && strcmp(table->ranges[k].tensor, name) != 0) k++;
        if (k < table->n)
            counts[i] = (struct rfx_value_counts){
                .n = 1, .lo = table->ranges[k].lo, .hi = table->ranges[k].hi};
        else
            status = rfx_fail(err, RFX_STATUS_INTERNAL, "tensor '%s' has no range", name);
    }
    if (status == RFX_OK)
        status = rfx_quantiser_find_scales(&network->quantiser, counts, &request, err);
    rfx_memory_release(network->mem, counts);
    return status;
}

/* Builds the float32 network for images of h x w, and chooses its bytes. */
static enum rfx_status quantise(const char *name, int64_t h, int64_t w, uint64_t seed,
                                struct network *network, struct rfx_error *err) {
    const struct rfx_builtin_ranges *table = find_ranges(name);
    const struct rfx_load_options load = {.h = h, .w = w, .fuse = &rfx_quantiser_fusing};
    if (table == NULL) return fail_without_ranges(err);
    if (seed != RFX_BUILTIN_RANGES_SEED)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "seed %llu: the ranges of its tensors are those of seed %d; for another "
                        "seed: 'rfexec quantize %s --seed %llu'",
                        (unsigned long long)seed, RFX_BUILTIN_RANGES_SEED, table->network,
                        (unsigned long long)seed);
    enum rfx_status status =
        rfx_builtin_build(network->mem, table->network, &load, &network->graph, err);
    if (status == RFX_OK)
        status = rfx_quantiser_choose(&network->quantiser, network->graph, &request, err);
    return status == RFX_OK ? find_scales(network, table, err) : status;
}

static enum rfx_status create(struct rfx_memory *mem, const char *name,
                              const struct rfx_load_options *options, struct network **out,
                              struct rfx_error *err) {
    /* Of the size to which images are padded, so that tensors of a fixed size fit. */
    int64_t multiple = rfx_max_i64(options->fit.multiple, 1);
    int64_t h = rfx_ceil_div(options->h, multiple) * multiple;
    int64_t w = rfx_ceil_div(options->w, multiple) * multiple;
    struct network *network = rfx_memory_calloc(mem, 1, sizeof *network);
    if (network == NULL) return rfx_memory_fail(mem, "network", sizeof *network, err);
    network->mem = mem;
    enum rfx_status status = quantise(name, h, w, options->seed, network, err);
    if (status == RFX_OK) {
        *out = network;
        return RFX_OK;
    }
    free_network(network);
    return rfx_fail_within(err, status, "built-in '%s'", name);
}

static struct rfx_quantisation quantisation_of(const struct network *network) {
    return (struct rfx_quantisation){.type = request.range.type, .nodes = network->quantiser.nodes};
}

/* Opens the file that is made of a network. On success the files own the network. */
static enum rfx_status open_made(struct network *network, const char *name,
                                 struct rfx_onnx_files **out, struct rfx_error *err) {
    const struct rfx_quantisation quantisation = quantisation_of(network);
    enum rfx_status status =
        rfx_onnx_make_quantised(network->graph, &quantisation, &network->made, err);
    if (status != RFX_OK) return status;
    const struct rfx_weight_file file = rfx_onnx_made_file(network->made);
    return rfx_onnx_files_open_made(network->mem, name, &file, network, free_network, out, err);
}

enum rfx_status rfx_builtin_int8_build(struct rfx_memory *mem, const char *name,
                                       const struct rfx_load_options *options,
                                       struct rfx_graph **out, struct rfx_error *err) {
    struct network *network;
    struct rfx_onnx_files *files;
    size_t before = rfx_memory_mark(mem);
    enum rfx_status status = create(mem, name, options, &network, err);
    if (status != RFX_OK) return status;
    status = open_made(network, name, &files, err);
    if (status != RFX_OK) {
        free_network(network);
        return rfx_fail_within(err, status, "built-in '%s'", name);
    }
    size_t made = rfx_memory_taken_high_water_bytes(mem) - before;
    size_t taken = rfx_memory_taken_bytes(mem) - before;
    status = rfx_onnx_load_files(mem, files, options, out, err);
    rfx_onnx_files_free(files);
    if (status != RFX_OK) return status;
    size_t loaded = taken + (*out)->load_bytes;
    (*out)->load_bytes = made > loaded ? made : loaded;
    (*out)->declared[0] = (*out)->declared[1] = 0; /* no model states the padded size */
    return RFX_OK;
}

enum rfx_status rfx_builtin_int8_export(struct rfx_memory *mem, const char *name,
                                        const struct rfx_load_options *options, const char *path,
                                        struct rfx_error *err) {
    struct network *network;
    enum rfx_status status = create(mem, name, options, &network, err);
    if (status != RFX_OK) return status;
    const struct rfx_quantisation quantisation = quantisation_of(network);
    status = rfx_onnx_export_quantised(network->graph, &quantisation, path, err);
    free_network(network);
    return status;
}
