/* Hashes of model and input, and the options that change bits; see shard_identity.h. */
#include "rfexec/shards/shard_identity.h"

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
#include "rfexec/onnx/file/onnx_file.h"
#include "rfexec/rfexec.h"
#include "rfexec/shards/shard_head.h"
#include "rfexec/shards/shard_json.h"

/* ENDS: chunks hashed at each end of a large file; PLACES: chunks hashed between. */
enum { CHUNK_BYTES = 65536, ENDS = 16, PLACES = 62 };
#define WHOLE_BYTES ((int64_t)256 << 20) /* files up to this size are hashed whole */

static void write_hex(const XXH3_state_t *state, char out[RFX_FINGERPRINT_CHARS]) {
    XXH128_hash_t hash = XXH3_128bits_digest(state);
    rfx_shard_json_hash(hash.high64, hash.low64, out);
}

static enum rfx_status fail_reading(const char *path, int number, struct rfx_error *err) {
    return rfx_fail(err, RFX_STATUS_IO, "%.300s: %s", path, strerror(number));
}

/* Adds bytes [from, to) of a file to the hash, up to the end of the file. */
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

/* Adds the first and last mebibyte of a file and 64 KiB at 62 places between. Of a file of up to
 * WHOLE_BYTES it adds all bytes. */
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

/* Adds the size of a file, then all its bytes or, without `all`, those of add_places. */
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

/* Adds the values of all weights of the graph, and the tables of integer convolutions: their
 * biases, zero points and factors. */
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
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_int_conv_attr *q = &graph->nodes[i].attr.int_conv;
        if (graph->nodes[i].op == RFX_OP_INT_CONV)
            (void)XXH3_128bits_update(state, q->channels,
                                      (size_t)q->conv.oc * 3 * sizeof *q->channels);
    }
    return RFX_OK;
}

enum rfx_status rfx_shard_hash_model(struct rfx_memory *mem, const struct rfx_graph *graph,
                                     const char *model, char out[RFX_FINGERPRINT_CHARS],
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

/* Adds the name, size and bytes of chunk `number` of a Zarr level, as add_places. Of a chunk
 * without a file it adds the name and size -1. across: chunks along channels, rows and columns. */
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

/* Adds the element type, the axes, the fill value and PLACES evenly spaced chunks of a Zarr level;
 * all chunks if there are no more than PLACES. `number`: the level. */
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

/* Adds the input to the hash: a Zarr level, the name of a synthetic image, or all files of an
 * image. */
static enum rfx_status hash_input(const struct rfx_shard_run *run, XXH3_state_t *state,
                                  unsigned char *chunk, struct rfx_error *err) {
    const char *input = run->input, *file = input;
    char room[4096];
    if (rfx_is_zarr(input))
        return add_zarr(run->graph->mem, state, input, run->read->page, chunk, err);
    if (strncmp(input, "synthetic:", 10) == 0) {
        (void)XXH3_128bits_update(state, input, strlen(input));
        return RFX_OK;
    }
    enum rfx_status status = RFX_OK;
    for (int k = 0; status == RFX_OK && file != NULL; k++) {
        file = rfx_image_file_of(input, k, room, sizeof room);
        if (file != NULL) status = add_file(state, file, run->whole_input, chunk, err);
    }
    return status;
}

/* Writes the value of "processor": OpenBLAS's kernels if OpenBLAS computes convolutions, else
 * "any". */
static enum rfx_status describe_processor(const struct rfx_graph *graph, char text[256],
                                          struct rfx_error *err) {
    (void)snprintf(text, 256, "any");
    if (rfx_conv_choice_of(graph) != RFX_CONV_OPENBLAS) return RFX_OK;
    enum rfx_status status = rfx_blas_load(err);
    if (status == RFX_OK) rfx_blas_describe(text, 256);
    return status;
}

/* The member "int8": the arithmetic of 8-bit networks, and whether outputs of bytes are
 * dequantised. NULL: the default, which is not written. */
static const char *const int8_texts[2][RFX_INT8_COUNT] = {
    {[RFX_INT8_ORT] = NULL, [RFX_INT8_SPEC] = "spec"},
    {[RFX_INT8_ORT] = "ort to floats", [RFX_INT8_SPEC] = "spec to floats"}};

static const char *int8_text(const struct rfx_graph *graph) {
    return int8_texts[graph->dequantized][graph->int8];
}

/* Reads the member "int8" (NULL: the default). Returns false when it is not valid. */
static bool read_int8(const char *text, struct rfx_load_options *load) {
    for (int floats = 0; floats < 2; floats++)
        for (int c = 0; c < RFX_INT8_COUNT; c++) {
            const char *known = int8_texts[floats][c];
            bool same = text != NULL && known != NULL && strcmp(text, known) == 0;
            if (!same && text != known) continue;
            load->dequantize = floats != 0;
            load->int8 = (enum rfx_int8_choice)c;
            return true;
        }
    return false;
}

/* Returns the option "picture": the page or level, bands, region and no-data value of the image
 * file that are read. In slides and Zarr folders, `page` is a level. */
static json_t *picture_json(const struct rfx_shard_run *run) {
    const struct rfx_image_options *o = run->read;
    const char *kind = rfx_image_facts(run->image).kind;
    bool slide = kind != NULL && (strcmp(kind, "slide") == 0 || strcmp(kind, "Zarr") == 0);
    json_t *bands = json_array();
    for (int i = 0; o->bands != NULL && i < o->bands->n; i++)
        (void)json_array_append_new(bands, json_integer(o->bands->numbers[i]));
    json_t *object = json_pack("{s:I, s:b, s:o}", "page", (json_int_t)(o->slide ? 0 : o->page),
                               "as stored", (int)o->as_stored, "bands", bands);
    if (!rfx_rect_is_empty(o->region))
        (void)json_object_set_new(
            object, "region",
            json_pack("[I,I,I,I]", (json_int_t)o->region.y0, (json_int_t)o->region.x0,
                      (json_int_t)o->region.y1, (json_int_t)o->region.x1));
    if (o->nodata.given) {
        bool nan = isnan(o->nodata.value);
        (void)json_object_set_new(object, "nodata",
                                  json_pack("[b,f,f]", (int)run->nodata_of_file,
                                            nan ? 0.0 : o->nodata.value, (double)o->nodata.fill));
        (void)json_object_set_new(object, "nodata is nan", json_boolean(nan));
    }
    /* "level" tells that a slide library or the Zarr reader decodes: its bits may differ from
     * another decoder's */
    if (slide) (void)json_object_set_new(object, "level", json_integer(o->page));
    return object;
}

/* Returns the given numbers of mean or std, or `usual` (ImageNet's) when n is 0. Returns null when
 * n is 0 and samples are not normalised (raw). */
static json_t *numbers_json(const float *given, int n, const float usual[3], bool raw) {
    if (n == 0 && raw) return json_null();
    json_t *numbers = json_array();
    for (int i = 0; i < (n > 0 ? n : 3); i++)
        (void)json_array_append_new(numbers, json_real((double)(n > 0 ? given : usual)[i]));
    return numbers;
}

static const struct {
    const char *name;
    enum rfx_pad_mode mode;
} pad_modes[] = {{"zero", RFX_PAD_CONSTANT}, {"reflect", RFX_PAD_REFLECT}, {"edge", RFX_PAD_EDGE}};
enum { N_PAD_MODES = sizeof pad_modes / sizeof pad_modes[0] };

/* Returns the option "pad to", such as "32,reflect"; "1" when images are not padded. */
static json_t *fit_json(const struct rfx_fit_size *fit) {
    for (int i = 0; fit->multiple > 1 && i < N_PAD_MODES; i++)
        if (pad_modes[i].mode == fit->mode)
            return json_sprintf("%" PRId64 ",%s", fit->multiple, pad_modes[i].name);
    return json_string("1");
}

/* Reads the option "pad to". Returns false when it is not valid. */
static bool read_fit(const char *text, struct rfx_fit_size *fit) {
    char mode[16];
    int end = 0;
    *fit = (struct rfx_fit_size){.multiple = 1};
    if (text == NULL) return false;
    if (strcmp(text, "1") == 0) return true;
    if (sscanf(text, "%5" SCNd64 ",%15[a-z]%n", &fit->multiple, mode, &end) != 2 ||
        text[end] != '\0' || fit->multiple < 1 || fit->multiple > RFX_FIT_MOST)
        return false;
    for (int i = 0; i < N_PAD_MODES; i++) {
        if (strcmp(mode, pad_modes[i].name) != 0) continue;
        fit->mode = pad_modes[i].mode;
        return true;
    }
    return false;
}

/* The choices of fusing that an identity can name. The first is the choice of fuse NULL. */
static const struct {
    const char *name;
    struct rfx_fuse_options fuse;
} fused[] = {{"all", {true, true, true, true, true}},
             {"nothing", {0}},
             {"all but additions", {true, true, false, true, true}}};
enum { N_FUSED = sizeof fused / sizeof fused[0] };

/* Returns the name of a choice of fusing; NULL when it has none. */
static const char *fuse_name(const struct rfx_fuse_options *fuse) {
    for (int i = 0; fuse != NULL && i < N_FUSED; i++)
        if (memcmp(fuse, &fused[i].fuse, sizeof *fuse) == 0) return fused[i].name;
    return fuse == NULL ? fused[0].name : NULL;
}

/* Returns the member "options". */
static json_t *options_json(const struct rfx_shard_run *run) {
    const struct rfx_image_options *o = run->read;
    json_t *mean = numbers_json(o->mean, o->n_mean, rfx_imagenet_mean, o->raw);
    json_t *std = numbers_json(o->std, o->n_std, rfx_imagenet_std, o->raw);
    return json_pack("{s:I, s:f, s:b, s:o, s:o, s:b, s:o, s:o, s:s}", "seed", (json_int_t)run->seed,
                     "scale", (double)o->scale, "raw", (int)o->raw, "mean", mean, "std", std, "bgr",
                     (int)o->bgr, "picture", picture_json(run), "pad to", fit_json(&run->fit),
                     "fused", fuse_name(run->fuse));
}

bool rfx_shard_hashes_all(const char *input, bool whole_input) {
    const char *file = input;
    char room[4096];
    if (rfx_is_zarr(input)) return false;
    if (whole_input || strncmp(input, "synthetic:", 10) == 0) return true;
    for (int k = 0; file != NULL; k++) {
        struct stat at;
        file = rfx_image_file_of(input, k, room, sizeof room);
        if (file != NULL && (stat(file, &at) != 0 || at.st_size > WHOLE_BYTES)) return false;
    }
    return true;
}

enum rfx_status rfx_shard_identity(const struct rfx_shard_run *run, json_t **out,
                                   struct rfx_error *err) {
    char model[RFX_FINGERPRINT_CHARS], input[RFX_FINGERPRINT_CHARS], processor[256];
    const struct rfx_graph *graph = run->graph;
    const struct rfx_tensor *image = &graph->nodes[graph->input].out;
    XXH3_state_t state;
    if (fuse_name(run->fuse) == NULL)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "shards need a network that is fused completely, not at all, or all but "
                        "additions");
    XXH3_INITSTATE(&state);
    (void)XXH3_128bits_reset(&state);
    enum rfx_status status = rfx_shard_hash_model(graph->mem, graph, run->model, model, err);
    unsigned char *chunk = status == RFX_OK ? rfx_memory_alloc(graph->mem, CHUNK_BYTES) : NULL;
    if (status == RFX_OK && chunk == NULL)
        status = rfx_memory_fail(graph->mem, "hashing", CHUNK_BYTES, err);
    if (status == RFX_OK) status = hash_input(run, &state, chunk, err);
    if (status == RFX_OK) write_hex(&state, input);
    rfx_memory_release(graph->mem, chunk);
    if (status == RFX_OK) status = describe_processor(graph, processor, err);
    if (status != RFX_OK) return status;
    *out = json_pack("{s:s, s:o*, s:s, s:s, s:s, s:s*, s:s, s:[I,I,I], s:o}", "rfexec",
                     rfx_version(), "head", rfx_shard_head_json(graph), "model", model, "input",
                     input, "conv", rfx_conv_choice_name(rfx_conv_choice_of(graph)), "int8",
                     int8_text(graph), "processor", processor, "image", (json_int_t)image->c,
                     (json_int_t)image->h, (json_int_t)image->w, "options", options_json(run));
    return *out != NULL ? RFX_OK : rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "out of memory");
}

/* Adds the bytes of the open model file that the graph was loaded from. */
static enum rfx_status add_model_file(XXH3_state_t *state, const struct rfx_graph *graph,
                                      unsigned char *chunk, struct rfx_error *err) {
    const struct rfx_onnx_bytes model = rfx_onnx_files_model(graph->files);
    for (size_t done = 0; done < model.size; done += CHUNK_BYTES) {
        size_t n = model.size - done < CHUNK_BYTES ? model.size - done : CHUNK_BYTES;
        enum rfx_status status =
            rfx_weight_file_read(model.file, model.offset + done, chunk, n, err);
        if (status != RFX_OK) return status;
        (void)XXH3_128bits_update(state, chunk, n);
    }
    return RFX_OK;
}

/* Writes the hash of the network: over the open model file, or the name of a built-in network, and
 * over all weights. */
static enum rfx_status hash_network(const struct rfx_graph *graph, char out[RFX_FINGERPRINT_CHARS],
                                    struct rfx_error *err) {
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    (void)XXH3_128bits_reset(&state);
    unsigned char *chunk = rfx_memory_alloc(graph->mem, CHUNK_BYTES);
    if (chunk == NULL) return rfx_memory_fail(graph->mem, "hashing", CHUNK_BYTES, err);
    enum rfx_status status = RFX_OK;
    if (graph->files_free == rfx_onnx_files_free)
        status = add_model_file(&state, graph, chunk, err);
    else
        (void)XXH3_128bits_update(&state, graph->name, strlen(graph->name));
    if (status == RFX_OK) status = add_weights(&state, graph, chunk, err);
    if (status == RFX_OK) write_hex(&state, out);
    rfx_memory_release(graph->mem, chunk);
    return status;
}

enum rfx_status rfx_shard_network_identity(const struct rfx_graph *graph,
                                           const struct rfx_fit_size *fit,
                                           char hash[RFX_FINGERPRINT_CHARS], json_t **out,
                                           struct rfx_error *err) {
    char processor[256];
    const struct rfx_tensor *image = &graph->nodes[graph->input].out;
    enum rfx_status status = hash[0] == '\0' ? hash_network(graph, hash, err) : RFX_OK;
    if (status == RFX_OK) status = describe_processor(graph, processor, err);
    if (status != RFX_OK) return status;
    *out = json_pack("{s:s, s:o*, s:s, s:s, s:s*, s:s, s:[I,I,I], s:o}", "rfexec", rfx_version(),
                     "head", rfx_shard_head_json(graph), "network", hash, "conv",
                     rfx_conv_choice_name(rfx_conv_choice_of(graph)), "int8", int8_text(graph),
                     "processor", processor, "image", (json_int_t)image->c, (json_int_t)image->h,
                     (json_int_t)image->w, "pad to", fit_json(fit));
    return *out != NULL ? RFX_OK : rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "out of memory");
}

bool rfx_shard_identity_load_options(const json_t *run, struct rfx_load_options *load) {
    const int64_t most = (int64_t)1 << 31; /* rows or columns of an image */
    const json_t *options = json_object_get(run, "options"), *size = json_object_get(run, "image");
    const char *name = json_string_value(json_object_get(options, "fused"));
    const char *conv = json_string_value(json_object_get(run, "conv"));
    const char *int8 = json_string_value(json_object_get(run, "int8"));
    load->h = json_integer_value(json_array_get(size, 1));
    load->w = json_integer_value(json_array_get(size, 2));
    load->seed = (uint64_t)json_integer_value(json_object_get(options, "seed"));
    if (load->h < 1 || load->w < 1 || load->h > most || load->w > most || name == NULL ||
        conv == NULL || !rfx_conv_choice_find(conv, &load->conv) || !read_int8(int8, load) ||
        !read_fit(json_string_value(json_object_get(options, "pad to")), &load->fit))
        return false;
    for (int i = 1; i < N_FUSED; i++)
        if (strcmp(name, fused[i].name) == 0) load->fuse = &fused[i].fuse;
    return true;
}
