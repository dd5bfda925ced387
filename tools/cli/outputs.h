/* What happens to the outputs of a run: fingerprints and files.
 *
 * An output comes either through the sink, while the run goes on, or from the session after it, in
 * chunks of RFX_CLI_CHUNK elements: no second copy is made.
 * Invariants: 1. files are opened before the run, without their names; 2. they get their names
 * after it, one after the other, none when the run failed or was stopped; 3. file and fingerprint
 * do not depend on the way an output came. */
#ifndef RFX_TOOLS_CLI_OUTPUTS_H
#define RFX_TOOLS_CLI_OUTPUTS_H

#include "layers/graph/graph.h"
#include "rfexec/output/fingerprint.h"
#include "rfexec/output/output_sink.h"
#include "rfexec/output/output_stream.h"
#include "rfexec/session/session.h"
#include "tools/cli/options.h"

enum { RFX_CLI_CHUNK = 16384 };

struct rfx_cli_output {
    const char *name;
    const struct rfx_tensor *tensor;
    struct rfx_output_stream *stream; /* NULL: no file is asked for */
    struct rfx_fingerprint fingerprint;
    int64_t received; /* elements that came through the sink */
    char hash[RFX_FINGERPRINT_CHARS];
};

struct rfx_cli_outputs {
    struct rfx_memory *mem;
    int count;
    struct rfx_cli_output *items;
};

/* Whether -o, --dump, --bits, --range and --top suit the network's outputs; called before anything
 * is run. Prints why not and returns RFX_EXIT_USAGE. */
RFX_NODISCARD int rfx_cli_outputs_check(const struct rfx_graph *graph,
                                        const struct rfx_cli_options *options);

/* Bytes that writing the files holds while the network runs. */
size_t rfx_cli_outputs_bytes(const struct rfx_graph *graph, const struct rfx_cli_options *options);

/* Opens the files of -o and --dump, which rfx_cli_outputs_check has passed: one output goes to the
 * name of -o, several to NAME.<output>.EXT, and so do tensors of --keep, whatever else there is.
 * The graph must outlive the outputs. */
RFX_NODISCARD enum rfx_status rfx_cli_outputs_open(struct rfx_memory *mem,
                                                   const struct rfx_graph *graph,
                                                   const struct rfx_cli_options *options,
                                                   struct rfx_cli_outputs *outputs,
                                                   struct rfx_error *err);

/* Takes outputs while the run goes on; valid as long as the outputs. */
struct rfx_output_sink rfx_cli_outputs_sink(struct rfx_cli_outputs *outputs);

/* After a run: takes from the session the outputs that did not come through the sink, sets the
 * hashes, completes the files. CANCELLED: a signal came before the first file was complete. */
RFX_NODISCARD enum rfx_status rfx_cli_outputs_finish(struct rfx_cli_outputs *outputs,
                                                     const struct rfx_session *session,
                                                     struct rfx_error *err);

/* Frees; files not completed are removed. Zeroed outputs are fine. */
void rfx_cli_outputs_free(struct rfx_cli_outputs *outputs);

#endif
