/* See run_request.h. */
#include "tools/commands/run_request.h"

#include <stdint.h>
#include <string.h>

#include "tiler/modes/modes.h"
#include "tools/cli/answers.h"
#include "tools/cli/outputs.h"
#include "tools/report/html_report.h"

/* Returns the reason why the options do not suit a batch of images, or NULL when they do. */
static const char *not_of_batch(const struct rfx_cli_run_options *options) {
    if (options->report.page != NULL) return "--report is the page of one image, not of a batch";
    if (options->report.viewer != NULL) return "--viewer shows one image, not a batch";
    if (options->report.overlay != NULL)
        return "--overlay is drawn over one image, not over a batch";
    if (rfx_cli_answers_any(&options->output.answer))
        return "--regions, --points, --summary, --text and --boxes are found in one image, not in "
               "a batch";
    if (options->report.top > 0 || options->report.labels != NULL)
        return "--top and --labels show the classes of one image, not of a batch";
    return NULL;
}

/* Opens model and image file, and counts the images of the file. */
static int open_job(struct rfx_run_request *r, const char *spec) {
    struct rfx_cli_run_options *options = r->options;
    options->images = INT64_MAX;
    options->model.class_map = options->report.cam != NULL;
    rfx_cli_answers_settle(&options->output);
    int code = rfx_cli_job_open(&r->job, options, spec);
    if (code != RFX_EXIT_DONE) return code;
    options->images = r->images = rfx_image_facts(r->job.image).images;
    const char *why = r->images > 1 ? not_of_batch(options) : NULL;
    if (why != NULL) {
        rfx_cli_message("'%s' is a batch of %lld images: %s", options->words.shown[1],
                        (long long)r->images, why);
        return RFX_EXIT_USAGE;
    }
    return rfx_cli_outputs_check(r->job.graph, options);
}

/* Finds the output pixels that --nodata marks. */
static int find_missing(struct rfx_run_request *r) {
    const struct rfx_cli_run_options *options = r->options;
    struct rfx_image *image = NULL;
    struct rfx_error err = {{0}};
    bool middle =
        options->input.nodata_mark != NULL && strcmp(options->input.nodata_mark, "centre") == 0;
    if (!rfx_cli_options_mark(&options->input)) return RFX_EXIT_DONE;
    if (r->images > 1) {
        rfx_cli_message(
            "--nodata marks the outputs of one image, not of a batch: --nodata-mark "
            "none fills the images alone");
        return RFX_EXIT_USAGE;
    }
    int code = rfx_cli_job_open_flags(&r->job, options, options->words.args[1], &image);
    if (code != RFX_EXIT_DONE) return code;
    enum rfx_status status = rfx_missing_find(r->job.mem, r->job.graph, image, middle,
                                              options->plan.memory_bytes, &r->missing, &err);
    rfx_image_free(image);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    r->job.request.source.fixed_bytes += rfx_missing_bytes(&r->missing);
    rfx_cli_message("'%s': %lld of its pixels %s missing", options->words.shown[1],
                    (long long)r->missing.pixels, r->missing.pixels == 1 ? "is" : "are");
    for (int k = 0; k < r->missing.n; ++k)
        if (r->missing.maps[k].h == 0)
            rfx_cli_message("output '%s' is no map with a place in the picture: it is not marked",
                            r->job.graph->outputs[k].name);
    return RFX_EXIT_DONE;
}

static void count_npy_picture(struct rfx_cli_job *job) {
    struct rfx_source_traits *source = &job->request.source;
    if (source->fixed_bytes < rfx_image_npy_bytes()) source->fixed_bytes = rfx_image_npy_bytes();
}

/* Adds the memory of the files' encoders and buffers to the plan request, as it is within the
 * budget too. */
static void count_files(struct rfx_run_request *r) {
    size_t *bytes = &r->job.request.source.fixed_bytes;
    *bytes += rfx_cli_outputs_bytes(r->job.graph, r->options, &r->job.geo);
    if (r->options->report.page != NULL) *bytes += rfx_html_report_bytes(r->job.graph);
    if (r->overlaid) *bytes += rfx_overlay_bytes(r->job.graph, r->options, &r->shown);
}

int rfx_run_request_open(struct rfx_run_request *r, struct rfx_cli_run_options *options,
                         const char *spec) {
    r->options = options;
    int code = open_job(r, spec);
    if (code == RFX_EXIT_DONE && spec == NULL) count_npy_picture(&r->job);
    if (code == RFX_EXIT_DONE && spec != NULL) code = find_missing(r);
    r->overlaid = options->report.overlay != NULL || options->report.viewer != NULL;
    if (code == RFX_EXIT_DONE && r->overlaid)
        code = rfx_overlay_choose(r->job.graph, options, &r->shown);
    else if (code == RFX_EXIT_DONE && options->report.page != NULL)
        code = rfx_overlay_choose_for_page(r->job.graph, options, &r->shown, &r->overlaid);
    if (code == RFX_EXIT_DONE) count_files(r);
    return code;
}

void rfx_run_request_release(struct rfx_run_request *r) {
    rfx_missing_release(&r->missing);
    rfx_cli_job_free(&r->job);
}

const char *rfx_run_request_output(const struct rfx_cli_run_options *options) {
    const char *usual = rfx_cli_answers_any(&options->output.answer) ? "none" : "map.npy";
    const char *given = options->output.for_output != NULL ? options->output.for_output : usual;
    return strcmp(given, "none") == 0 ? NULL : given;
}

int rfx_run_request_count(struct rfx_cli_job *job, const struct rfx_cli_run_options *options) {
    struct rfx_cli_run_options run = *options;
    if (options->words.n_args < 2) count_npy_picture(job);
    run.output.file = rfx_run_request_output(options);
    rfx_cli_answers_settle(&run.output);
    int code = rfx_cli_outputs_check(job->graph, &run);
    if (code == RFX_EXIT_DONE)
        job->request.source.fixed_bytes += rfx_cli_outputs_bytes(job->graph, &run, &job->geo);
    return code;
}

int rfx_run_request_untiled(const struct rfx_cli_job *job, size_t *bytes) {
    struct rfx_plan_request request = job->request;
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {{0}};
    request.asked = rfx_ask_whole();
    request.memory_bytes = 0;
    request.stages = NULL;
    request.n_stages = 0;
    request.split = NULL;
    *bytes = 0;
    enum rfx_status status = rfx_plan_create(job->graph, &request, &plan, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    *bytes = plan->peak_bytes;
    rfx_plan_free(plan);
    return RFX_EXIT_DONE;
}
