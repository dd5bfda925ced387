/* rfexec run: runs one image, or the images of a batch one after the other, through one network.
 * Writes the outputs to files and the figures of the run to stdout. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "rfexec/run/run.h"
#include "tools/cli/classes.h"
#include "tools/cli/command.h"
#include "tools/cli/late_results.h"
#include "tools/cli/outputs.h"
#include "tools/cli/progress.h"
#include "tools/commands/command_forms.h"
#include "tools/commands/run_request.h"
#include "tools/commands/run_result.h"
#include "tools/report/html_report.h"

struct run {
    struct rfx_run_request asked;
    int64_t image; /* index in the batch of the current image */
    struct rfx_run run;
    struct rfx_cli_outputs outputs;
    struct rfx_late_results late; /* of a network with late nodes */
    struct rfx_cli_classes classes;
    struct rfx_run_report report;
    struct rfx_html_report page; /* page of --report; zeros: none */
    struct rfx_overlay overlay;  /* of --overlay and --viewer, or a small one for --report; zeros:
                                    none */
};

/* Returns the number of image rows for the progress bar, or 0 when the plan does not stream rows.
 */
static int64_t streamed_rows(const struct rfx_plan *plan) {
    for (int i = 0; i < plan->n_stages; ++i)
        if (plan->stages[i].spec.band_rows > 0) return plan->graph->nodes[plan->graph->input].out.h;
    return 0;
}

struct batch_progress {
    const struct run *run;
    struct rfx_cli_progress *bar;
};

static int step_of_batch(void *user, int64_t done, int64_t total) {
    const struct batch_progress *progress = user;
    const struct run *run = progress->run;
    return rfx_cli_progress_step(progress->bar, run->image * total + done,
                                 run->asked.images * total);
}

/* Runs the images of the batch one after the other in the same memory, to run->run.sink, with a
 * progress bar. The report covers all images. */
static enum rfx_status run_images(struct run *run, struct rfx_error *err) {
    const struct rfx_cli_job *job = &run->asked.job;
    struct rfx_cli_progress bar;
    struct batch_progress progress = {run, &bar};
    rfx_cli_progress_start(&bar, "run");
    bar.rows = streamed_rows(job->plan) * run->asked.images;
    bar.cols = job->graph->nodes[job->graph->input].out.w;
    run->run.progress = step_of_batch;
    run->run.user = &progress;
    struct rfx_run_report sum = {0}, one = {0};
    enum rfx_status status = RFX_OK;
    for (run->image = 0; run->image < run->asked.images && status == RFX_OK; ++run->image) {
        if (run->image > 0) status = rfx_cli_outputs_next(&run->outputs, err);
        if (status != RFX_OK) break;
        rfx_image_select(job->image, run->image);
        status = rfx_run_image(&run->run, job->image, &one, err);
        sum.seconds += one.seconds;
        sum.macs += one.macs;
        sum.spill_written += one.spill_written;
        sum.spill_read += one.spill_read;
    }
    rfx_cli_progress_end(&bar);
    sum.arena_high_water_bytes = one.arena_high_water_bytes;
    run->report = sum;
    return status;
}

static enum rfx_status execute(struct run *run, struct rfx_error *err) {
    struct rfx_cli_job *job = &run->asked.job;
    /* The start of libraries may end the process, so it comes before any file is opened. */
    run->run = (struct rfx_run){.plan = job->plan, .spill_folder = run->asked.options->plan.spill};
    enum rfx_status status = rfx_run_prepare(&run->run, err);
    if (status == RFX_OK)
        status = rfx_cli_outputs_open(job->mem, job->graph, run->asked.options, &job->geo,
                                      &run->outputs, err);
    if (run->asked.missing.mem != NULL) run->outputs.missing = &run->asked.missing;
    if (status == RFX_OK && run->asked.images == 1) {
        status = rfx_cli_classes_begin(job->mem, job->graph, &run->asked.options->report,
                                       &run->classes, err);
        run->outputs.classes = &run->classes;
    }
    bool paged = run->asked.options->report.page != NULL;
    if (status == RFX_OK && paged)
        status = rfx_html_report_open(&run->page, run->asked.options, job, err);
    bool overlaid = run->asked.overlaid;
    if (status == RFX_OK && overlaid)
        status = rfx_overlay_open(&run->overlay, run->asked.options, job, &run->asked.shown, err);
    if (overlaid) run->page.overlay = &run->overlay;
    if (status != RFX_OK) return status;
    struct rfx_output_sink sink = rfx_cli_outputs_sink(&run->outputs);
    if (paged) rfx_html_report_watch(&run->page, &run->run, &sink);
    if (overlaid) rfx_overlay_watch(&run->overlay, &sink, &run->outputs.answers);
    run->run.sink = &sink;
    status = run_images(run, err);
    if (paged) rfx_html_report_end(&run->page, &run->report);
    if (status == RFX_OK)
        status = rfx_cli_classes_finish(&run->asked.options->report, &run->classes, err);
    if (status == RFX_OK) status = rfx_cli_outputs_finish(&run->outputs, err);
    if (status == RFX_OK && overlaid)
        status = rfx_overlay_draw(&run->overlay, &run->outputs.answers, err);
    if (status == RFX_OK && paged)
        status = rfx_html_report_write(&run->page, &run->outputs, &run->report, err);
    return status;
}

/* Runs a network with late nodes: the plan, then the late nodes on its outputs. */
static enum rfx_status execute_late(struct run *run, struct rfx_error *err) {
    struct rfx_cli_job *job = &run->asked.job;
    const struct rfx_cli_run_options *options = run->asked.options;
    run->run = (struct rfx_run){.plan = job->plan, .spill_folder = options->plan.spill};
    enum rfx_status status = rfx_run_prepare(&run->run, err);
    if (status == RFX_OK)
        status = rfx_late_results_open(&run->late, job->graph, options, &job->geo, err);
    if (status != RFX_OK) return status;
    const struct rfx_output_sink sink = rfx_late_results_sink(&run->late);
    run->run.sink = &sink;
    status = run_images(run, err);
    if (status == RFX_OK)
        status = rfx_late_results_write(&run->late, options, &job->geo, &run->outputs, err);
    return status == RFX_OK ? rfx_cli_outputs_finish(&run->outputs, err) : status;
}

static int print_result(const struct run *run) {
    const struct rfx_cli_report_options *report = &run->asked.options->report;
    struct rfx_run_result result = {
        .options = run->asked.options,
        .graph = run->asked.job.graph,
        .plan = run->asked.job.plan,
        .report = &run->report,
        .outputs = &run->outputs,
        .classes = &run->classes,
        .overlay = report->overlay != NULL || report->viewer != NULL ? &run->overlay : NULL};
    return rfx_run_result_print(&result);
}

static int run_once(struct rfx_cli_run_options *options) {
    struct run run = {.image = 0};
    struct rfx_error err = {{0}};
    options->model.late = true;
    int code = rfx_run_request_open(&run.asked, options, options->words.args[1]);
    if (code == RFX_EXIT_DONE) code = rfx_cli_job_plan(&run.asked.job, options, "run");
    if (code == RFX_EXIT_DONE) {
        bool late = run.asked.job.graph->late != NULL;
        enum rfx_status status = late ? execute_late(&run, &err) : execute(&run, &err);
        if (status != RFX_OK)
            code = rfx_cli_fail(status, &err);
        else
            code = print_result(&run);
        rfx_cli_job_tell_budget(&run.asked.job, options, status);
    }
    rfx_cli_classes_free(&run.classes);
    rfx_overlay_free(&run.overlay);
    rfx_html_report_free(&run.page);
    rfx_cli_outputs_free(&run.outputs);
    rfx_late_results_free(&run.late);
    rfx_run_release(&run.run);
    rfx_run_request_release(&run.asked);
    return code;
}

static int run(void *values) {
    struct rfx_cli_run_options *options = values;
    const struct rfx_cli_part_options *part = &options->part;
    bool parted = (part->part != NULL || part->part_rect != NULL) && part->mask == NULL;
    bool listed = options->list.list != NULL;
    int n = options->words.n_args;
    options->model.late = options->model.join_cuts = parted;
    if (parted) return rfx_run_shard(options);
    if (part->mask != NULL && n == 2) return rfx_run_masked(options);
    if (n != (listed ? 1 : 2)) {
        rfx_cli_message("run needs %s, %d given; 'rfexec help run' explains",
                        listed ? "1 argument with --list" : "2 arguments", n);
        return RFX_EXIT_USAGE;
    }
    return listed ? rfx_run_batch(options) : run_once(options);
}

static struct rfx_cli_run_options values;

static const struct rfx_cli_use uses[] = {RFX_CLI_USES_OF_RUN};

const struct rfx_cli_command rfx_cmd_run = {
    .name = "run",
    .args =
        "MODEL INPUT [PLAN OPTIONS] [-o FILE] [--part I/N] [--report FILE.html] "
        "[--overlay FILE] [--viewer DIR] [--top K --labels FILE] [--json]\n"
        "       rfexec run MODEL --list FILE --out-dir DIR [--as KIND] [--table FILE.csv] "
        "[--resume] "
        "[PLAN OPTIONS] [--json]",
    .summary = "run a network on an image",
    .details =
        "MODEL is an .onnx file or a built-in name ('rfexec models'). INPUT is one of:\n"
        "  an image file (png, jpg, tif, bmp, ...) or a Zarr folder\n"
        "  a .npy file, CxHxW or 1xCxHxW float32, which is used without preprocessing\n"
        "  a .npy file NxCxHxW: the images run one after the other in the memory of one,\n"
        "    and each output is a .npy file of N\n"
        "  bands:FILE,FILE,...: one file for each band, all of one size (as --bands-from)\n"
        "  synthetic:HxW[:seed]\n"
        "  -: a file from standard input\n"
        "With --memory the whole process stays within the budget: its peak resident memory is at\n"
        "most BYTES. Without a plan option the network runs untiled.\n"
        "\n"
        "The end of the name of -o chooses the kind of file: .npy; .tif (maps of floats; BigTIFF\n"
        "above 4 GiB); .png (maps of 1 or 3 channels, the smallest value black, the largest\n"
        "white); .pfm (maps of floats, 1 or 3 channels); folders .zarr (maps of floats) and\n"
        ".ome.zarr (the same for viewers). Several outputs go to NAME.<output>.EXT. A file gets\n"
        "its name when it is complete: after an error, SIGINT, SIGTERM or SIGHUP (exit code 5)\n"
        "there is none. Outputs behind nodes whose sizes depend on data, such as\n"
        "NonMaxSuppression, are written as .npy of the sizes found.\n"
        "'-o -' writes .npy to standard output and the report to standard error.\n"
        "Maps that are not stored are written during the run; a .png without --range, and images\n"
        "that are computed in column strips, need disk space for the map in floats too.\n"
        "\n"
        "--report writes one page that needs no other file and no network connection. Its\n"
        "contents (below 3 MiB for most networks) count against the budget. --overlay draws\n"
        "the boxes of --boxes, the outlines of --regions, labels (label 0 is clear) or the values\n"
        "of a channel (small values are clear) over the input, at full size, row by row and\n"
        "within the budget. --points and --text are drawn over these values. The overlay needs\n"
        "4 bytes of disk space for each pixel of the map. --viewer writes the same as a new\n"
        "folder of tiles. Its page index.html shows images of any size in a browser, without a\n"
        "network connection: drag to move, turn the wheel to zoom.\n"
        "\n"
        "--part 2/4 computes the second quarter of the output's rows and only what these rows\n"
        "need. -o PART.npy gets a JSON file beside it that describes the run; 'rfexec merge' puts\n"
        "the parts together. A part whose file is there already is not computed again. --mask\n"
        "takes an image over the output: where it is 0 nothing is computed, except for global\n"
        "pools and norms, and 0 or the no-data value of a GeoTIFF is written.\n"
        "\n"
        "--list runs the network on many images. The network is loaded once for all images of one\n"
        "size. An image that fails does not stop the others; the exit code is that of the first\n"
        "failure. With --json one line is printed for each image and one for all. --table puts "
        "what\n"
        "is found in all images into one CSV file, which is written if no image fails.\n",
    .examples =
        "rfexec run mobilenet_v2 photo.png --memory 64MiB --top 5\n"
        "rfexec run net.onnx photo.png --memory 64MiB -o map.npy --report report.html\n"
        "rfexec run segment.onnx scan.tif --memory 256MiB --overlay seen.png\n"
        "rfexec run detect.onnx scene.tif --memory 256MiB --boxes out.json --overlay seen.png\n"
        "rfexec run segment.onnx slide.svs --memory 1GiB --regions cells.geojson --viewer seen\n"
        "rfexec run retinanet.onnx street.jpg --boxes out.json --head retinanet.json\n"
        "rfexec run mobilenet_v2 synthetic:4096x4096 --memory 256MiB --json\n"
        "rfexec run net.onnx image.png --tiles 4x4 --split features.6 -o map.npy\n"
        "rfexec run fsrcnn huge.png --memory 64MiB --part 2/4 -o part2.npy\n"
        "rfexec run net.onnx slide.tif --mask tissue.png --memory 1GiB -o map.tif\n"
        "ls scans/*.tif | rfexec run net.onnx --list - --out-dir maps --memory 1GiB --resume\n",
    RFX_CLI_TABLE(uses),
    .min_args = 1,
    .max_args = 2,
    .input = 2,
    .values = &values,
    .run = run,
};
