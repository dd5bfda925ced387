/* The sink of a run's outputs: fingerprints, classes and files.
 *
 * Invariants: 1. files are opened before the run and have no name yet; 2. files get their names
 * after the run, one after the other, and none gets a name when the run failed or was stopped;
 * 3. file and fingerprint do not depend on the pieces that an output comes in. */
#ifndef RFX_TOOLS_CLI_OUTPUTS_H
#define RFX_TOOLS_CLI_OUTPUTS_H

#include "layers/graph/graph.h"
#include "rfexec/output/fingerprint.h"
#include "rfexec/output/output_files.h"
#include "rfexec/output/output_sink.h"
#include "tools/cli/answers.h"
#include "tools/cli/classes.h"
#include "tools/cli/missing.h"
#include "tools/cli/options.h"

enum { RFX_CLI_FILE_NAME = 4096 /* bytes of a path: PATH_MAX of Linux */ };

struct rfx_cli_output {
    const char *name;
    const struct rfx_tensor *tensor; /* output of one image */
    struct rfx_shape shape;          /* shape over all images, as the model declares it */
    enum rfx_type type;
    struct rfx_output_stream *stream; /* the file; NULL: the output goes to no file */
    struct rfx_found found;           /* what the file has instead of the output, if it does */
    struct rfx_fingerprint fingerprint;
    int64_t received; /* elements received so far of the current image */
    char hash[RFX_FINGERPRINT_CHARS];
};

struct rfx_cli_outputs {
    struct rfx_memory *mem;
    int count;
    struct rfx_cli_output *items;
    int64_t images;                    /* number of images in the batch; without a batch 1 */
    const struct rfx_missing *missing; /* marked pixels, written as NaN; NULL: none */
    struct rfx_cli_classes *classes;   /* largest elements of output 0; NULL: not wanted */
    struct rfx_cli_answers answers;
};

/* Returns whether output pixels that depend on missing samples are to be marked. */
bool rfx_cli_options_mark(const struct rfx_cli_input_options *options);

/* Sets *format to the format of the file `path` for a batch of `images`. Returns false when the
 * extension of the name is unknown. */
bool rfx_cli_output_format(const struct rfx_cli_output_options *options, int64_t images,
                           const char *path, struct rfx_output_format *format);

/* Like rfx_cli_output_format, for a file of a run. */
bool rfx_cli_run_format(const struct rfx_cli_run_options *options, const char *path,
                        struct rfx_output_format *format);

/* Returns whether any option about the samples or the layout of files is given. */
bool rfx_cli_options_of_files(const struct rfx_cli_output_options *options);

/* Returns the reason why an option does not suit any file that is written (for example a TIFF
 * option without a TIFF file), or NULL when all options suit. takes: the `takes` flags of all kinds
 * of files that are written (struct rfx_output_kind). */
const char *rfx_cli_options_misfit(const struct rfx_cli_output_options *options, unsigned takes);

/* Checks before the run that -o, --dump, --bits, --range and --top suit the network's outputs.
 * Prints why they do not and returns RFX_EXIT_USAGE. */
RFX_NODISCARD int rfx_cli_outputs_check(const struct rfx_graph *graph,
                                        const struct rfx_cli_run_options *options);

/* Returns whether every file of -o exists already. */
bool rfx_cli_outputs_exist(const struct rfx_graph *graph,
                           const struct rfx_cli_run_options *options);

/* Returns the number of bytes that the encoders and buffers of the output files hold in a run. */
size_t rfx_cli_outputs_bytes(const struct rfx_graph *graph,
                             const struct rfx_cli_run_options *options,
                             const struct rfx_geo_source *source);

/* Lists the outputs of a batch of `images`, without files. The graph must outlive the list. */
RFX_NODISCARD enum rfx_status rfx_cli_outputs_list(struct rfx_memory *mem,
                                                   const struct rfx_graph *graph, int64_t images,
                                                   struct rfx_cli_outputs *outputs,
                                                   struct rfx_error *err);

/* Returns the file name of output k and its format; the name is empty where there is no file. */
RFX_NODISCARD enum rfx_status rfx_cli_outputs_file(const struct rfx_graph *graph,
                                                   const struct rfx_cli_run_options *options, int k,
                                                   char name[RFX_CLI_FILE_NAME],
                                                   struct rfx_output_format *format,
                                                   struct rfx_error *err);

/* Opens the file of output k. A TIFF file gets the georeference of `source` (NULL: none), converted
 * to the output's pixel grid. Prints a message when the conversion loses a part of the
 * georeference. */
RFX_NODISCARD enum rfx_status rfx_cli_outputs_open_file(
    const struct rfx_graph *graph, const struct rfx_cli_run_options *options,
    const struct rfx_geo_source *source, int k, const char *name,
    const struct rfx_output_format *format, struct rfx_output_stream **out, struct rfx_error *err);

/* Opens the files of -o and --dump. Call rfx_cli_outputs_check before. A single output gets the
 * name of -o. Several outputs get NAME.<output>.EXT. Tensors of --keep always get
 * NAME.<output>.EXT. The graph must outlive the outputs. */
RFX_NODISCARD enum rfx_status rfx_cli_outputs_open(struct rfx_memory *mem,
                                                   const struct rfx_graph *graph,
                                                   const struct rfx_cli_run_options *options,
                                                   const struct rfx_geo_source *source,
                                                   struct rfx_cli_outputs *outputs,
                                                   struct rfx_error *err);

/* Returns a sink that takes the outputs of a run; valid as long as `outputs`. */
struct rfx_output_sink rfx_cli_outputs_sink(struct rfx_cli_outputs *outputs);

/* Called between two images of a batch: later pieces belong to the next image. */
RFX_NODISCARD enum rfx_status rfx_cli_outputs_next(struct rfx_cli_outputs *outputs,
                                                   struct rfx_error *err);

/* Called after the run (after the last image of a batch). Sets the hashes and gives the files their
 * names. INVALID_ARGUMENT: elements of an output are missing. CANCELLED: a signal came before the
 * first file was complete. */
RFX_NODISCARD enum rfx_status rfx_cli_outputs_finish(struct rfx_cli_outputs *outputs,
                                                     struct rfx_error *err);

/* Frees the outputs and removes files that have no name yet. A struct of zeros is allowed. */
void rfx_cli_outputs_free(struct rfx_cli_outputs *outputs);

#endif
