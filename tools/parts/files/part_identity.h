/* What the bits of a run depend on, as the JSON object "run" of its parts. */
#ifndef RFX_TOOLS_PARTS_PART_IDENTITY_H
#define RFX_TOOLS_PARTS_PART_IDENTITY_H

#include <jansson.h>

#include "tools/cli/job.h"

enum { RFX_PART_HASH_CHARS = 33 };

/* The hash of a model: below. */
RFX_NODISCARD enum rfx_status rfx_part_hash_model(struct rfx_memory *mem,
                                                  const struct rfx_graph *graph, const char *model,
                                                  char out[RFX_PART_HASH_CHARS],
                                                  struct rfx_error *err);

/* {"rfexec", "model", "input", "conv", "processor", "size", "options"}; *out: a new reference.
 *
 * model: a hash of the model file's bytes, or of a built-in's name, and of all weights of the
 * graph. input: of all bytes of files up to 256 MiB, and of larger ones with --whole-input-hash;
 * else of the file's size, its first and last mebibyte and 64 KiB at 62 places between: a change
 * elsewhere in a file of the same length is not seen by it (part_picture.h sees it in rows that two
 * parts read). Of synthetic images, of their name. processor: where convolutions are OpenBLAS's,
 * whose bits hang on it; else "any". */
RFX_NODISCARD enum rfx_status rfx_part_identity(const struct rfx_cli_job *job,
                                                const struct rfx_cli_run_options *options,
                                                json_t **out, struct rfx_error *err);

/* Whether "input" is a hash of all that the image is read from. */
bool rfx_part_hashes_all(const struct rfx_cli_run_options *options);
#endif
