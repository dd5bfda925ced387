/* rfexec verify: runs the requested plan, then the untiled plan, and compares their outputs bit by
 * bit. Another plan takes the place of the untiled plan where the untiled plan does not fit. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "tiler/modes/modes.h"
#include "tools/cli/job.h"
#include "tools/cli/outputs.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/cli/run_once.h"
#include "tools/commands/naive_tiles.h"

struct difference { /* of one output */
    int64_t elements, different;
    int64_t first; /* element in ONNX order; -1: none */
    float tiled, untiled;
};

struct naive_error { /* of one output */
    int64_t wrong;
    double largest, magnitude; /* largest absolute error; largest absolute true value */
};

struct verify_options {
    struct rfx_cli_run_options run;
    bool naive;
    size_t against_bytes; /* --against: budget of the other plan; 0: not given */
};

struct verify {
    struct rfx_cli_job job;
    const struct rfx_cli_run_options *options;
    const struct verify_options *asked;
    int n_outputs;
    float **kept; /* outputs of the tiled run; later overwritten by those of the untiled run */
    struct difference *differences;
    struct naive_error *errors;
    struct rfx_naive_tiles *naive;
    struct rfx_error naive_refused; /* reason why naive tiles could not be run */
    char (*hashes)[RFX_FINGERPRINT_CHARS];
    struct rfx_run_report tiled, untiled;
    char other[RFX_PLAN_TEXT]; /* description of the other plan, such as "untiled" */
    json_t *measured;          /* figures of the tiled run, read before the untiled run raises the
                                * process's peak memory */
    size_t tiled_peak_bytes;
};

static enum rfx_status allocate(struct verify *v, struct rfx_error *err) {
    const struct rfx_graph *graph = v->job.graph;
    struct rfx_memory *mem = v->job.mem;
    size_t n = (size_t)graph->n_outputs;
    v->n_outputs = graph->n_outputs;
    v->kept = rfx_memory_calloc(mem, n, sizeof *v->kept);
    v->differences = rfx_memory_calloc(mem, n, sizeof *v->differences);
    v->errors = rfx_memory_calloc(mem, n, sizeof *v->errors);
    v->hashes = rfx_memory_calloc(mem, n, sizeof *v->hashes);
    if (v->kept == NULL || v->differences == NULL || v->errors == NULL || v->hashes == NULL)
        return rfx_memory_fail(mem, "verify", n * sizeof *v->differences, err);
    for (size_t k = 0; k < n; ++k) {
        size_t bytes = rfx_node_out_bytes(&graph->nodes[graph->outputs[k].node]);
        v->kept[k] = rfx_memory_alloc(mem, bytes);
        if (v->kept[k] == NULL) return rfx_memory_fail(mem, "kept output", bytes, err);
        memset(v->kept[k], 0xff, bytes); /* no output has these bits, so missing elements show */
    }
    return RFX_OK;
}

static void release(struct verify *v) {
    struct rfx_memory *mem = v->job.mem;
    for (int k = 0; v->kept != NULL && k < v->n_outputs; ++k) rfx_memory_release(mem, v->kept[k]);
    rfx_naive_tiles_free(v->naive);
    json_decref(v->measured);
    if (mem != NULL) {
        rfx_memory_release(mem, v->kept);
        rfx_memory_release(mem, v->differences);
        rfx_memory_release(mem, v->errors);
        rfx_memory_release(mem, v->hashes);
    }
    rfx_cli_job_free(&v->job);
}

/* Stores a piece of an output in v->kept. */
static enum rfx_status keep_piece(void *user, const struct rfx_end *end, struct rfx_rect rect,
                                  const struct rfx_view *view, struct rfx_error *err) {
    struct verify *v = user;
    (void)err;
    rfx_end_scatter(end, RFX_TYPE_FLOAT32, v->kept[end->output], rect, view);
    return RFX_OK;
}

static void compare_element(struct difference *d, int64_t at, float *kept, float untiled) {
    d->elements++;
    if (memcmp(kept, &untiled, sizeof untiled) != 0) {
        d->different++;
        if (d->first < 0 || at < d->first) {
            d->first = at;
            d->tiled = *kept;
            d->untiled = untiled;
        }
    }
    *kept = untiled;
}

/* Compares a piece of an output with the kept values, then overwrites the kept values by it. */
static enum rfx_status compare_piece(void *user, const struct rfx_end *end, struct rfx_rect rect,
                                     const struct rfx_view *view, struct rfx_error *err) {
    struct verify *v = user;
    float *kept = v->kept[end->output];
    (void)err;
    for (int64_t y = rect.y0; y < rect.y1; ++y)
        for (int64_t x = rect.x0; x < rect.x1; ++x) {
            const float *pixel = rfx_view_f32_at(view, y, x);
            int64_t at = end->at.first + y * end->at.row_step + x * end->at.column_step;
            for (int64_t c = 0; c < end->channels; ++c, at += end->at.channel_step)
                compare_element(&v->differences[end->output], at, kept + at, rfx_one_nan(pixel[c]));
        }
    return RFX_OK;
}

/* Runs a plan and gives its outputs to `sink`. */
static enum rfx_status run_plan(struct verify *v, const struct rfx_plan *plan, const char *what,
                                const struct rfx_output_sink *sink, struct rfx_run_report *report,
                                struct rfx_error *err) {
    const struct rfx_cli_run run = {.plan = plan,
                                    .image = v->job.image,
                                    .sink = sink,
                                    .spill = v->options->plan.spill,
                                    .what = what};
    return rfx_cli_run_once(&run, report, err);
}

static enum rfx_status run_tiled(struct verify *v, struct rfx_error *err) {
    const struct rfx_graph *graph = v->job.graph;
    const struct rfx_output_sink sink = {.write = keep_piece, .user = v};
    enum rfx_status status =
        run_plan(v, v->job.plan, "verify, 1 of 2: as planned", &sink, &v->tiled, err);
    for (int k = 0; status == RFX_OK && k < v->n_outputs; ++k) {
        struct rfx_fingerprint fingerprint = {0};
        rfx_fingerprint_add(&fingerprint, RFX_TYPE_FLOAT32, 0, v->kept[k],
                            graph->nodes[graph->outputs[k].node].out.elems);
        rfx_fingerprint_hex(&fingerprint, v->hashes[k]);
    }
    v->tiled_peak_bytes = rfx_peak_rss_bytes();
    v->measured = rfx_report_measured(&v->tiled);
    return status;
}

/* Checks that the other plan differs from the requested plan and fits into the machine's memory. */
static enum rfx_status check_other(struct verify *v, const struct rfx_plan *plan,
                                   struct rfx_error *err) {
    char asked[RFX_PLAN_TEXT], a[RFX_HUMAN_CHARS], b[RFX_HUMAN_CHARS];
    size_t there = rfx_available_bytes();
    rfx_plan_describe(v->job.plan, asked, sizeof asked);
    rfx_plan_describe(plan, v->other, sizeof v->other);
    bool alike = v->job.plan->grouped == NULL && strcmp(asked, v->other) == 0;
    if (v->asked->against_bytes != 0 && alike)
        return rfx_fail(
            err, RFX_STATUS_INVALID_ARGUMENT,
            "--against %zu gives the plan of the first run again (%s): give another budget",
            v->asked->against_bytes, asked);
    if (there != 0 && plan->peak_bytes > there)
        return rfx_fail(err, RFX_STATUS_BUDGET_IMPOSSIBLE,
                        "the %s run to compare with needs %s, the machine has %s: give --against "
                        "BYTES for a smaller plan",
                        v->other, rfx_human_bytes(plan->peak_bytes, a), rfx_human_bytes(there, b));
    return RFX_OK;
}

/* Checks that every element of each output was received exactly once. */
static enum rfx_status need_all(const struct verify *v, struct rfx_error *err) {
    const struct rfx_graph *graph = v->job.graph;
    for (int k = 0; k < v->n_outputs; ++k) {
        int64_t elems = graph->nodes[graph->outputs[k].node].out.elems;
        if (v->differences[k].elements != elems)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                            "output '%s': %lld of %lld elements came", graph->outputs[k].name,
                            (long long)v->differences[k].elements, (long long)elems);
    }
    return RFX_OK;
}

/* Runs the untiled plan, compares its outputs with the kept values, and keeps its outputs instead.
 */
static enum rfx_status run_untiled(struct verify *v, struct rfx_error *err) {
    struct rfx_plan *plan = NULL;
    size_t against = v->asked->against_bytes;
    struct rfx_plan_request request = {
        .source = v->job.request.source,
        .threads = v->job.request.threads,
        .memory_bytes = against,
        .may_spill = against != 0 && v->options->plan.spill != NULL,
        .caches = v->job.request.caches,
        .no_groups = true}; /* so that both runs cannot share a bug in groups */
    const struct rfx_output_sink sink = {.write = compare_piece, .user = v};
    if (against == 0) request.asked = rfx_ask_whole();
    for (int k = 0; k < v->n_outputs; ++k) v->differences[k] = (struct difference){.first = -1};
    enum rfx_status status = rfx_plan_create(v->job.graph, &request, &plan, err);
    if (status == RFX_OK) status = check_other(v, plan, err);
    if (status == RFX_OK)
        status = run_plan(v, plan, "verify, 2 of 2: untiled", &sink, &v->untiled, err);
    if (status == RFX_OK) status = need_all(v, err);
    rfx_plan_free(plan);
    return status;
}

static void measure_naive(const float *truth, const float *naive, int64_t n,
                          struct naive_error *error) {
    for (int64_t i = 0; i < n; ++i) {
        double distance = fabs((double)naive[i] - (double)truth[i]);
        error->wrong += memcmp(&naive[i], &truth[i], sizeof *truth) != 0;
        if (!(distance <= error->largest)) error->largest = distance; /* a NaN stays */
        error->magnitude = fmax(error->magnitude, fabs((double)truth[i]));
    }
}

/* Runs the model on tiles without halos. When the model cannot take a tile's size, verify does not
 * fail: the reason is reported. */
static enum rfx_status run_naive(struct verify *v, struct rfx_error *err) {
    struct rfx_load_options load = {.fit = v->options->model.fit,
                                    .seed = v->options->model.seed,
                                    .conv = v->options->model.conv,
                                    .int8 = v->options->model.int8,
                                    .dequantize = v->options->model.dequantize,
                                    .fuse = rfx_cli_fuse(&v->options->model)};
    enum rfx_status status = rfx_naive_tiles_run(v->job.plan, v->options->words.args[0], &load,
                                                 v->job.image, &v->naive, &v->naive_refused);
    if (status == RFX_OK) {
        for (int k = 0; k < v->n_outputs; ++k)
            measure_naive(v->kept[k], v->naive->outputs[k], v->differences[k].elements,
                          &v->errors[k]);
        return RFX_OK;
    }
    if (status == RFX_STATUS_OUT_OF_MEMORY || status == RFX_STATUS_IO) {
        *err = v->naive_refused;
        return status;
    }
    return RFX_OK;
}

/* Converts the index of an element to its indices in the output's declared dimensions (n, c, y, x
 * for a map). */
static void find_place(const struct rfx_shape *shape, int64_t element, int64_t *place) {
    for (int i = shape->rank - 1; i >= 0; --i) {
        place[i] = element % shape->dims[i];
        element /= shape->dims[i];
    }
}

static json_t *difference_json(const struct verify *v, int k) {
    const struct difference *d = &v->differences[k];
    const struct rfx_shape whole = rfx_output_shape(v->job.graph, k), *shape = &whole;
    json_t *item = json_pack("{s:s, s:o, s:s, s:I, s:I}", "name", v->job.graph->outputs[k].name,
                             "shape", rfx_report_shape(shape), "hash", v->hashes[k], "elements",
                             (json_int_t)d->elements, "different", (json_int_t)d->different);
    if (d->first >= 0) {
        struct rfx_shape place = {.rank = shape->rank};
        find_place(shape, d->first, place.dims);
        (void)json_object_set_new(item, "first_difference",
                                  json_pack("{s:o, s:o, s:o}", "place", rfx_report_shape(&place),
                                            "tiled", rfx_report_number((double)d->tiled), "untiled",
                                            rfx_report_number((double)d->untiled)));
    }
    return item;
}

static json_t *naive_json(const struct verify *v) {
    if (v->naive == NULL) return json_pack("{s:s}", "refused", v->naive_refused.text);
    json_t *list = json_array();
    for (int k = 0; k < v->n_outputs; ++k) {
        const struct naive_error *e = &v->errors[k];
        (void)json_array_append_new(
            list,
            json_pack("{s:s, s:o, s:o, s:I, s:f}", "name", v->job.graph->outputs[k].name,
                      "largest_error", rfx_report_number(e->largest), "relative_error",
                      rfx_report_number(e->magnitude > 0 ? e->largest / e->magnitude : e->largest),
                      "wrong", (json_int_t)e->wrong, "wrong_share",
                      (double)e->wrong / (double)v->differences[k].elements));
    }
    return json_pack("{s:I, s:I, s:o}", "tiles", (json_int_t)v->naive->tiles, "resized_tiles",
                     (json_int_t)v->naive->resized_tiles, "outputs", list);
}

static int print_json(struct verify *v, int64_t compared, int64_t different) {
    json_t *document = rfx_report_document("verify", v->options->words.shown[0]);
    rfx_report_conv(document, v->job.graph);
    json_t *outputs = json_array();
    for (int k = 0; k < v->n_outputs; ++k)
        (void)json_array_append_new(outputs, difference_json(v, k));
    (void)json_object_update_new(
        document,
        json_pack("{s:s, s:b, s:I, s:I, s:O, s:s, s:f, s:o}", "input", v->options->words.shown[1],
                  "identical", different == 0, "compared", (json_int_t)compared, "different",
                  (json_int_t)different, "measured", v->measured, "against", v->other,
                  "seconds_untiled", v->untiled.seconds, "plan", rfx_report_plan(v->job.plan)));
    (void)json_object_set(document, "output", json_array_get(outputs, 0));
    (void)json_object_set_new(document, "outputs", outputs);
    if (v->asked->naive) (void)json_object_set_new(document, "naive", naive_json(v));
    return rfx_report_print(document);
}

static void print_naive(const struct verify *v) {
    if (v->naive == NULL) {
        printf("naive      not possible: %s\n", v->naive_refused.text);
        return;
    }
    for (int k = 0; k < v->n_outputs; ++k) {
        const struct naive_error *e = &v->errors[k];
        printf(
            "naive      %s: tiles without halos give %.2f %% wrong elements, largest error %.4g "
            "(%.2f %% of the largest value)\n",
            v->job.graph->outputs[k].name,
            100.0 * (double)e->wrong / (double)v->differences[k].elements, e->largest,
            e->magnitude > 0 ? 100.0 * e->largest / e->magnitude : 0.0);
    }
    if (v->naive->resized_tiles > 0)
        printf(
            "           %lld of %lld tiles gave a map of another size: cropped or filled with 0\n",
            (long long)v->naive->resized_tiles, (long long)v->naive->tiles);
}

static void print_text(const struct verify *v, int64_t compared, int64_t different) {
    char a[RFX_HUMAN_CHARS], shape[96];
    rfx_report_plan_text(v->job.plan);
    printf("measured   %s peak RSS, %.3f s tiled, %.3f s untiled\n",
           rfx_human_bytes(v->tiled_peak_bytes, a), v->tiled.seconds, v->untiled.seconds);
    if (v->asked->against_bytes != 0) printf("against    %s (\"untiled\" here)\n", v->other);
    for (int k = 0; k < v->n_outputs; ++k) {
        const struct difference *d = &v->differences[k];
        const struct rfx_shape whole = rfx_output_shape(v->job.graph, k), *s = &whole;
        printf("output     %s %s, hash %s: %lld of %lld elements differ\n",
               v->job.graph->outputs[k].name, rfx_human_shape(s, shape), v->hashes[k],
               (long long)d->different, (long long)d->elements);
        if (d->first < 0) continue;
        struct rfx_shape place = {.rank = s->rank};
        find_place(s, d->first, place.dims);
        printf("           first difference at (");
        for (int i = 0; i < place.rank; ++i)
            printf("%s%lld", i == 0 ? "" : ", ", (long long)place.dims[i]);
        printf("): tiled %.9g, untiled %.9g\n", (double)d->tiled, (double)d->untiled);
    }
    if (v->asked->naive) print_naive(v);
    printf("%s  %lld elements compared, %lld different\n",
           different == 0 ? "IDENTICAL" : "DIFFERENT", (long long)compared, (long long)different);
}

static int print_result(struct verify *v) {
    int64_t compared = 0, different = 0;
    for (int k = 0; k < v->n_outputs; ++k) {
        compared += v->differences[k].elements;
        different += v->differences[k].different;
    }
    int code = RFX_EXIT_DONE;
    if (v->options->json)
        code = print_json(v, compared, different);
    else
        print_text(v, compared, different);
    return code == RFX_EXIT_DONE && different > 0 ? RFX_EXIT_DIFFERENT : code;
}

static int run(void *given) {
    struct verify_options *asked = given;
    const struct rfx_cli_run_options *options = &asked->run;
    asked->run.model.late = !asked->naive;
    struct verify v = {.options = options, .asked = asked};
    struct rfx_error err = {{0}};
    int code = rfx_cli_job_open(&v.job, options, options->words.args[1]);
    if (code == RFX_EXIT_DONE && options->plan.tiles.y == 0 && options->plan.bands == 0 &&
        options->plan.memory_bytes == 0 && !options->plan.untiled &&
        options->plan.plan_file == NULL)
        rfx_cli_job_ask_cut(&v.job);
    if (code == RFX_EXIT_DONE) code = rfx_cli_job_plan(&v.job, options, "verify");
    if (code == RFX_EXIT_DONE) {
        enum rfx_status status = allocate(&v, &err);
        if (status == RFX_OK) status = run_tiled(&v, &err);
        if (status == RFX_OK) status = run_untiled(&v, &err);
        if (status == RFX_OK && asked->naive) status = run_naive(&v, &err);
        code = status == RFX_OK ? print_result(&v) : rfx_cli_fail(status, &err);
    }
    release(&v);
    return code;
}

static const struct rfx_cli_option rows[] = {
    RFX_CLI_OPTION(verify_options, "against", BYTES, against_bytes, "BYTES",
                   "compare with the plan for this budget, where the untiled run does not fit into "
                   "the machine's memory"),
    RFX_CLI_OPTION(verify_options, "naive", FLAG, naive, NULL,
                   "also show the error of the same tiles without halos", .excludes = "keep"),
};
static const struct rfx_cli_group group = RFX_CLI_GROUP("verify options", rows);

static struct verify_options values;

static const struct rfx_cli_use uses[] = {
    {&group, 0},
    RFX_CLI_USES_OF_JOB,
    RFX_CLI_USE(json, verify_options, run.json),
};

const struct rfx_cli_command rfx_cmd_verify = {
    .name = "verify",
    .args = "MODEL INPUT [PLAN OPTIONS] [--against BYTES] [--naive] [--json]",
    .summary = "compare a tiled or streamed run with the untiled run, bit by bit",
    .details =
        "Runs the network twice. The exit code is 1 when any bit of any output differs. Without\n"
        "--memory, --bands, --tiles, --plan and --untiled the first run has 4x4 tiles. --naive\n"
        "also shows what the same tiles would have given without halos.\n",
    .examples =
        "rfexec verify mobilenet_v2 synthetic:1537x2049 --tiles 4x4 --split features.6\n"
        "rfexec verify resnet50 photo.png --memory 320MiB --naive\n",
    RFX_CLI_TABLE(uses),
    .min_args = 2,
    .max_args = 2,
    .input = 2,
    .values = &values,
    .run = run,
};
