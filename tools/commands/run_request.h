/* One run: its model, its image, and the memory for every file that it reads and writes. Commands
 * that run a network and commands that only describe a run open the same request. Therefore both
 * show the same memory.
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
    struct rfx_cli_run_options *options; /* opening sets `images` to the file's number of images */
    int64_t images;
    struct rfx_missing missing; /* pixels marked by --nodata; all zeros: none */
    struct rfx_overlay_choice shown;
    bool overlaid; /* there is an overlay: --overlay, --viewer, or a small one in --report */
};

/* Opens model and image, finds the output pixels that --nodata marks, and counts the memory of the
 * files. spec NULL: assumes a .npy image of --size. Prints a message when the exit code is not
 * RFX_EXIT_DONE. The caller frees the request with rfx_run_request_release. */
RFX_NODISCARD int rfx_run_request_open(struct rfx_run_request *request,
                                       struct rfx_cli_run_options *options, const char *spec);

/* Frees the request. A request of zeros is allowed. */
void rfx_run_request_release(struct rfx_run_request *request);

/* Adds the memory of the files of a later run to the plan request. The later run reads a .npy image
 * when no image is given, and writes the file of --for-output. */
RFX_NODISCARD int rfx_run_request_count(struct rfx_cli_job *job,
                                        const struct rfx_cli_run_options *options);

/* Returns the file name of --for-output, or NULL for "none". When the option is not given: a .npy
 * name, or NULL with --regions, --points, --summary and --boxes. */
const char *rfx_run_request_output(const struct rfx_cli_run_options *options);

/* Sets *bytes to the peak memory of the process for an untiled run with the same other options. */
RFX_NODISCARD int rfx_run_request_untiled(const struct rfx_cli_job *job, size_t *bytes);
#endif
