/* Runs on images that are alike; see kept_run.h. */
#include "tools/commands/kept_run.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/cli/progress.h"

static struct rfx_look look_at(const char *path) {
    struct rfx_look look = {.bytes = -1};
    struct stat info;
    FILE *file = stat(path, &info) == 0 && S_ISREG(info.st_mode) ? fopen(path, "rb") : NULL;
    if (file == NULL) return look;
    if (fread(look.head, 1, sizeof look.head, file) > 0) look.bytes = (int64_t)info.st_size;
    (void)fclose(file);
    return look;
}

/* Returns whether opening the file `next` takes about the same memory as opening the file `kept`.
 * Both must be of the same kind, and `next` not much larger, because a TIFF's tables grow with the
 * file. PNG files must have the same image size, because a PNG's rows are buffered. */
static bool is_alike(const struct rfx_look *kept, const struct rfx_look *next) {
    bool png = memcmp(next->head, "\x89PNG", 4) == 0;
    return next->bytes >= 0 && kept->bytes >= 0 && next->bytes / 2 <= kept->bytes + 65536 &&
           memcmp(kept->head, next->head, png ? sizeof next->head : 4) == 0;
}

static bool is_same_plan(const struct rfx_source_traits *a, const struct rfx_source_traits *b) {
    return a->h == b->h && a->w == b->w && a->c == b->c && a->random_access == b->random_access &&
           a->window_row_bytes == b->window_row_bytes;
}

/* Opens an image while the kept session exists. *same: the session can run the image. */
static int open_beside(struct rfx_kept_run *kept, const char *path, bool *same) {
    *same = false;
    int code = rfx_cli_job_change(&kept->job, kept->options, path);
    if (code != RFX_EXIT_DONE) return code;
    struct rfx_source_traits traits = rfx_image_traits(kept->job.image);
    bool alike = is_same_plan(&traits, &kept->traits);
    *same = alike && traits.fixed_bytes <= kept->traits.fixed_bytes &&
            rfx_georeference_bytes(&kept->job.geo.geo) <= kept->geo_bytes;
    if (alike && !*same) kept->most_fixed_bytes = traits.fixed_bytes;
    return RFX_EXIT_DONE;
}

/* Makes network, plan and session for an image. */
static int make(struct rfx_kept_run *kept, const char *path, const struct rfx_look *look) {
    struct rfx_error err = {{0}};
    size_t most = kept->most_fixed_bytes, more = 0;
    int code = rfx_cli_job_open(&kept->job, kept->options, path);
    if (code == RFX_EXIT_DONE) code = kept->ready(kept->user, &kept->job, &more);
    if (code != RFX_EXIT_DONE) return code;
    kept->look = *look;
    kept->geo_bytes = rfx_georeference_bytes(&kept->job.geo.geo);
    kept->traits = rfx_image_traits(kept->job.image);
    if (kept->traits.fixed_bytes < most) kept->traits.fixed_bytes = most;
    kept->job.request.source.fixed_bytes = kept->traits.fixed_bytes + more;
    code = rfx_cli_job_plan(&kept->job, kept->options, kept->command);
    if (code != RFX_EXIT_DONE) return code;
    kept->run = (struct rfx_run){.plan = kept->job.plan,
                                 .spill_folder = kept->options->plan.spill,
                                 .progress = rfx_cli_progress_step};
    enum rfx_status status = rfx_run_prepare(&kept->run, &err);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

int rfx_kept_run_open(struct rfx_kept_run *kept, const char *path) {
    struct rfx_look look = look_at(path);
    bool same = false;
    kept->most_fixed_bytes = 0;
    if (kept->run.session != NULL && is_alike(&kept->look, &look)) {
        int code = open_beside(kept, path, &same);
        if (code != RFX_EXIT_DONE || same) return code;
    }
    rfx_kept_run_release(kept);
    int code = make(kept, path, &look);
    if (code != RFX_EXIT_DONE) rfx_kept_run_release(kept);
    return code;
}

void rfx_kept_run_release(struct rfx_kept_run *kept) {
    rfx_run_release(&kept->run);
    rfx_cli_job_free(&kept->job);
    kept->job = (struct rfx_cli_job){0};
}
