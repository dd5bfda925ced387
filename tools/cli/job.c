/* Loading, opening and planning; see job.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "layers/core/checked.h"
#include "layers/graph/near_names.h"
#include "rfexec/output/georeferenced.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan_check.h"
#include "tools/cli/answers.h"
#include "tools/cli/classes.h"
#include "tools/cli/job.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"

enum { LEAST_BEGUN = 3, NEAR_TEXT = 200 };

/* Writes a suggestion such as "'a' or 'b'": the built-in networks whose names begin with `word`
 * (LEAST_BEGUN letters at least), or else the one with the most similar name. Writes an empty text
 * when there is no such network. */
static void near_builtins(const char *word, char text[NEAR_TEXT]) {
    struct rfx_nearest nearest = {.word = word};
    int count;
    const struct rfx_builtin *builtins = rfx_builtin_list(&count);
    size_t length = strlen(word), used = 0;
    text[0] = '\0';
    for (int i = 0; i < count; ++i) {
        const char *name = builtins[i].name;
        rfx_nearest_consider(&nearest, name);
        bool fits = used + strlen(name) + sizeof " or ''" < NEAR_TEXT;
        if (length < LEAST_BEGUN || strncasecmp(name, word, length) != 0 || !fits) continue;
        used += (size_t)snprintf(text + used, NEAR_TEXT - used, "%s'%s'", used == 0 ? "" : " or ",
                                 name);
    }
    if (used == 0 && nearest.name != NULL) (void)snprintf(text, NEAR_TEXT, "'%s'", nearest.name);
}

int rfx_cli_refuse_model(const char *name, const char *words) {
    char near[NEAR_TEXT];
    near_builtins(name, near);
    rfx_cli_message("model '%s': %s", name, words);
    if (near[0] != '\0')
        rfx_cli_message("did you mean %s? 'rfexec models' lists the built-in ones", near);
    else
        rfx_cli_message("'rfexec models' lists the built-in ones");
    return RFX_EXIT_REFUSED;
}

/* Returns the image format of a file, judged by its first bytes, or NULL when it is no image. */
static const char *picture_kind(const char *path) {
    static const struct {
        const char *name, *head;
        size_t size;
    } kinds[] = {
        {"PNG", "\x89PNG", 4},   {"JPEG", "\xff\xd8\xff", 3},
        {"GIF", "GIF8", 4},      {"TIFF", "II*\0", 4},
        {"TIFF", "MM\0*", 4},    {"BigTIFF", "II+\0", 4},
        {"WebP", "RIFF", 4},     {"BMP", "BM", 2},
        {"npy", "\x93NUMPY", 6},
    };
    char head[8] = {0};
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    size_t n = fread(head, 1, sizeof head, file);
    (void)fclose(file);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i)
        if (n >= kinds[i].size && memcmp(head, kinds[i].head, kinds[i].size) == 0)
            return kinds[i].name;
    return NULL;
}

bool rfx_cli_tell_picture(const char *model) {
    const char *picture = picture_kind(model);
    if (picture == NULL) return false;
    rfx_cli_message("model '%s' is a %s file, not an .onnx one: the model comes first", model,
                    picture);
    return true;
}

static bool is_model_name(const char *name) {
    const char *end = strrchr(name, '.');
    return rfx_builtin_exists(name) || (end != NULL && strcasecmp(end, ".onnx") == 0);
}

static bool is_input_name(const char *name) {
    return strncmp(name, "synthetic:", sizeof "synthetic:" - 1) == 0 ||
           strncmp(name, "bands:", sizeof "bands:" - 1) == 0 || picture_kind(name) != NULL;
}

/* Returns whether model and input were given in the wrong order. Prints a message if so. */
static bool tell_exchanged(const char *model, const char *input) {
    bool takes_model = is_model_name(input);
    if (!takes_model && !is_input_name(model)) return false;
    rfx_cli_message("'%s' is a %s: the model comes first, then the picture (given: '%s' '%s')",
                    takes_model ? input : model,
                    takes_model ? "model, not a picture" : "picture, not a model", model, input);
    return true;
}

/* Returns whether the model loads at `times` successive multiples of `multiple`. The first size is
 * the image's size, rounded up. */
static bool loads_at_multiples(struct rfx_memory *mem, const char *model,
                               const struct rfx_load_options *load, int64_t multiple, int times) {
    struct rfx_load_options tried = *load;
    struct rfx_graph *graph;
    tried.h = rfx_ceil_div(load->h, multiple) * multiple;
    tried.w = rfx_ceil_div(load->w, multiple) * multiple;
    for (int i = 0; i < times; ++i, tried.h += multiple, tried.w += multiple) {
        if (rfx_model_load(mem, model, &tried, &graph, NULL) != RFX_OK) return false;
        rfx_graph_free(graph);
    }
    return true;
}

/* Called when the model does not load at the image's size. Prints the multiple of rows and columns
 * that the model needs, if such a multiple is the reason. The multiple counts as the reason only
 * when the model loads at TIMES successive multiples. */
static void tell_multiple(struct rfx_memory *mem, const char *model,
                          const struct rfx_load_options *load) {
    static const int64_t multiples[] = {2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256};
    enum { N = sizeof multiples / sizeof multiples[0], SURE = 3 * 256, TIMES = 4 };
    if (load->fit.multiple > 1 || load->h < 1 || load->w < 1) return;
    if (!loads_at_multiples(mem, model, load, SURE, 1))
        return; /* SURE: a multiple of every entry */
    for (int i = 0; i < N; ++i) {
        if (!loads_at_multiples(mem, model, load, multiples[i], TIMES)) continue;
        rfx_cli_message(
            "'%s' takes sizes that are multiples of %lld: --pad-to %lld fills %lld x "
            "%lld up and cuts the output back",
            model, (long long)multiples[i], (long long)multiples[i], (long long)load->h,
            (long long)load->w);
        return;
    }
}

static int load_model(struct rfx_memory *mem, const char *model,
                      const struct rfx_load_options *load, struct rfx_graph **out) {
    struct rfx_error err = {{0}};
    if (!rfx_builtin_exists(model) && access(model, R_OK) != 0)
        return rfx_cli_refuse_model(model, "neither a readable file nor a built-in network");
    enum rfx_status status = rfx_model_load(mem, model, load, out, &err);
    if (status == RFX_STATUS_MALFORMED && rfx_cli_tell_picture(model)) return RFX_EXIT_REFUSED;
    if (status != RFX_OK && strstr(err.text, model) == NULL)
        status = rfx_fail_within(&err, status, "model '%s'", model);
    if (status == RFX_STATUS_UNSUPPORTED || status == RFX_STATUS_MALFORMED) {
        int code = rfx_cli_fail(status, &err);
        tell_multiple(mem, model, load);
        return code;
    }
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    if ((*out)->halves)
        rfx_cli_message("model '%s' is of half precision; it is computed in float32", model);
    const int64_t *declared = (*out)->declared, *filled = (*out)->filled;
    if (declared[0] > 0)
        rfx_cli_message("model '%s' states images of %lldx%lld; it is run at %lldx%lld", model,
                        (long long)declared[0], (long long)declared[1], (long long)load->h,
                        (long long)load->w);
    if (filled[0] > 0)
        rfx_cli_message(
            "model '%s' fills images of %lldx%lld up to %lldx%lld with zeros, at their right and "
            "below: outputs are those of the larger size",
            model, (long long)load->h, (long long)load->w, (long long)filled[0],
            (long long)filled[1]);
    if ((*out)->batch > 0)
        rfx_cli_message(
            "model '%s' was made for batches of %lld images; it is run on one image at a time",
            model, (long long)(*out)->batch);
    return RFX_EXIT_DONE;
}

const struct rfx_fuse_options *rfx_cli_fuse(const struct rfx_cli_model_options *options) {
    static const struct rfx_fuse_options nothing = {0};
    static const struct rfx_fuse_options no_add = {true, true, false, true, true};
    if (options->fuse != NULL) return options->fuse;
    if (options->no_fuse) return &nothing;
    return options->no_fuse_add ? &no_add : NULL;
}

int rfx_cli_load(struct rfx_memory *mem, const char *model,
                 const struct rfx_cli_model_options *options, int64_t h, int64_t w,
                 size_t memory_bytes, struct rfx_graph **out) {
    struct rfx_load_options load = {.h = h,
                                    .w = w,
                                    .fit = options->fit,
                                    .seed = options->seed,
                                    .conv = options->conv,
                                    .int8 = options->int8,
                                    .dequantize = options->dequantize,
                                    .fuse = rfx_cli_fuse(options),
                                    .keep = options->kept.tensors,
                                    .n_keep = options->kept.n,
                                    .class_map = options->class_map,
                                    .join_heads = options->join_heads,
                                    .detector = options->detector,
                                    .head_only = options->head_only,
                                    .late = options->late,
                                    .join_cuts = options->join_cuts,
                                    .memory_bytes = memory_bytes};
    if (options->tensors != NULL) {
        load.keep = options->tensors;
        load.n_keep = options->n_tensors;
        load.keep_how = options->keep_how;
    }
    return load_model(mem, model, &load, out);
}

int rfx_cli_load_fused(struct rfx_memory *mem, const char *model,
                       const struct rfx_cli_model_options *options,
                       const struct rfx_fuse_options *fuse, struct rfx_graph **out) {
    struct rfx_load_options load = {.h = options->size.y,
                                    .w = options->size.x,
                                    .fit = options->fit,
                                    .seed = options->seed,
                                    .conv = options->conv,
                                    .int8 = options->int8,
                                    .dequantize = options->dequantize,
                                    .fuse = fuse};
    return load_model(mem, model, &load, out);
}

enum { MOST_SIDE = 1000000 }; /* largest height and width of synthetic images */

struct rfx_image_options rfx_cli_image_options(const struct rfx_cli_run_options *options,
                                               int64_t channels) {
    const struct rfx_cli_input_options *input = &options->input;
    struct rfx_image_options image = rfx_image_default_options();
    if (input->scale.given) image.scale = input->scale.factor;
    image.raw = input->scale.raw;
    image.nodata = (struct rfx_image_nodata){
        .given = input->nodata.given, .value = input->nodata.value, .fill = input->nodata.fill};
    if (input->mean.n > 0) image.mean = input->mean.values;
    if (input->std.n > 0) image.std = input->std.values;
    image.n_mean = input->mean.n;
    image.n_std = input->std.n;
    image.bgr = input->bgr;
    /* A budget limits images by itself. */
    if (options->plan.memory_bytes != 0) image.max_pixels = 0;
    if (input->max_pixels != 0) image.max_pixels = input->max_pixels;
    image.channels = channels;
    image.max_images = options->images;
    image.slide = input->level.given;
    image.page = image.slide ? input->level.value : input->page.value;
    image.only_page = input->page.given;
    image.region = input->region;
    image.as_stored = input->no_orient;
    image.folder = options->plan.spill;
    if (input->channels.n > 0) image.bands = &input->channels;
    return image;
}

static int open_image(struct rfx_cli_job *job, const struct rfx_cli_run_options *options,
                      const char *spec, int64_t channels) {
    struct rfx_image_options image = rfx_cli_image_options(options, channels);
    struct rfx_error err = {{0}};
    image.nodata = job->nodata;
    image.channels_last = job->channels_last;
    enum rfx_status status = rfx_image_open(job->mem, spec, &image, &job->image, &err);
    /* An input that cannot be opened is a refused input, whatever the system's reason. */
    if (status == RFX_STATUS_IO && access(spec, R_OK) != 0) status = RFX_STATUS_MALFORMED;
    if (status == RFX_OK) return RFX_EXIT_DONE;
    bool refused = status != RFX_STATUS_OUT_OF_MEMORY;
    if (refused && tell_exchanged(options->words.args[0], spec)) return RFX_EXIT_REFUSED;
    return rfx_cli_fail(status, &err);
}

int rfx_cli_job_open_flags(const struct rfx_cli_job *job, const struct rfx_cli_run_options *options,
                           const char *spec, struct rfx_image **out) {
    struct rfx_cli_job other = {
        .mem = job->mem, .nodata = job->nodata, .channels_last = job->channels_last};
    other.nodata.flags = true;
    int code = open_image(&other, options, spec, job->graph->nodes[job->graph->input].out.c);
    *out = other.image;
    return code;
}

/* Reads the image's georeference into job->geo. */
static int read_georeference(struct rfx_cli_job *job, const struct rfx_cli_run_options *options,
                             const char *spec) {
    struct rfx_error err = {{0}};
    rfx_georeference_release(&job->geo.geo);
    enum rfx_status status =
        rfx_geo_source_of(job->mem, job->image, spec, options->input.page.value,
                          options->input.region.y0, options->input.region.x0, &job->geo, &err);
    if (status == RFX_OK && job->geo.dropped != NULL)
        rfx_cli_message("'%s': its %s is too long or none: it is not kept", spec, job->geo.dropped);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

/* Prints how many alpha bands of the image are dropped, and the reader's note on the image. */
static void tell_dropped(const struct rfx_cli_job *job, const char *spec) {
    int bands, alpha = rfx_image_alpha(job->image, &bands);
    if (alpha > 0)
        rfx_cli_message("'%s': %d of %d bands %s alpha and dropped (--channels takes any)", spec,
                        alpha, bands, alpha == 1 ? "is" : "are");
    const char *note = rfx_image_note(job->image);
    if (note[0] != '\0') rfx_cli_message("'%s': %s", spec, note);
}

/* Reads the number of the image's GDAL no-data tag. Returns false when the image has no such tag.
 */
static bool tagged_nodata(const struct rfx_cli_job *job, double *value) {
    const char *text = job->geo.geo.no_data;
    char *end = NULL;
    if (text == NULL) return false;
    *value = strtod(text, &end);
    return end != text;
}

/* Prints a message when the image has a no-data tag but --nodata is not given, so that missing
 * samples are read as data. */
static void tell_nodata(const struct rfx_cli_job *job, const struct rfx_cli_run_options *options,
                        const char *spec) {
    double value;
    if (options->input.nodata.given || !tagged_nodata(job, &value)) return;
    rfx_cli_message(
        "'%s': its no-data value %g is read as data: --nodata file=F reads F in its "
        "place and marks the output",
        spec, value);
}

/* Sets job->nodata from --nodata. For file=F reads the value from the file's tag. *again: the image
 * was opened before the value was known and must be opened again. */
static int settle_nodata(struct rfx_cli_job *job, const struct rfx_cli_run_options *options,
                         const char *spec, bool *again) {
    *again = options->input.nodata.of_file;
    job->nodata = rfx_cli_image_options(options, 0).nodata;
    if (!options->input.nodata.of_file) return RFX_EXIT_DONE;
    int code = read_georeference(job, options, spec);
    if (code != RFX_EXIT_DONE || tagged_nodata(job, &job->nodata.value)) return code;
    rfx_cli_message(
        "--nodata file=%g: '%s' names no no-data value (GDAL's tag of a TIFF): give "
        "the value, such as --nodata 0=%g",
        (double)options->input.nodata.fill, spec, (double)options->input.nodata.fill);
    return RFX_EXIT_USAGE;
}

/* Prints a message when the channels of a .npy array may come last, although it is read with
 * channels first. */
static void tell_layout(const struct rfx_cli_job *job, const char *spec, int64_t channels) {
    const struct rfx_image_facts facts =
        job->image != NULL ? rfx_image_facts(job->image) : (struct rfx_image_facts){0};
    const struct rfx_source_traits t =
        job->image != NULL ? rfx_image_traits(job->image) : (struct rfx_source_traits){0};
    bool last = facts.kind != NULL && strcmp(facts.kind, "npy") == 0 &&
                (channels > 0 ? t.w == channels && t.c != channels : t.w <= 4 && t.c > t.w);
    if (!last) return;
    rfx_cli_message(
        "'%s' was read as %lld channels of %lld rows and %lld columns; it looks like "
        "%lld rows and %lld columns of %lld channels: save "
        "numpy.ascontiguousarray(a.transpose(2, 0, 1))",
        spec, (long long)t.c, (long long)t.h, (long long)t.w, (long long)t.c, (long long)t.h,
        (long long)t.w);
}

/* Loads the job's model for an image size. The outputs of a head are joined if its boxes are asked
 * for. */
static int load_for(struct rfx_cli_job *job, const struct rfx_cli_run_options *options, int64_t h,
                    int64_t w) {
    struct rfx_cli_model_options model = options->model;
    struct rfx_detector detector;
    model.join_heads = rfx_cli_answers_join(options);
    int code = rfx_cli_answers_head(job->mem, options, &detector, &model);
    if (code != RFX_EXIT_DONE) return code;
    return rfx_cli_load(job->mem, options->words.args[0], &model, h, w, options->plan.memory_bytes,
                        &job->graph);
}

/* Opens a synthetic image of the model's input size, for commands without an input. */
static int open_synthetic(struct rfx_cli_job *job, const struct rfx_cli_run_options *options) {
    char spec[64];
    if (options->model.size.y > MOST_SIDE || options->model.size.x > MOST_SIDE) {
        rfx_cli_message("--size %lldx%lld: at most %d rows and columns",
                        (long long)options->model.size.y, (long long)options->model.size.x,
                        MOST_SIDE);
        return RFX_EXIT_USAGE;
    }
    int code = load_for(job, options, options->model.size.y, options->model.size.x);
    if (code != RFX_EXIT_DONE) return code;
    const struct rfx_tensor *input = &job->graph->nodes[job->graph->input].out;
    (void)snprintf(spec, sizeof spec, "synthetic:%lldx%lld", (long long)input->h,
                   (long long)input->w);
    return open_image(job, options, spec, input->c);
}

/* Returns whether a .npy array that was read as (channels, rows, columns) has its channels last, as
 * the model declares its image. */
static bool lies_as_declared(const struct rfx_cli_job *job, const char *model) {
    const struct rfx_image_facts facts = rfx_image_facts(job->image);
    const struct rfx_source_traits t = rfx_image_traits(job->image);
    if (facts.kind == NULL || strcmp(facts.kind, "npy") != 0 || rfx_builtin_exists(model))
        return false;
    /* The array was read as (channels, rows, columns). If the channels come last, then t.w is the
     * number of channels and t.c the number of rows. */
    if (t.w >= t.c) return false;
    int64_t channels = rfx_onnx_channels_last_of(job->mem, model);
    return channels > 0 && t.c != channels && t.w == channels;
}

static int open_given(struct rfx_cli_job *job, const struct rfx_cli_run_options *options,
                      const char *spec) {
    job->nodata = rfx_cli_image_options(options, 0).nodata;
    if (options->input.nodata.of_file) job->nodata.given = false; /* not known before it is open */
    int code = open_image(job, options, spec, 0);
    if (code == RFX_EXIT_DONE && lies_as_declared(job, options->words.args[0])) {
        job->channels_last = true;
        rfx_image_free(job->image);
        job->image = NULL;
        code = open_image(job, options, spec, 0);
    }
    if (code != RFX_EXIT_DONE) return code;
    struct rfx_source_traits traits = rfx_image_traits(job->image);
    code = load_for(job, options, traits.h, traits.w);
    if (code != RFX_EXIT_DONE) {
        tell_layout(job, spec, 0);
        return code;
    }
    const struct rfx_tensor *input = &job->graph->nodes[job->graph->input].out;
    bool counted =
        options->input.mean.n > 1 || options->input.std.n > 1; /* one number for each channel */
    bool again;
    code = settle_nodata(job, options, spec, &again);
    if (code != RFX_EXIT_DONE) return code;
    if (traits.c == input->c && !counted && !again) return RFX_EXIT_DONE;
    rfx_image_free(job->image);
    job->image = NULL;
    return open_image(job, options, spec, input->c);
}

/* Reads the plan file of --plan and copies its plan into the request. */
static int read_plan_file(struct rfx_cli_job *job, const struct rfx_cli_run_options *options) {
    struct rfx_error err = {{0}};
    if (options->plan.plan_file == NULL) return RFX_EXIT_DONE;
    enum rfx_status status =
        rfx_plan_file_read(job->graph, options->plan.plan_file, &job->plan_file, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    rfx_plan_file_apply(job->plan_file, &job->request);
    if (options->plan.threads.given) job->request.threads = (int)options->plan.threads.n;
    return RFX_EXIT_DONE;
}

/* A measured process size is rounded up to a multiple of this unit. Two processes of the same
 * command differ by at most one unit. */
#define PROCESS_UNIT_BYTES ((size_t)1 << 19)

/* The resident bytes of a usual process outside of counted memory (graph and image) before a run,
 * at most, and what it takes in a run: the planner's own allowance, or more where the model is read
 * from a file (measured: 3.9 to 4.7 MiB and 5.1, from a file 4.2 to 5.3 and 5.9). */
static const struct usual {
    size_t before, in_run;
} usual_builtin = {(size_t)21 << 18, (size_t)22 << 18},
  usual_file = {(size_t)22 << 18, (size_t)24 << 18};

static const struct usual *usual_of(const struct rfx_cli_run_options *options) {
    return rfx_builtin_exists(options->words.args[0]) ? &usual_builtin : &usual_file;
}

/* Returns the bytes that code, libraries and stacks of this process will take in a run. A process
 * that is larger than a usual one takes in addition what it has more, and a tenth of that for code
 * that becomes resident only in a run (measured: 1.1 MiB of 13 with a library for MPI). The sum
 * grows from that of a usual process without a step, so that the plan hardly depends on which pages
 * of a library were resident. */
static size_t measure_process(const struct rfx_cli_job *job,
                              const struct rfx_cli_run_options *options) {
    const struct usual *usual = usual_of(options);
    size_t counted = rfx_memory_taken_bytes(job->mem) + job->request.source.fixed_bytes;
    size_t least = counted + usual->before, now = rfx_resident_bytes();
    size_t more = now < least ? 0 : now - least, unit = PROCESS_UNIT_BYTES;
    return usual->in_run + (more + more / 10 + unit - 1) / unit * unit;
}

int rfx_cli_job_open(struct rfx_cli_job *job, const struct rfx_cli_run_options *options,
                     const char *spec) {
    *job = (struct rfx_cli_job){.mem = rfx_cli_memory_create()};
    if (job->mem == NULL) return RFX_EXIT_SYSTEM;
    int code = spec == NULL ? open_synthetic(job, options) : open_given(job, options, spec);
    if (code != RFX_EXIT_DONE) return code;
    job->request = (struct rfx_plan_request){
        .source = rfx_image_traits(job->image),
        .threads = (int)options->plan.threads.n,
        .memory_bytes = options->plan.memory_bytes,
        .split = options->plan.split,
        /* Classes are looked for in a stored vector. */
        .emit_outputs = !rfx_cli_has_classes(job->graph) || options->model.class_map ||
                        job->graph->late != NULL,
        .no_inplace = options->plan.no_inplace,
        .may_spill = options->plan.spill != NULL,
        .caches = rfx_machine_caches(),
        .no_groups = options->plan.no_groups,
    };
    job->request.process_bytes = measure_process(job, options);
    if (options->plan.untiled) job->request.asked = rfx_ask_whole();
    if (options->plan.tiles.y != 0)
        job->request.asked = rfx_ask_tiles(options->plan.tiles.y, options->plan.tiles.x);
    if (options->plan.bands != 0)
        job->request.asked = rfx_ask_bands(options->plan.bands, options->plan.strips);
    job->request.asked.row_by_row = options->plan.row_by_row;
    job->request.asked.weights_by_stage = options->plan.weights_by_stage;
    job->request.asked.staging = options->plan.tight;
    const struct rfx_tensor *input = &job->graph->nodes[job->graph->input].out;
    const struct rfx_source_traits *traits = &job->request.source;
    if (traits->h == input->h && traits->w == input->w && traits->c == input->c) {
        if (spec != NULL) tell_dropped(job, spec);
        code = spec == NULL ? RFX_EXIT_DONE : read_georeference(job, options, spec);
        if (code == RFX_EXIT_DONE && spec != NULL) tell_nodata(job, options, spec);
        return code == RFX_EXIT_DONE ? read_plan_file(job, options) : code;
    }
    rfx_cli_message(
        "model '%s' takes %lldx%lldx%lld (channels, rows, columns), '%s' is %lldx%lldx%lld",
        options->words.args[0], (long long)input->c, (long long)input->h, (long long)input->w,
        spec != NULL ? spec : "the picture", (long long)traits->c, (long long)traits->h,
        (long long)traits->w);
    if (traits->c != input->c && spec != NULL) tell_layout(job, spec, input->c);
    if (traits->c != input->c)
        rfx_cli_message("--channels takes bands of a TIFF or .npy file, as in --channels 1,2,3");
    return RFX_EXIT_REFUSED;
}

int rfx_cli_job_change(struct rfx_cli_job *job, const struct rfx_cli_run_options *options,
                       const char *spec) {
    rfx_image_free(job->image);
    job->image = NULL;
    bool again = false;
    int64_t channels = job->graph->nodes[job->graph->input].out.c;
    int code = open_image(job, options, spec, channels);
    if (code == RFX_EXIT_DONE) code = settle_nodata(job, options, spec, &again);
    if (code == RFX_EXIT_DONE && again) {
        rfx_image_free(job->image);
        job->image = NULL;
        code = open_image(job, options, spec, channels);
    }
    if (code != RFX_EXIT_DONE) return code;
    tell_dropped(job, spec);
    code = read_georeference(job, options, spec);
    if (code == RFX_EXIT_DONE) tell_nodata(job, options, spec);
    return code;
}

void rfx_cli_job_ask_cut(struct rfx_cli_job *job) {
    struct rfx_stage_spec flags = job->request.asked;
    job->request.asked = rfx_ask_cut();
    job->request.asked.row_by_row = flags.row_by_row;
    job->request.asked.weights_by_stage = flags.weights_by_stage;
    job->request.asked.staging = flags.staging;
}

/* Checks the plan with the plan checker: always with --plan, otherwise only with --check. */
static int check_plan(const struct rfx_cli_job *job, const struct rfx_cli_run_options *options) {
    char why[200];
    if (options->plan.plan_file == NULL && !options->plan.check) return RFX_EXIT_DONE;
    if (rfx_plan_check(job->plan, why, sizeof why)) return RFX_EXIT_DONE;
    if (strstr(why, RFX_PLAN_CHECK_NO_MEMORY) != NULL) {
        struct rfx_error err;
        return rfx_cli_fail(rfx_fail(&err, RFX_STATUS_OUT_OF_MEMORY, "checking the plan: %s", why),
                            &err);
    }
    rfx_cli_message("the plan is not sound: %s", why);
    return options->plan.plan_file != NULL ? RFX_EXIT_REFUSED
                                           : RFX_EXIT_SYSTEM; /* a bug of the planner */
}

/* Prints a message when the plan has fewer tiles than --tiles asked for, because the feature map
 * has fewer rows or columns than that. */
static void tell_fewer_tiles(const struct rfx_plan *plan,
                             const struct rfx_cli_run_options *options) {
    for (int i = 0; i < plan->n_stages; ++i) {
        const struct rfx_stage_spec *spec = &plan->stages[i].spec;
        if (spec->tiles_y * spec->tiles_x == 1) continue;
        if (spec->tiles_y == options->plan.tiles.y && spec->tiles_x == options->plan.tiles.x)
            return;
        rfx_cli_message(
            "%lldx%lld tiles instead of %lldx%lld: the map where the network is cut has "
            "no more positions",
            (long long)spec->tiles_y, (long long)spec->tiles_x, (long long)options->plan.tiles.y,
            (long long)options->plan.tiles.x);
        return;
    }
}

bool rfx_cli_plan_is_asked(const struct rfx_cli_run_options *o) {
    return o->plan.plan_file != NULL || o->plan.untiled || o->plan.bands != 0 ||
           o->plan.tiles.y != 0 || o->plan.split != NULL || o->plan.row_by_row ||
           o->plan.weights_by_stage || o->plan.no_inplace;
}

/* Sets *out to the plan with the smallest peak memory for a request; NULL when there is no plan. */
static enum rfx_status find_smallest(const struct rfx_cli_job *job,
                                     const struct rfx_plan_request *request, struct rfx_plan **out,
                                     struct rfx_error *err) {
    struct rfx_plan_request one_byte = *request;
    struct rfx_plan *plan = NULL;
    one_byte.memory_bytes = 1;
    enum rfx_status status = rfx_plan_create_or_smallest(job->graph, &one_byte, &plan, out, err);
    rfx_plan_free(plan);
    return status == RFX_STATUS_BUDGET_IMPOSSIBLE ? RFX_OK : status;
}

int rfx_cli_job_least(const struct rfx_cli_job *job, const struct rfx_cli_run_options *options,
                      struct rfx_cli_least *least) {
    struct rfx_plan_request asked = job->request, any = asked;
    struct rfx_plan *by_asked = NULL, *by_any = NULL;
    struct rfx_error err = {{0}};
    asked.threads = any.threads = 1;
    any.asked = (struct rfx_stage_spec){.tiles_y = 1, .tiles_x = 1};
    any.split = NULL;
    any.stages = NULL;
    any.groups = NULL;
    any.n_stages = any.n_groups = 0;
    any.no_inplace = false;
    enum rfx_status status = find_smallest(job, &any, &by_any, &err);
    bool by_hand = rfx_cli_plan_is_asked(options); /* otherwise both requests are the same */
    if (status == RFX_OK && by_hand) status = find_smallest(job, &asked, &by_asked, &err);
    if (status == RFX_OK && by_any != NULL) {
        bool smaller = by_asked == NULL || by_any->peak_bytes < by_asked->peak_bytes;
        bool other = by_hand && smaller;
        const struct rfx_plan *plan = smaller ? by_any : by_asked;
        *least =
            (struct rfx_cli_least){.bytes = plan->peak_bytes, .threads = 1, .other_plan = other};
        rfx_plan_describe(plan, least->text, sizeof least->text);
    }
    rfx_plan_free(by_asked);
    rfx_plan_free(by_any);
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

void rfx_cli_job_tell_budget(const struct rfx_cli_job *job,
                             const struct rfx_cli_run_options *options, enum rfx_status status) {
    struct rfx_cli_least least = {.bytes = 0};
    if (status != RFX_STATUS_OUT_OF_MEMORY || options->plan.memory_bytes != 0 || job->plan == NULL)
        return;
    if (rfx_cli_job_least(job, options, &least) == RFX_EXIT_DONE && least.bytes != 0)
        rfx_report_no_budget(job->plan, &least);
}

/* Every plan needs more bytes. A smaller --memory probably lacks its unit. */
#define LIKELY_BYTES ((size_t)1 << 16)

/* Prints the smallest budget with the given options and the smallest budget with any options. */
static void tell_smallest(struct rfx_cli_job *job, const struct rfx_cli_run_options *options,
                          const char *command, const struct rfx_plan *smallest) {
    struct rfx_cli_least least = {.bytes = smallest->peak_bytes, .threads = smallest->threads};
    bool any = smallest->threads > 1 || rfx_cli_plan_is_asked(options);
    if (any && rfx_cli_job_least(job, options, &least) != RFX_EXIT_DONE) return;
    if (options->plan.memory_bytes < LIKELY_BYTES)
        rfx_cli_message("--memory %zu means bytes; was a unit left out, as in --memory %zuMiB?",
                        options->plan.memory_bytes, options->plan.memory_bytes);
    rfx_report_smallest(command, options->words.shown[0], options->plan.memory_bytes, smallest,
                        &least, options->json);
}

static void forget(struct rfx_cli_job *job) {
    rfx_plan_cache_free(job->request.cache);
    job->request.cache = NULL;
}

/* Checks that planning itself took no more memory than the budget. Otherwise prints a message and
 * returns the exit code of BUDGET_IMPOSSIBLE. */
static int check_planning(const struct rfx_cli_job *job, const struct rfx_cli_run_options *options,
                          const char *command) {
    const size_t unit = (size_t)1 << 20;
    size_t peak = rfx_peak_rss_bytes(), budget = job->request.memory_bytes;
    if (budget == 0 || peak <= budget) return RFX_EXIT_DONE;
    struct rfx_cli_least least = {.bytes = (peak + unit + unit / 2) / unit * unit,
                                  .threads = job->plan->threads};
    struct rfx_error err;
    enum rfx_status status =
        rfx_fail(&err, RFX_STATUS_BUDGET_IMPOSSIBLE,
                 "planning %d nodes took %zu bytes, the budget is %zu: needs at least %zu",
                 job->graph->n_nodes, peak, budget, least.bytes);
    int code = rfx_cli_fail(status, &err);
    job->plan->bytes.reserve += least.bytes - job->plan->peak_bytes;
    job->plan->peak_bytes = least.bytes;
    rfx_report_smallest(command, options->words.shown[0], budget, job->plan, &least, options->json);
    return code;
}

/* Makes job->plan for a process of this size. If no plan fits, job->plan stays NULL and *smallest,
 * whose former plan is freed, is the smallest plan, if one was found. */
static enum rfx_status plan_with(struct rfx_cli_job *job, size_t process_bytes,
                                  struct rfx_plan **smallest, struct rfx_error *err) {
    rfx_plan_free(*smallest);
    *smallest = NULL;
    job->request.process_bytes = process_bytes;
    return rfx_plan_create_or_smallest(job->graph, &job->request, &job->plan, smallest, err);
}

/* Makes job->plan. A process that is larger than a usual one may measure one unit more or less than
 * another process of the same command. So when no plan fits:
 * 1. The user may have taken the budget from the plan of a process that was one unit smaller. If
 *    the smallest plan exceeds the budget by at most two units, a plan is made for a process of
 *    that size. MPI ranks (process_varies) are excluded: a rank may really be larger, and would
 *    exceed the budget.
 * 2. If no plan fits then either, the smallest plan is made for a process that is one unit larger.
 *    So the budget that is named is enough for every process of the command. */
static enum rfx_status plan_for_process(struct rfx_cli_job *job,
                                        const struct rfx_cli_run_options *options,
                                        struct rfx_plan **smallest, struct rfx_error *err) {
    size_t measured = job->request.process_bytes, unit = PROCESS_UNIT_BYTES;
    size_t budget = job->request.memory_bytes;
    enum rfx_status status = plan_with(job, measured, smallest, err);
    if (status != RFX_STATUS_BUDGET_IMPOSSIBLE || *smallest == NULL) return status;
    bool is_larger = measured > usual_of(options)->in_run;
    if (is_larger && !job->process_varies && (*smallest)->peak_bytes <= budget + 2 * unit)
        status = plan_with(job, measured - unit, smallest, err);
    if (status == RFX_STATUS_BUDGET_IMPOSSIBLE && is_larger)
        status = plan_with(job, measured + unit, smallest, err);
    return status;
}

int rfx_cli_job_plan(struct rfx_cli_job *job, const struct rfx_cli_run_options *options,
                     const char *command) {
    struct rfx_error err = {{0}};
    struct rfx_plan *smallest = NULL;
    enum rfx_status status = rfx_plan_cache_create(job->mem, &job->request.cache, &err);
    if (status == RFX_OK) status = plan_for_process(job, options, &smallest, &err);
    if (status == RFX_OK && options->plan.tiles.y != 0) tell_fewer_tiles(job->plan, options);
    if (status == RFX_OK && !job->plans_again) forget(job);
    if (status == RFX_OK) {
        int fits = check_planning(job, options, command);
        return fits == RFX_EXIT_DONE ? check_plan(job, options) : fits;
    }
    if (status == RFX_STATUS_INVALID_ARGUMENT && options->plan.plan_file != NULL)
        status = rfx_fail_within(&err, RFX_STATUS_MALFORMED, "%.100s", options->plan.plan_file);
    int code = rfx_cli_fail(status, &err);
    if (status == RFX_STATUS_BUDGET_IMPOSSIBLE && smallest != NULL)
        tell_smallest(job, options, command, smallest);
    rfx_plan_free(smallest);
    return code;
}

void rfx_cli_job_free(struct rfx_cli_job *job) {
    forget(job);
    rfx_plan_free(job->plan);
    rfx_plan_file_free(job->plan_file);
    rfx_graph_free(job->graph);
    rfx_georeference_release(&job->geo.geo);
    rfx_image_free(job->image);
    if (job->mem != NULL) rfx_memory_free(job->mem);
}
