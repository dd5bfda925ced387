/* The first steps of every command that runs or plans a network: open the image, load the model for
 * the image's size, make the plan.
 *
 * Invariants: 1. the members are made in the order image, graph, plan file, plan, and
 * rfx_cli_job_free frees them in reverse; 2. a function that returns an exit code other than
 * RFX_EXIT_DONE has printed a message. */
#ifndef RFX_TOOLS_CLI_JOB_H
#define RFX_TOOLS_CLI_JOB_H

#include "layers/graph/graph.h"
#include "rfexec/image/geo/geo_tiff.h"
#include "rfexec/image/image_source.h"
#include "rfexec/run/model.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/plan_file.h"
#include "tools/cli/command.h"

struct rfx_cli_job {
    struct rfx_memory *mem;
    struct rfx_image *image;
    struct rfx_geo_source geo;      /* georeference of a GeoTIFF */
    bool channels_last;             /* the image is an array whose last axis is the channels */
    struct rfx_image_nodata nodata; /* --nodata; for file=F with the value of the file's tag */
    struct rfx_graph *graph;
    struct rfx_plan_file *plan_file; /* the file given by --plan, or NULL */
    bool plans_again; /* the command plans several times and runs nothing (plan, explain): keep the
                         plan cache after the first plan */
    bool process_varies; /* MPI: the measured process size differs from rank to rank */
    struct rfx_plan *plan;
    struct rfx_plan_request request;
};

/* Returns the options of reading and preprocessing for rfx_image_open. The result points into
 * `options`. channels: number of channels to read; 0: as many as the file has. */
struct rfx_image_options rfx_cli_image_options(const struct rfx_cli_run_options *options,
                                               int64_t channels);

/* Opens the image `spec` (NULL: a synthetic image of --size or the model's own size), loads the
 * model args[0] for its size, and fills the plan request from the options. The image gets as many
 * channels as the network takes. The request allows outputs to be written during the run, so the
 * session needs a sink. */
RFX_NODISCARD int rfx_cli_job_open(struct rfx_cli_job *job,
                                   const struct rfx_cli_run_options *options, const char *spec);

/* Opens the job's image once more as a second image, *out, whose samples are flags: nonzero where a
 * sample is missing (nodata.flags). */
RFX_NODISCARD int rfx_cli_job_open_flags(const struct rfx_cli_job *job,
                                         const struct rfx_cli_run_options *options,
                                         const char *spec, struct rfx_image **out);

/* Frees the job's image and opens the image `spec`, with as many channels as the network takes. The
 * caller checks that the plan suits the size of the new image. */
RFX_NODISCARD int rfx_cli_job_change(struct rfx_cli_job *job,
                                     const struct rfx_cli_run_options *options, const char *spec);

/* Makes job->plan from job->request. When no plan fits the budget, prints the smallest budget that
 * has a plan and returns RFX_EXIT_BUDGET. command: name of the command for the JSON document. With
 * --plan or --check, RFX_EXIT_DONE also means that the plan checker accepted the plan. */
RFX_NODISCARD int rfx_cli_job_plan(struct rfx_cli_job *job,
                                   const struct rfx_cli_run_options *options, const char *command);

/* The smallest budget over all plans and numbers of threads. */
struct rfx_cli_least {
    size_t bytes;
    int threads;
    bool other_plan;          /* the plan that the options prescribe needs more bytes */
    char text[RFX_PLAN_TEXT]; /* description of the plan */
};

/* Finds the smallest budget for job->request. The budget in job->request does not matter. */
RFX_NODISCARD int rfx_cli_job_least(const struct rfx_cli_job *job,
                                    const struct rfx_cli_run_options *options,
                                    struct rfx_cli_least *least);

/* Called after a run that returned `status`. When the run had no budget and ended with
 * OUT_OF_MEMORY, prints the smallest sufficient --memory. Otherwise does nothing. */
void rfx_cli_job_tell_budget(const struct rfx_cli_job *job,
                             const struct rfx_cli_run_options *options, enum rfx_status status);

/* Returns whether the user fixed a part of the plan by an option. */
bool rfx_cli_plan_is_asked(const struct rfx_cli_run_options *options);

/* Changes job->request to a grid of tiles. The flags set by the user's options stay. */
void rfx_cli_job_ask_cut(struct rfx_cli_job *job);

void rfx_cli_job_free(struct rfx_cli_job *job);

/* Prints the message "model NAME: WORDS" and suggests built-in networks with a similar name.
 * Returns RFX_EXIT_REFUSED. */
RFX_NODISCARD int rfx_cli_refuse_model(const char *name, const char *words);

/* Returns whether the file given as the model is an image, judged by its first bytes. Prints a
 * message if so. */
bool rfx_cli_tell_picture(const char *model);

/* Returns the layers to fuse, as --no-fuse and --no-fuse-add demand, for struct rfx_load_options.
 * NULL: fuse everything that can be fused. */
const struct rfx_fuse_options *rfx_cli_fuse(const struct rfx_cli_model_options *options);

/* Loads `model` for images of h x w pixels (0 x 0: the model's own size). The tensors of --keep
 * become outputs. memory_bytes: memory budget of the whole process; 0: no budget. */
RFX_NODISCARD int rfx_cli_load(struct rfx_memory *mem, const char *model,
                               const struct rfx_cli_model_options *options, int64_t h, int64_t w,
                               size_t memory_bytes, struct rfx_graph **out);

/* Loads `model` for images of --size and fuses the layers that `fuse` names. */
RFX_NODISCARD int rfx_cli_load_fused(struct rfx_memory *mem, const char *model,
                                     const struct rfx_cli_model_options *options,
                                     const struct rfx_fuse_options *fuse, struct rfx_graph **out);
#endif
