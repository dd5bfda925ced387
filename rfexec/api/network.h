/* Private: networks of the public header, created in an allocator that the caller passes, so that
 * tests can let allocations fail. */
#ifndef RFX_RFEXEC_API_NETWORK_H
#define RFX_RFEXEC_API_NETWORK_H

#include "layers/core/memory.h"
#include "layers/core/status.h"
#include "layers/graph/graph.h"
#include "rfexec/rfexec.h"

struct rfx_fit_size;
struct rfx_onnx_files;

/* Like rfx_network_open, but uses `mem` instead of the allocator in the options. `mem` is borrowed
 * until rfx_network_free. */
RFX_NODISCARD enum rfx_code rfx_network_open_in(struct rfx_memory *mem, const char *model,
                                                const struct rfx_open_options *options,
                                                struct rfx_network **out, struct rfx_why *why);

/* Where a network is loaded from: `files` if it is not NULL, else `name` if it is not NULL, else
 * the bytes of an .onnx file. */
struct rfx_network_origin {
    const char *name;
    struct rfx_onnx_files *files;
    const void *bytes;
    size_t n_bytes;
};

/* Loads a network into `mem`, which is borrowed until rfx_network_free. `options` were read by
 * rfx_api_read_open_options before. Fails with the statuses of rfx_model_load; a file that cannot
 * be opened is MALFORMED. */
RFX_NODISCARD enum rfx_status rfx_network_load(struct rfx_memory *mem,
                                               const struct rfx_network_origin *origin,
                                               const struct rfx_open_options *options,
                                               struct rfx_network **out, struct rfx_error *err);

/* Returns the status to report for a model that could not be opened or read, and adds the model's
 * name to err's text if it is missing there. */
enum rfx_status rfx_network_name_failure(enum rfx_status status, const char *model,
                                         struct rfx_error *err);

/* Adds a user of the network: it lives until one more rfx_network_free. May be called from any
 * thread. */
void rfx_network_keep(struct rfx_network *network);

/* Makes a network of another form of the graph of `whole`, such as a part. It shares the memory of
 * `whole` and keeps it alive. Takes ownership of `graph`, and frees it after a failure. */
RFX_NODISCARD enum rfx_status rfx_network_of_graph(struct rfx_network *whole,
                                                   struct rfx_graph *graph,
                                                   struct rfx_network **out, struct rfx_error *err);

/* Returns whether the network was made by rfx_network_of_graph. */
bool rfx_network_is_part(const struct rfx_network *network);

/* Refuses a network with late nodes, which has no parts: UNSUPPORTED. */
RFX_NODISCARD enum rfx_status rfx_network_refuse_late(const struct rfx_network *network,
                                                      struct rfx_error *err);

/* Sets *out to the rectangle `part` of output k. INVALID_ARGUMENT: there is no output k, or `part`
 * is empty or not inside the output. UNSUPPORTED: rfx_network_refuse_late. */
RFX_NODISCARD enum rfx_status rfx_network_read_part(const struct rfx_network *network, int k,
                                                    const struct rfx_area *part,
                                                    struct rfx_rect *out, struct rfx_error *err);

/* Returns the padding of images that the graph was loaded with. */
const struct rfx_fit_size *rfx_network_fit(const struct rfx_network *network);

/* Returns a buffer of RFX_FINGERPRINT_CHARS for the hash of the network
 * (rfx_shard_network_identity). It holds "" until the hash is computed, which needs a pass over
 * all weights. Valid as long as the network. */
char *rfx_network_hash(struct rfx_network *network);

/* Returns the network's graph. Valid as long as the network. */
struct rfx_graph *rfx_network_graph(struct rfx_network *network);
const struct rfx_graph *rfx_network_graph_of(const struct rfx_network *network);
#endif
