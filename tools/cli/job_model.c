/* Finding and loading models; see job.h. */
#include "tools/cli/job.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "layers/core/checked.h"
#include "layers/graph/near_names.h"

enum { LEAST_BEGUN = 3, NEAR_TEXT = 200 };

/* Writes the built-ins that a word of some letters begins, or else the one that it is closest to:
 * "'a' or 'b'". An empty text: none. */
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

/* What kind of picture a file is by its first bytes; NULL: none. */
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

bool rfx_cli_tell_exchanged(const char *model, const char *input) {
    bool takes_model = is_model_name(input);
    if (!takes_model && !is_input_name(model)) return false;
    rfx_cli_message("'%s' is a %s: the model comes first, then the picture (given: '%s' '%s')",
                    takes_model ? input : model,
                    takes_model ? "model, not a picture" : "picture, not a model", model, input);
    return true;
}

/* Whether the model loads at sizes of so many times the multiple from the image's on. */
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

/* Says which multiple of rows and columns would do, where an image of this size does not. A
 * multiple is the reason only where the model loads at several of them, one after the other. */
static void tell_multiple(struct rfx_memory *mem, const char *model,
                          const struct rfx_load_options *load) {
    static const int64_t multiples[] = {2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256};
    enum { N = sizeof multiples / sizeof multiples[0], SURE = 3 * 256, TIMES = 4 };
    if (load->fit.multiple > 1 || load->h < 1 || load->w < 1) return;
    if (!loads_at_multiples(mem, model, load, SURE, 1)) return; /* a multiple of all of them */
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
        rfx_cli_message("model '%s' is fixed to a batch of %lld; images are run one by one", model,
                        (long long)(*out)->batch);
    return RFX_EXIT_DONE;
}

const struct rfx_fuse_options *rfx_cli_fuse(const struct rfx_cli_model_options *options) {
    static const struct rfx_fuse_options nothing = {0};
    static const struct rfx_fuse_options no_add = {true, true, false, true, true};
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
                                    .fuse = rfx_cli_fuse(options),
                                    .keep = options->kept.tensors,
                                    .n_keep = options->kept.n,
                                    .memory_bytes = memory_bytes};
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
                                    .fuse = fuse};
    return load_model(mem, model, &load, out);
}
