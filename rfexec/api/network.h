/* Private: networks of the public header in an allocator of the caller's, which tests can let fail.
 */
#ifndef RFX_RFEXEC_API_NETWORK_H
#define RFX_RFEXEC_API_NETWORK_H

#include "layers/core/memory.h"
#include "layers/core/status.h"
#include "layers/graph/graph.h"
#include "rfexec/rfexec.h"

struct rfx_fit_size;
struct rfx_onnx_files;

/* As rfx_network_open; `mem` is borrowed until rfx_network_free, and used whatever the options say
 * of memory. */
RFX_NODISCARD enum rfx_code rfx_network_open_in(struct rfx_memory *mem, const char *model,
                                                const struct rfx_open_options *options,
                                                struct rfx_network **out, struct rfx_why *why);

/* What a network is loaded from: a name, or else open files, or else the bytes of an .onnx file. */
struct rfx_network_origin {
    const char *name;
    struct rfx_onnx_files *files;
    const void *bytes;
    size_t n_bytes;
};

/* Loads a network into `mem`, which is borrowed until rfx_network_free. `options` have been read
 * (rfx_api_read_open_options). Statuses of rfx_model_load; a file that cannot be opened is
 * MALFORMED. */
RFX_NODISCARD enum rfx_status rfx_network_load(struct rfx_memory *mem,
                                               const struct rfx_network_origin *origin,
                                               const struct rfx_open_options *options,
                                               struct rfx_network **out, struct rfx_error *err);

/* The status of a model that could not be opened or read, with the model's name in the text. */
enum rfx_status rfx_network_name_failure(enum rfx_status status, const char *model,
                                         struct rfx_error *err);

/* Makes the network live until one more rfx_network_free. From any thread. */
void rfx_network_keep(struct rfx_network *network);

/* A network of another form of the graph of `whole`, such as a part: shares the memory of `whole`
 * and keeps it. Owns `graph`; after a failure that is freed. */
RFX_NODISCARD enum rfx_status rfx_network_of_graph(struct rfx_network *whole,
                                                   struct rfx_graph *graph,
                                                   struct rfx_network **out, struct rfx_error *err);

/* Whether the network was made by rfx_network_of_graph. */
bool rfx_network_is_part(const struct rfx_network *network);

/* Checks that `part` is a rectangle of output k, which is a map. INVALID_ARGUMENT. */
RFX_NODISCARD enum rfx_status rfx_network_read_part(const struct rfx_network *network, int k,
                                                    const struct rfx_area *part,
                                                    struct rfx_rect *out, struct rfx_error *err);

/* The padding of images that the graph was loaded with. */
const struct rfx_fit_size *rfx_network_fit(const struct rfx_network *network);

/* Room for the hash of the network (rfx_shard_network_identity), "" until somebody has written it:
 * it takes reading all weights. Valid as long as the network. */
enum { RFX_NETWORK_HASH_CHARS = 33 };
char *rfx_network_hash(struct rfx_network *network);

/* For what is made of it: valid as long as the network. */
struct rfx_graph *rfx_network_graph(struct rfx_network *network);
const struct rfx_graph *rfx_network_graph_of(const struct rfx_network *network);
#endif
