/* Network, plan and run for many images, kept from one image to the next as long as the images are
 * alike.
 *
 * Invariants: 1. there is one graph, plan, session and image at a time, so a budget holds for any
 * number of images; 2. an image is opened while a session exists only if opening the image cannot
 * take more memory than opening the session's own image took. */
#ifndef RFX_TOOLS_COMMANDS_KEPT_RUN_H
#define RFX_TOOLS_COMMANDS_KEPT_RUN_H

#include "rfexec/run/run.h"
#include "tools/cli/job.h"

/* The beginning of an image file. It tells the kind of file and, for a PNG, its size and type. */
struct rfx_look {
    unsigned char head[26];
    int64_t bytes; /* of the file; -1: it cannot be read */
};

struct rfx_kept_run {
    const struct rfx_cli_run_options *options;
    const char *command; /* for messages */
    /* Called when network and image are open, before the plan is made: checks them, and sets
     * *more_bytes to the bytes that the command itself holds in a run. Returns an exit code. */
    int (*ready)(void *user, struct rfx_cli_job *job, size_t *more_bytes);
    void *user;
    /* Set by rfx_kept_run_open. */
    struct rfx_cli_job job; /* job.plan NULL: no plan and session are kept */
    struct rfx_run run;
    struct rfx_source_traits traits; /* of the image that the plan was made for */
    struct rfx_look look;            /* beginning of that image's file */
    size_t geo_bytes;                /* memory of that image's georeference */
    size_t most_fixed_bytes;         /* largest fixed memory of any image of that size so far */
};

/* Opens an image, kept->job.image, and makes the network, plan and run for it if those of the image
 * before do not suit it. Returns an exit code; other than RFX_EXIT_DONE, a message was printed. */
RFX_NODISCARD int rfx_kept_run_open(struct rfx_kept_run *kept, const char *path);

/* Frees network, plan and run. */
void rfx_kept_run_release(struct rfx_kept_run *kept);
#endif
