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
    struct rfx_geo_source geo;      /* place in the world, of a GeoTIFF */
    bool channels_last;             /* the image is an array whose last axis is the channels */
    struct rfx_image_nodata nodata; /* --nodata; of "file" with the value of the file's tag */
    struct rfx_graph *graph;
    struct rfx_plan_file *plan_file; /* of --plan, or NULL */
    bool plans_again; /* the command plans several times and runs nothing (plan, explain): keep the
                         plan cache after the first plan */
    bool process_varies; /* ranks of MPI: each process measures another size of its own */
    struct rfx_plan *plan;
    struct rfx_plan_request request;
};

/* Returns the options of reading and preprocessing for rfx_image_open. The result borrows
 * `options`. channels 0: as many as the file has. */
struct rfx_image_options rfx_cli_image_options(const struct rfx_cli_run_options *options,
                                               int64_t channels);

/* Opens the image `spec` (NULL: a synthetic image of --size or the model's own size), loads the
 * model args[0] for its size, and fills the plan request from the options. The image gets as many
 * channels as the network takes. The request allows outputs to be written during the run, so the
 * session needs a sink. */
RFX_NODISCARD int rfx_cli_job_open(struct rfx_cli_job *job,
                                   const struct rfx_cli_run_options *options, const char *spec);

/* Opens the job's image once more, so that reading it gives flags of missing samples
 * (nodata.flags). */
RFX_NODISCARD int rfx_cli_job_open_flags(const struct rfx_cli_job *job,
                                         const struct rfx_cli_run_options *options,
                                         const char *spec, struct rfx_image **out);

/* Frees the job's image and opens another one, with as many channels as the network takes. The
 * caller checks that the plan suits its size. */
RFX_NODISCARD int rfx_cli_job_change(struct rfx_cli_job *job,
                                     const struct rfx_cli_run_options *options, const char *spec);

/* Makes job->plan from job->request. When no plan fits, prints the smallest budget that does
 * (command: its name in the JSON document) and returns RFX_EXIT_BUDGET. With --plan or --check the
 * checker has passed the plan. */
RFX_NODISCARD int rfx_cli_job_plan(struct rfx_cli_job *job,
                                   const struct rfx_cli_run_options *options, const char *command);

/* The smallest budget over all plans and numbers of threads. */
struct rfx_cli_least {
    size_t bytes;
    int threads;
    bool other_plan;          /* the options ask for a plan that needs more */
    char text[RFX_PLAN_TEXT]; /* the plan */
};

/* Finds the smallest budget for job->request, which may have any budget itself. */
RFX_NODISCARD int rfx_cli_job_least(const struct rfx_cli_job *job,
                                    const struct rfx_cli_run_options *options,
                                    struct rfx_cli_least *least);

/* After a run without a budget that ended with OUT_OF_MEMORY: prints which --memory would do. Does
 * nothing after other runs. */
void rfx_cli_job_tell_budget(const struct rfx_cli_job *job,
                             const struct rfx_cli_run_options *options, enum rfx_status status);

/* Whether an option fixes a part of the plan, which leaves the planner less choice. */
bool rfx_cli_plan_is_asked(const struct rfx_cli_run_options *options);

/* Makes the request ask for a grid of tiles; flags of the options stay. */
void rfx_cli_job_ask_cut(struct rfx_cli_job *job);

void rfx_cli_job_free(struct rfx_cli_job *job);

/* Prints that there is no such model, why, and which built-in network has a similar name. Returns
 * RFX_EXIT_REFUSED. */
RFX_NODISCARD int rfx_cli_refuse_model(const char *name, const char *words);

/* Returns whether the file of a model is an image, by its first bytes, and prints that it is. */
bool rfx_cli_tell_picture(const char *model);

/* Returns whether model and input were given in the wrong order, and prints that they were. */
bool rfx_cli_tell_exchanged(const char *model, const char *input);

/* Returns what --no-fuse and --no-fuse-add ask for, for struct rfx_load_options; NULL: fuse all. */
const struct rfx_fuse_options *rfx_cli_fuse(const struct rfx_cli_model_options *options);

/* Loads `model` for images of h x w (0 x 0: the model's own size), with the tensors of --keep.
 * memory_bytes: budget of the process that loads the file; 0: none. */
RFX_NODISCARD int rfx_cli_load(struct rfx_memory *mem, const char *model,
                               const struct rfx_cli_model_options *options, int64_t h, int64_t w,
                               size_t memory_bytes, struct rfx_graph **out);

/* Loads `model` for --size, fused as asked. */
RFX_NODISCARD int rfx_cli_load_fused(struct rfx_memory *mem, const char *model,
                                     const struct rfx_cli_model_options *options,
                                     const struct rfx_fuse_options *fuse, struct rfx_graph **out);
#endif
