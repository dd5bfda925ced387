/* What happens to the outputs of a run: hashes, files, the highest classes. All read the session in
 * chunks of RFX_CLI_CHUNK elements, so that no second copy of an output is made. */
#ifndef RFX_TOOLS_OUTPUTS_H
#define RFX_TOOLS_OUTPUTS_H

#include "command.h"
#include "rfexec/fingerprint.h"
#include "rfexec/rfexec.h"

enum { RFX_CLI_CHUNK = 16384 };

struct rfx_cli_class {
    int64_t index;
    float value;
    const char *label; /* NULL: no label */
};

struct rfx_cli_classes { /* by falling value */
    struct rfx_memory *mem;
    int count;
    struct rfx_cli_class *items;
    char *labels; /* the label file, lines cut at their ends */
};

/* Whether -o and --top suit the network's outputs; called before anything is run. Prints why not
 * and returns RFX_EXIT_USAGE. */
RFX_NODISCARD int rfx_cli_outputs_check(const struct rfx_graph *graph,
                                        const struct rfx_cli_options *options);

/* The fingerprint of output k in ONNX order. */
RFX_NODISCARD enum rfx_status rfx_cli_output_hash(const struct rfx_session *session,
                                                  struct rfx_memory *mem, int k,
                                                  char hash[RFX_FINGERPRINT_CHARS],
                                                  struct rfx_error *err);

/* Writes every output: one to `path` (.npy or .png), several to PATH.<output name>.npy. */
RFX_NODISCARD enum rfx_status rfx_cli_outputs_write(const struct rfx_session *session,
                                                    struct rfx_memory *mem, const char *path,
                                                    struct rfx_error *err);

/* The highest elements of the first output when it is a vector; none otherwise. */
RFX_NODISCARD enum rfx_status rfx_cli_classes_find(const struct rfx_session *session,
                                                   struct rfx_memory *mem,
                                                   const struct rfx_cli_options *options,
                                                   struct rfx_cli_classes *classes,
                                                   struct rfx_error *err);

void rfx_cli_classes_free(struct rfx_cli_classes *classes);
#endif
