/* Hashes of model and input, and the options that change bits. */
#include "tools/parts/files/part_identity.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
/* Inlined, as in the fingerprints of outputs. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "layers/conv/blas.h"
#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "rfexec/image/image_kind.h"
#include "rfexec/image/zarr/zarr_folder.h"
#include "rfexec/image/zarr/zarr_level.h"
#include "rfexec/rfexec.h"
#include "rfexec/session/model.h"
#include "tools/parts/files/part_file.h"

enum { CHUNK_BYTES = 65536, ENDS = 16, PLACES = 62 };
#define WHOLE_BYTES ((int64_t)256 << 20) /* files up to this size are hashed whole */

static void write_hex(const XXH3_state_t *state, char out[RFX_PART_HASH_CHARS]) {
    XXH128_hash_t hash = XXH3_128bits_digest(state);
    (void)snprintf(out, RFX_PART_HASH_CHARS, "%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64,
                   (uint64_t)hash.low64);
}

static enum rfx_status fail_reading(const char *path, int number, struct rfx_error *err) {
    return rfx_fail(err, RFX_STATUS_IO, "%.300s: %s", path, strerror(number));
}

/* Adds bytes [from, to) of a file, or what there is of them. */
static enum rfx_status add_bytes(XXH3_state_t *state, int fd, const char *path, int64_t from,
                                 int64_t to, unsigned char *chunk, struct rfx_error *err) {
    while (from < to) {
        size_t most = to - from < CHUNK_BYTES ? (size_t)(to - from) : CHUNK_BYTES;
        ssize_t got = pread(fd, chunk, most, (off_t)from);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_reading(path, errno, err);
        if (got == 0) return RFX_OK;
        (void)XXH3_128bits_update(state, chunk, (size_t)got);
        from += got;
    }
    return RFX_OK;
}

/* Of the places of a file: its beginning, its end, and blocks between; of a small one all. */
static enum rfx_status add_places(XXH3_state_t *state, int fd, const char *path, int64_t size,
                                  unsigned char *chunk, struct rfx_error *err) {
    int64_t end = (int64_t)ENDS * CHUNK_BYTES, between = (size - 2 * end) / PLACES;
    if (size <= WHOLE_BYTES) return add_bytes(state, fd, path, 0, size, chunk, err);
    enum rfx_status status = add_bytes(state, fd, path, 0, end, chunk, err);
    for (int64_t i = 0; status == RFX_OK && i < PLACES; i++) {
        int64_t from = end + i * between;
        status = add_bytes(state, fd, path, from, from + CHUNK_BYTES, chunk, err);
    }
    return status == RFX_OK ? add_bytes(state, fd, path, size - end, size, chunk, err) : status;
}

static enum rfx_status add_file(XXH3_state_t *state, const char *path, bool all,
                                unsigned char *chunk, struct rfx_error *err) {
    struct stat at;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fail_reading(path, errno, err);
    enum rfx_status status = RFX_OK;
    if (fstat(fd, &at) != 0) status = fail_reading(path, errno, err);
    uint64_t size = status == RFX_OK ? (uint64_t)at.st_size : 0;
    (void)XXH3_128bits_update(state, &size, sizeof size);
    if (status == RFX_OK && all)
        status = add_bytes(state, fd, path, 0, (int64_t)size, chunk, err);
    else if (status == RFX_OK)
        status = add_places(state, fd, path, (int64_t)size, chunk, err);
    (void)close(fd);
    return status;
}

static enum rfx_status add_weights(XXH3_state_t *state, const struct rfx_graph *graph,
                                   unsigned char *chunk, struct rfx_error *err) {
    float *values = (float *)(void *)chunk;
    const int64_t most = CHUNK_BYTES / (int64_t)sizeof *values;
    for (int w = 0; w < graph->n_weights; w++) {
        const struct rfx_weight *weight = &graph->weights[w];
        for (int64_t i = 0; i < weight->elems; i += most) {
            int64_t n = weight->elems - i < most ? weight->elems - i : most;
            enum rfx_status status = rfx_weight_read(weight, i, n, values, err);
            if (status == RFX_OK) status = rfx_memory_check_stop(graph->mem, err);
            if (status != RFX_OK) return status;
            (void)XXH3_128bits_update(state, values, (size_t)n * sizeof *values);
        }
    }
    return RFX_OK;
}

enum rfx_status rfx_part_hash_model(struct rfx_memory *mem, const struct rfx_graph *graph,
                                    const char *model, char out[RFX_PART_HASH_CHARS],
                                    struct rfx_error *err) {
    unsigned char *chunk = rfx_memory_alloc(mem, CHUNK_BYTES);
    if (chunk == NULL) return rfx_memory_fail(mem, "hashing", CHUNK_BYTES, err);
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    (void)XXH3_128bits_reset(&state);
    enum rfx_status status = RFX_OK;
    if (rfx_builtin_exists(model))
        (void)XXH3_128bits_update(&state, model, strlen(model));
    else
        status = add_file(&state, model, true, chunk, err);
    if (status == RFX_OK) status = add_weights(&state, graph, chunk, err);
    if (status == RFX_OK) write_hex(&state, out);
    rfx_memory_release(mem, chunk);
    return status;
}

/* A chunk of a Zarr folder, by its number; one that is not there has no bytes. */
static enum rfx_status add_zarr_chunk(XXH3_state_t *state, const struct rfx_zarr_level *level,
                                      int64_t number, const int64_t across[3], unsigned char *chunk,
                                      struct rfx_error *err) {
    char key[RFX_ZARR_KEY_CHARS];
    int fd;
    int64_t size = -1;
    rfx_zarr_layout_key(&level->layout, number / across[2] / across[1],
                        number / across[2] % across[1], number % across[2], key);
    enum rfx_status status = rfx_zarr_file_open(level->folder, key, &fd, &size, err);
    (void)XXH3_128bits_update(state, key, strlen(key));
    (void)XXH3_128bits_update(state, &size, sizeof size);
    if (status != RFX_OK || fd < 0) return status;
    status = add_places(state, fd, key, size, chunk, err);
    (void)close(fd);
    return status;
}

/* What the samples are, and the chunks at places of a Zarr folder: of a small one all. */
static enum rfx_status add_zarr(struct rfx_memory *mem, XXH3_state_t *state, const char *path,
                                int64_t number, unsigned char *chunk, struct rfx_error *err) {
    struct rfx_zarr_level level;
    char text[128];
    enum rfx_status status = rfx_zarr_level_open(mem, path, number, &level, err);
    if (status != RFX_OK) return status;
    const struct rfx_zarr_layout *l = &level.layout;
    const struct rfx_zarr_axes axes = l->axes;
    int n = snprintf(text, sizeof text, "%s %d %d %d %d", l->type->name, l->big, axes.y, axes.x,
                     axes.c);
    (void)XXH3_128bits_update(state, text, (size_t)n);
    (void)XXH3_128bits_update(state, l->fill, sizeof l->fill);
    const int64_t across[3] = {axes.c < 0 ? 1 : rfx_ceil_div(l->c, l->chunk[axes.c]),
                               rfx_ceil_div(l->h, l->chunk[axes.y]),
                               rfx_ceil_div(l->w, l->chunk[axes.x])};
    int64_t all = across[0] * across[1] * across[2], places = all < PLACES ? all : PLACES;
    for (int64_t i = 0; i < places && status == RFX_OK; i++)
        status = add_zarr_chunk(state, &level, i * (all / places) + i * (all % places) / places,
                                across, chunk, err);
    (void)close(level.folder);
    return status == RFX_OK ? status : rfx_fail_within(err, status, "%.300s", path);
}

static enum rfx_status hash_input(const struct rfx_cli_job *job,
                                  const struct rfx_cli_options *options, XXH3_state_t *state,
                                  unsigned char *chunk, struct rfx_error *err) {
    const char *input = options->args[1];
    if (rfx_is_zarr(input))
        return add_zarr(job->mem, state, input,
                        options->level >= 0 ? options->level : rfx_cli_page(options), chunk, err);
    if (strncmp(input, "synthetic:", 10) == 0) {
        (void)XXH3_128bits_update(state, input, strlen(input));
        return RFX_OK;
    }
    char room[4096];
    enum rfx_status status = RFX_OK;
    const char *file = input;
    for (int k = 0; status == RFX_OK && file != NULL; k++) {
        file = rfx_image_file_of(input, k, room, sizeof room);
        if (file != NULL) status = add_file(state, file, options->whole_input_hash, chunk, err);
    }
    return status;
}

/* What the bits of convolutions hang on beside their choice. */
static enum rfx_status describe_processor(const struct rfx_graph *graph, char text[256],
                                          struct rfx_error *err) {
    (void)snprintf(text, 256, "any");
    if (rfx_conv_choice_of(graph) != RFX_CONV_OPENBLAS) return RFX_OK;
    enum rfx_status status = rfx_blas_load(err);
    if (status == RFX_OK) rfx_blas_describe(text, 256);
    return status;
}

/* What of a picture is read. */
static json_t *picture_json(const struct rfx_cli_options *o, bool slide) {
    json_t *bands = json_array();
    for (int i = 0; i < o->channels.n; i++)
        (void)json_array_append_new(bands, json_integer(o->channels.numbers[i]));
    json_t *object = json_pack("{s:I, s:b, s:o}", "page", (json_int_t)rfx_cli_page(o), "as stored",
                               o->no_orient, "bands", bands);
    if (!rfx_rect_is_empty(o->region))
        (void)json_object_set_new(
            object, "region",
            json_pack("[I,I,I,I]", (json_int_t)o->region.y0, (json_int_t)o->region.x0,
                      (json_int_t)o->region.y1, (json_int_t)o->region.x1));
    if (o->nodata.given)
        (void)json_object_set_new(
            object, "nodata",
            json_pack("[b,f,f]", o->nodata.of_file, isnan(o->nodata.value) ? 0.0 : o->nodata.value,
                      (double)o->nodata.fill));
    if (o->nodata.given)
        (void)json_object_set_new(object, "nodata is nan", json_boolean(isnan(o->nodata.value)));
    /* of the same file another decoder may make other bits */
    if (slide)
        (void)json_object_set_new(object, "level",
                                  json_integer(o->level >= 0 ? o->level : rfx_cli_page(o)));
    return object;
}

/* What was given of mean or std, else the usual. */
static json_t *numbers_json(const struct rfx_cli_numbers *given, const float usual[3], bool raw) {
    if (given->n == 0 && raw) return json_null();
    json_t *numbers = json_array();
    for (int i = 0; i < (given->n > 0 ? given->n : 3); i++)
        (void)json_array_append_new(numbers,
                                    json_real((double)(given->n > 0 ? given->values : usual)[i]));
    return numbers;
}

static json_t *options_json(const struct rfx_cli_options *o, bool slide) {
    static const char *const modes[] = {
        [RFX_PAD_CONSTANT] = "zero", [RFX_PAD_REFLECT] = "reflect", [RFX_PAD_EDGE] = "edge"};
    char fit[64] = "1";
    if (o->fit.multiple > 1)
        (void)snprintf(fit, sizeof fit, "%" PRId64 ",%s", o->fit.multiple, modes[o->fit.mode]);
    const char *fuse = o->no_fuse ? "nothing" : o->no_fuse_add ? "all but additions" : "all";
    json_t *mean = numbers_json(&o->mean, rfx_imagenet_mean, o->scale.raw);
    json_t *std = numbers_json(&o->std, rfx_imagenet_std, o->scale.raw);
    return json_pack("{s:I, s:f, s:b, s:o, s:o, s:b, s:o, s:s, s:s}", "seed", (json_int_t)o->seed,
                     "scale", (double)o->scale.factor, "raw", o->scale.raw, "mean", mean, "std",
                     std, "bgr", o->bgr, "picture", picture_json(o, slide), "pad to", fit, "fused",
                     fuse);
}

bool rfx_part_hashes_all(const struct rfx_cli_options *options) {
    const char *input = options->args[1], *file = input;
    char room[4096];
    if (rfx_is_zarr(input)) return false;
    if (options->whole_input_hash || strncmp(input, "synthetic:", 10) == 0) return true;
    for (int k = 0; file != NULL; k++) {
        struct stat at;
        file = rfx_image_file_of(input, k, room, sizeof room);
        if (file != NULL && (stat(file, &at) != 0 || at.st_size > WHOLE_BYTES)) return false;
    }
    return true;
}

enum rfx_status rfx_part_identity(const struct rfx_cli_job *job,
                                  const struct rfx_cli_options *options, json_t **out,
                                  struct rfx_error *err) {
    char model[RFX_PART_HASH_CHARS], input[RFX_PART_HASH_CHARS], processor[256];
    const struct rfx_tensor *image = &job->graph->nodes[job->graph->input].out;
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    (void)XXH3_128bits_reset(&state);
    enum rfx_status status =
        rfx_part_hash_model(job->mem, job->graph, options->args[0], model, err);
    unsigned char *chunk = status == RFX_OK ? rfx_memory_alloc(job->mem, CHUNK_BYTES) : NULL;
    if (status == RFX_OK && chunk == NULL)
        status = rfx_memory_fail(job->mem, "hashing", CHUNK_BYTES, err);
    if (status == RFX_OK) status = hash_input(job, options, &state, chunk, err);
    if (status == RFX_OK) write_hex(&state, input);
    rfx_memory_release(job->mem, chunk);
    if (status == RFX_OK) status = describe_processor(job->graph, processor, err);
    if (status != RFX_OK) return status;
    const char *kind = rfx_image_facts(job->image).kind;
    bool slide = kind != NULL && (strcmp(kind, "slide") == 0 || strcmp(kind, "Zarr") == 0);
    *out = json_pack("{s:s, s:s, s:s, s:s, s:s, s:[I,I,I], s:o}", "rfexec", rfx_version(), "model",
                     model, "input", input, "conv",
                     rfx_conv_choice_name(rfx_conv_choice_of(job->graph)), "processor", processor,
                     "image", (json_int_t)image->c, (json_int_t)image->h, (json_int_t)image->w,
                     "options", options_json(options, slide));
    return *out != NULL ? RFX_OK : rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "out of memory");
}
