/* The identity of a run: a JSON object with everything on which the bits of the output depend. It
 * is the member "run" of every shard.
 *
 * Shards can be merged exactly when their identities are equal. */
#ifndef RFX_RFEXEC_SHARDS_SHARD_IDENTITY_H
#define RFX_RFEXEC_SHARDS_SHARD_IDENTITY_H

#include <jansson.h>

#include "rfexec/image/image_source.h"
#include "rfexec/output/fingerprint.h"
#include "rfexec/run/model.h"

/* A run of a whole network on one image, of which shards are made. All pointers are borrowed. */
struct rfx_shard_run {
    const struct rfx_graph *graph;        /* graph of the whole network */
    const char *model, *input;            /* as the user named them */
    const struct rfx_image *image;        /* the opened input */
    const struct rfx_image_options *read; /* options with which the input was opened */
    bool nodata_of_file;                  /* read->nodata.value comes from the image file's tag */
    struct rfx_fit_size fit;              /* padding of the image */
    uint64_t seed;                        /* seed of a built-in network's weights */
    const struct rfx_fuse_options *fuse;  /* NULL: everything is fused */
    bool whole_input;                     /* hash every byte of the input, whatever its size */
};

/* Writes the hash of a model to `out`: over the bytes of the model file, or the name of a built-in
 * network, and over all weights of the graph. Status: IO. */
RFX_NODISCARD enum rfx_status rfx_shard_hash_model(struct rfx_memory *mem,
                                                   const struct rfx_graph *graph, const char *model,
                                                   char out[RFX_FINGERPRINT_CHARS],
                                                   struct rfx_error *err);

/* Makes {"rfexec", "head", "model", "input", "conv", "int8", "processor", "image", "options"};
 * *out is a new reference. "head" is in shard_head.h.
 *
 * "model" is the result of rfx_shard_hash_model. "input" is a hash of all bytes of the image file
 * if the file has up to 256 MiB or whole_input is set. For other files it is a hash of the size,
 * the first and last mebibyte, and 64 KiB at 62 places between. A change elsewhere in a file of the
 * same length does not change that hash; rfx_shard_image_agrees finds the change if it is in rows
 * that two shards read. For a synthetic image "input" is a hash of the name. "processor" names
 * OpenBLAS's kernels if OpenBLAS computes convolutions, because the bits depend on these kernels;
 * otherwise it is "any". "int8" is left out for the default arithmetic of 8-bit networks. Statuses:
 * IO; INVALID_ARGUMENT when the graph was fused in a way that the JSON cannot express. */
RFX_NODISCARD enum rfx_status rfx_shard_identity(const struct rfx_shard_run *run, json_t **out,
                                                 struct rfx_error *err);

/* Makes {"rfexec", "head", "network", "conv", "int8", "processor", "image", "pad to"} for shards
 * whose image is known only to the caller. *out is a new reference. "network" is `hash`, the hash
 * of the open model file (or a built-in's name) and of all weights. If `hash` is "", the function
 * computes it, which reads the whole model file, and stores it in `hash`. Status: IO. */
RFX_NODISCARD enum rfx_status rfx_shard_network_identity(const struct rfx_graph *graph,
                                                         const struct rfx_fit_size *fit,
                                                         char hash[RFX_FINGERPRINT_CHARS],
                                                         json_t **out, struct rfx_error *err);

/* Returns whether the member "input" is a hash of all bytes of the image's files. */
bool rfx_shard_hashes_all(const char *input, bool whole_input);

/* Sets the options of loading a model from an identity: size, seed, fit, convolutions, fusing. The
 * budget in *load does not change. Returns false when the identity lacks one of these options. */
bool rfx_shard_identity_load_options(const json_t *run, struct rfx_load_options *load);
#endif
