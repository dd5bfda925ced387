/* What one run is asked: model, picture, and the bytes of every file that it reads and writes. The
 * commands that run and those that only say what a run would do open the same request, so that one
 * request has one figure.
 *
 * Invariant: the job's request counts every file once opening has returned RFX_EXIT_DONE. */
#ifndef RFX_TOOLS_PROGRAM_RUN_REQUEST_H
#define RFX_TOOLS_PROGRAM_RUN_REQUEST_H

#include "tools/cli/job.h"
#include "tools/cli/missing.h"
#include "tools/report/image_overlay.h"

struct rfx_run_request {
    struct rfx_cli_job job;
    struct rfx_cli_options *options; /* `images` becomes that of the picture */
    int64_t images;
    struct rfx_missing missing; /* of --nodata; zeros: nothing is marked */
    struct rfx_overlay_choice shown;
    bool overlaid; /* --overlay, or the small one of --report */
};

/* Opens model and picture (spec NULL: a .npy file of --size), finds what --nodata marks, and counts
 * the files. A message has been printed when the exit code is not RFX_EXIT_DONE. To be released. */
RFX_NODISCARD int rfx_run_request_open(struct rfx_run_request *request,
                                       struct rfx_cli_options *options, const char *spec);

/* Zeros are fine. */
void rfx_run_request_release(struct rfx_run_request *request);

/* Counts what a run holds whose options are not known yet: it reads a .npy picture where none is
 * given, and writes the file that --for-output says. */
RFX_NODISCARD int rfx_run_request_count(struct rfx_cli_job *job,
                                        const struct rfx_cli_options *options);

/* The file of --for-output, some .npy where nothing is said; NULL: none. */
const char *rfx_run_request_output(const struct rfx_cli_options *options);

/* Peak memory of the process that runs whole maps with the other options of the job's request. */
RFX_NODISCARD int rfx_run_request_untiled(const struct rfx_cli_job *job, size_t *bytes);
#endif
