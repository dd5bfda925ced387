/* What run, verify, plan and bench do first: open the image, load the model for its size, plan.
 *
 * Invariants: 1. members are made in the order image, graph, plan file, plan and freed in reverse
 * by rfx_cli_job_free; 2. a message has been printed whenever an exit code other than RFX_EXIT_DONE
 * is returned. */
#ifndef RFX_TOOLS_CLI_JOB_H
#define RFX_TOOLS_CLI_JOB_H

#include "layers/graph/graph.h"
#include "rfexec/image/geo/geo_tiff.h"
#include "rfexec/image/image_source.h"
#include "rfexec/session/model.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/plan_file.h"
#include "tools/cli/command.h"

struct rfx_cli_job {
    struct rfx_memory *mem;
    struct rfx_image *image;
    struct rfx_geo_source geo;      /* of the image, where it is a GeoTIFF */
    bool channels_last;             /* the image is an array of that form */
    struct rfx_image_nodata nodata; /* as the image is read: of --nodata, the file's looked up */
    struct rfx_graph *graph;
    struct rfx_plan_file *plan_file; /* of --plan, or NULL */
    bool plans_again;    /* what planning has measured is kept for more of it: nothing runs here */
    bool process_varies; /* other processes of this command measure other sizes: of MPI */
    struct rfx_plan *plan;
    struct rfx_plan_request request;
};

/* Opens `spec` (NULL: a synthetic picture of --size or the model's own size) and loads args[0] for
 * it. The image has as many channels as the network takes. The request lets maps be handed out
 * while a run goes on: sessions need a sink. */
RFX_NODISCARD int rfx_cli_job_open(struct rfx_cli_job *job, const struct rfx_cli_options *options,
                                   const char *spec);

/* Opens the job's picture once more, to find its missing samples (nodata.flags). */
RFX_NODISCARD int rfx_cli_job_open_flags(const struct rfx_cli_job *job,
                                         const struct rfx_cli_options *options, const char *spec,
                                         struct rfx_image **out);

/* Another picture for a job, with as many channels as the network takes; the one before is freed.
 * Whether the plan suits it is for the caller to see. */
RFX_NODISCARD int rfx_cli_job_change(struct rfx_cli_job *job, const struct rfx_cli_options *options,
                                     const char *spec);

/* Makes job->plan from job->request, which rfx_cli_job_open filled from the options. When no plan
 * fits, says which budget would (command: for the JSON document) and returns RFX_EXIT_BUDGET. With
 * --plan or --check the plan has passed the checker. */
RFX_NODISCARD int rfx_cli_job_plan(struct rfx_cli_job *job, const struct rfx_cli_options *options,
                                   const char *command);

/* The smallest budget over all plans and numbers of threads. */
struct rfx_cli_least {
    size_t bytes;
    int threads;
    bool other_plan;          /* than what the options ask for: they have to go */
    char text[RFX_PLAN_TEXT]; /* the plan */
};

/* Finds it for job->request, whatever its budget. A message has been printed when it fails. */
RFX_NODISCARD int rfx_cli_job_least(const struct rfx_cli_job *job,
                                    const struct rfx_cli_options *options,
                                    struct rfx_cli_least *least);

/* What to do about a run without a budget that failed because there is not so much memory: words,
 * or nothing when that is not it. */
void rfx_cli_job_tell_budget(const struct rfx_cli_job *job, const struct rfx_cli_options *options,
                             enum rfx_status status);

/* Whether an option says how to run, so that the planner has less choice. */
bool rfx_cli_plan_is_asked(const struct rfx_cli_options *options);

/* Lets the request ask for a grid of tiles where nothing says how to run. */
void rfx_cli_job_ask_cut(struct rfx_cli_job *job);

void rfx_cli_job_free(struct rfx_cli_job *job);

/* Says that there is no such model, why, and which built-in one has a name like it; returns
 * RFX_EXIT_REFUSED. */
RFX_NODISCARD int rfx_cli_refuse_model(const char *name, const char *words);

/* Whether a file that is no model is a picture, by its first bytes; then says so. */
bool rfx_cli_tell_picture(const char *model);

/* Whether an input that cannot be opened is a model, or its model a picture; then says so. */
bool rfx_cli_tell_exchanged(const char *model, const char *input);

/* What --no-fuse and --no-fuse-add ask for, as struct rfx_load_options takes it (NULL: fuse all).
 */
const struct rfx_fuse_options *rfx_cli_fuse(const struct rfx_cli_options *options);

/* Loads args[0] for --size (0 x 0: the model's own). */
RFX_NODISCARD int rfx_cli_load(struct rfx_memory *mem, const struct rfx_cli_options *options,
                               int64_t h, int64_t w, struct rfx_graph **out);

/* Loads `model` for --size, fused as asked. */
RFX_NODISCARD int rfx_cli_load_fused(struct rfx_memory *mem, const struct rfx_cli_options *options,
                                     const char *model, const struct rfx_fuse_options *fuse,
                                     struct rfx_graph **out);
#endif
