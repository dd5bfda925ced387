/* What the bits of a run depend on, as a JSON object: the member "run" of every shard.
 *
 * Shards can be put together exactly when their identities are equal. */
#ifndef RFX_RFEXEC_SHARDS_SHARD_IDENTITY_H
#define RFX_RFEXEC_SHARDS_SHARD_IDENTITY_H

#include <jansson.h>

#include "rfexec/image/image_source.h"
#include "rfexec/run/model.h"

enum { RFX_SHARD_HASH_CHARS = 33 };

/* A run of a whole network on one image, of which shards are made. All pointers are borrowed. */
struct rfx_shard_run {
    const struct rfx_graph *graph;        /* of the whole network */
    const char *model, *input;            /* as the user named them */
    const struct rfx_image *image;        /* the opened input */
    const struct rfx_image_options *read; /* that it was opened with */
    bool nodata_of_file;                  /* read->nodata.value is the one in the image file */
    struct rfx_fit_size fit;              /* padding of the image */
    uint64_t seed;                        /* of a built-in's weights */
    const struct rfx_fuse_options *fuse;  /* NULL: everything is fused */
    bool whole_input;                     /* hash every byte of the input, whatever its size */
};

/* Hashes the model file's bytes, or a built-in's name, and all weights of the graph. IO. */
RFX_NODISCARD enum rfx_status rfx_shard_hash_model(struct rfx_memory *mem,
                                                   const struct rfx_graph *graph, const char *model,
                                                   char out[RFX_SHARD_HASH_CHARS],
                                                   struct rfx_error *err);

/* Makes {"rfexec", "model", "input", "conv", "processor", "image", "options"}; *out is a new
 * reference.
 *
 * "model" is rfx_shard_hash_model. "input" is a hash of all bytes of files up to 256 MiB, and of
 * larger files with whole_input. Otherwise it is a hash of the file's size, its first and last
 * mebibyte and 64 KiB at 62 places between: a change elsewhere in a file of the same length is not
 * noticed here (rfx_shard_image_agrees notices it in rows that two shards read). Of a synthetic
 * image it is a hash of the name. "processor" names OpenBLAS's kernels where OpenBLAS computes
 * convolutions, because its bits depend on them; otherwise it is "any".
 * IO; INVALID_ARGUMENT: the graph was fused in a way that the JSON has no name for. */
RFX_NODISCARD enum rfx_status rfx_shard_identity(const struct rfx_shard_run *run, json_t **out,
                                                 struct rfx_error *err);

/* Makes {"rfexec", "network", "conv", "processor", "image", "pad to"} for shards whose image only
 * the caller knows; *out is a new reference. "network" is `hash`: of the model file that the graph
 * keeps open, or of a built-in's name, and of all weights. Where it is "" it is computed and
 * written, which reads the whole model file. IO. */
RFX_NODISCARD enum rfx_status rfx_shard_network_identity(const struct rfx_graph *graph,
                                                         const struct rfx_fit_size *fit,
                                                         char hash[RFX_SHARD_HASH_CHARS],
                                                         json_t **out, struct rfx_error *err);

/* Whether "input" is a hash of every byte that the image is read from. */
bool rfx_shard_hashes_all(const char *input, bool whole_input);

/* Reads the options of loading a model back from an identity: size, seed, fit, convolutions,
 * fusing. The budget is left as it is. false: the identity does not say them. */
bool rfx_shard_identity_load_options(const json_t *run, struct rfx_load_options *load);
#endif
