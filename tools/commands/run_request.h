/* One run: model, image, and the memory of every file that is read and written. Commands that run
 * and commands that only describe a run open the same request, so both show the same memory.
 *
 * Invariant: after rfx_run_request_open has returned RFX_EXIT_DONE the plan request counts every
 * file. */
#ifndef RFX_TOOLS_COMMANDS_RUN_REQUEST_H
#define RFX_TOOLS_COMMANDS_RUN_REQUEST_H

#include "tools/cli/job.h"
#include "tools/cli/missing.h"
#include "tools/report/image_overlay.h"

struct rfx_run_request {
    struct rfx_cli_job job;
    struct rfx_cli_run_options *options; /* `images` becomes the number of the file */
    int64_t images;
    struct rfx_missing missing; /* of --nodata; zeros: nothing is marked */
    struct rfx_overlay_choice shown;
    bool overlaid; /* there is an overlay: --overlay, or a small one in --report */
};

/* Opens model and image (spec NULL: as for a .npy file of --size), finds the output pixels that
 * --nodata marks, and counts the files. Prints a message when it returns another exit code than
 * RFX_EXIT_DONE. Freed by rfx_run_request_release. */
RFX_NODISCARD int rfx_run_request_open(struct rfx_run_request *request,
                                       struct rfx_cli_run_options *options, const char *spec);

/* A zeroed request is fine. */
void rfx_run_request_release(struct rfx_run_request *request);

/* Counts the memory of the files of a later run: it reads a .npy image where no image is given, and
 * writes the file of --for-output. */
RFX_NODISCARD int rfx_run_request_count(struct rfx_cli_job *job,
                                        const struct rfx_cli_run_options *options);

/* Returns the file of --for-output, a .npy file where it is not given; NULL: none. */
const char *rfx_run_request_output(const struct rfx_cli_run_options *options);

/* Finds the peak memory of the process for an untiled run with the other options of the request. */
RFX_NODISCARD int rfx_run_request_untiled(const struct rfx_cli_job *job, size_t *bytes);
#endif
