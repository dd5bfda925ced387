/* Checks of what formats can hold; see output_format.h. */
#include "rfexec/output/output_format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <rfx_build.h>

#include "layers/core/checked.h"

/* All kinds; NULL: not in this build. */
#define RFX_OUTPUT_ROW(kind, option) RFX_WHEN(option, &rfx_output_##kind),
static const struct rfx_output_kind *const kinds[] = {RFX_OUTPUT_KINDS(RFX_OUTPUT_ROW)};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };
#define RFX_OUTPUT_NAMES(kind, option) {#kind, #option},
static const char *const names[][2] = {RFX_OUTPUT_KINDS(RFX_OUTPUT_NAMES)};

/* Returns the kind with the longest ending that the name has; *end is where the ending begins. */
static const struct rfx_output_kind *find_kind(const char *path, const char **end) {
    const struct rfx_output_kind *found = NULL;
    size_t length = strlen(path), most = 0;
    *end = NULL;
    for (int i = 0; i < 2 * N_KINDS; i++) {
        const char *own = kinds[i / 2] != NULL ? kinds[i / 2]->ends[i % 2] : NULL;
        size_t n = own != NULL ? strlen(own) : 0;
        if (n <= most || length <= n || strcasecmp(path + length - n, own) != 0) continue;
        found = kinds[i / 2];
        most = n;
        *end = path + length - n;
    }
    return found;
}

const struct rfx_output_kind *rfx_output_kind_of(const char *path) {
    const char *end;
    return strcmp(path, "-") == 0 ? &rfx_output_npy : find_kind(path, &end);
}

const char *rfx_output_option_of(const char *path) {
    const char *end = strrchr(path, '.');
    for (int i = 0; i < N_KINDS && end != NULL; i++)
        if (kinds[i] == NULL && strncasecmp(end + 1, names[i][0], 3) == 0) return names[i][1];
    return NULL;
}

const char *rfx_output_end(const char *path) {
    const char *end;
    return find_kind(path, &end) != NULL ? end : strrchr(path, '.');
}

const char *rfx_output_ends(char text[RFX_OUTPUT_ENDS]) {
    int n = 0;
    for (int i = 0; i < N_KINDS; i++) {
        if (kinds[i] == NULL) continue;
        n += snprintf(text + n, (size_t)(RFX_OUTPUT_ENDS - n), "%s%s",
                      i == 0             ? ""
                      : i == N_KINDS - 1 ? " or "
                                         : ", ",
                      kinds[i]->ends[0]);
    }
    return text;
}

static bool has(const struct rfx_output_kind *kind, enum rfx_type type) {
    return (kind->samples >> type & 1U) != 0;
}

void rfx_output_format_settle(struct rfx_output_format *format) {
    enum { USUAL_TILE = 256 };
    bool tiles = format->packing != RFX_TIFF_PLAIN || format->overviews != RFX_OVERVIEW_NONE;
    bool has_tiles = (format->kind->takes & RFX_OUTPUT_TAKES_TILES) != 0;
    if (format->tile == 0 && tiles && has_tiles) format->tile = USUAL_TILE;
}

static struct rfx_answer_cells cells_of(const struct rfx_graph *graph, int k) {
    struct rfx_answer_cells cells = {.image_h = rfx_graph_image_extent(graph, 0),
                                     .image_w = rfx_graph_image_extent(graph, 1)};
    bool differ = false;
    for (int i = 0; i < graph->n_ends; i++) {
        const struct rfx_end *end = &graph->ends[i];
        if (end->output != k) continue;
        bool first = cells.channels == 0, last = end->at.channel_step == 1;
        differ = differ || (!first && cells.channel_step != end->at.channel_step) ||
                 (!first && !last && cells.channels != end->channels);
        cells.channels = rfx_gcd_i64(cells.channels, end->channels);
        cells.channel_step = end->at.channel_step;
    }
    if (differ) cells.channels = 0;
    return cells;
}

void rfx_output_declare(struct rfx_output_format *format, const struct rfx_graph *graph, int k) {
    format->stored = graph->outputs[k].stored;
    if (format->stored.reshaped) format->stored.shape = rfx_output_shape(graph, k);
    format->cells = cells_of(graph, k);
}

/* Whether a side of a map has a pixel for each 4 of the network's input, or of the image: maps of
 * padded images are cut. */
static bool is_quarter(int64_t side, int64_t input, int64_t image) {
    const int64_t stride = RFX_ANSWER_PROTOTYPE_STRIDE;
    return (input % stride == 0 && side == input / stride) || side == rfx_ceil_div(image, stride);
}

void rfx_output_declare_prototypes(struct rfx_output_format *format, const struct rfx_graph *graph,
                                   int k) {
    if (graph->input < 0) return;
    const struct rfx_tensor *image = &graph->nodes[graph->input].out;
    for (int i = 0; i < graph->n_outputs && !format->prototypes.known; i++) {
        const struct rfx_tensor *map = &graph->nodes[graph->outputs[i].node].out;
        if (i == k || map->layout != RFX_LAYOUT_NHWC || map->type != RFX_TYPE_FLOAT32 ||
            !is_quarter(map->h, format->cells.image_h, image->h) ||
            !is_quarter(map->w, format->cells.image_w, image->w))
            continue;
        format->prototypes = (struct rfx_answer_prototypes){
            .known = true, .output = i, .map = *map, .picture_h = image->h, .picture_w = image->w};
    }
}

static enum rfx_type by_most(int64_t most, enum rfx_type otherwise) {
    if (most > 0 && most <= UINT8_MAX) return RFX_TYPE_UINT8;
    return most > 0 && most <= UINT16_MAX ? RFX_TYPE_UINT16 : otherwise;
}

/* Returns the type in which a picture file stores values of the output's type; FLOAT32: it has none
 * for it. */
static enum rfx_type picture_type(const struct rfx_output_kind *kind,
                                  const struct rfx_stored *stored) {
    enum rfx_type type = stored->type;
    if (type == RFX_TYPE_BOOL) type = RFX_TYPE_UINT8;
    if (type == RFX_TYPE_INT64) type = by_most(stored->most, RFX_TYPE_INT32);
    if (!has(kind, type)) type = by_most(stored->most, RFX_TYPE_FLOAT32);
    return has(kind, type) ? type : RFX_TYPE_FLOAT32;
}

/* Returns the type of the file's elements without scaling; FLOAT32 if bits or a range are set. */
static enum rfx_type unscaled_type(const struct rfx_output_format *format) {
    if (format->kind->write_row == NULL) return format->stored.type;
    if (format->bits != 0 || format->has_range) return RFX_TYPE_FLOAT32;
    return picture_type(format->kind, &format->stored);
}

/* Returns the bits that are set, or the usual ones. */
static int bits_of(const struct rfx_output_format *format) {
    if (format->bits != 0) return format->bits;
    return has(format->kind, RFX_TYPE_FLOAT32) ? 32 : 8;
}

enum rfx_type rfx_output_sample(const struct rfx_output_format *format) {
    enum rfx_type type = unscaled_type(format);
    if (type != RFX_TYPE_FLOAT32) return type;
    int bits = bits_of(format);
    return bits == 8 ? RFX_TYPE_UINT8 : bits == 16 ? RFX_TYPE_UINT16 : RFX_TYPE_FLOAT32;
}

bool rfx_output_is_scaled(const struct rfx_output_format *format) {
    return unscaled_type(format) == RFX_TYPE_FLOAT32 &&
           rfx_output_sample(format) != RFX_TYPE_FLOAT32;
}

int rfx_output_bits(const struct rfx_output_format *format) {
    return 8 * (int)rfx_type_bytes(rfx_output_sample(format));
}

bool rfx_output_is_signed(const struct rfx_output_format *format) {
    enum rfx_type type = rfx_output_sample(format);
    return type == RFX_TYPE_INT8 || type == RFX_TYPE_INT16 || type == RFX_TYPE_INT32;
}

/* Checks that the kind has such samples: unsigned of 8 or 16 bits, or floats of 32 bits. */
static enum rfx_status check_bits(const struct rfx_output_format *format, const char *path,
                                  struct rfx_error *err) {
    const struct rfx_output_kind *kind = format->kind;
    bool bytes = has(kind, RFX_TYPE_UINT8) && kind->write_row != NULL;
    bool floats = has(kind, RFX_TYPE_FLOAT32);
    int bits = bits_of(format);
    if ((floats && bits == 32) || (bytes && (bits == 8 || bits == 16))) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%s: a %s has samples of %s bits, not %d",
                    path, kind->name,
                    !bytes   ? "32"
                    : floats ? "8, 16 or 32"
                             : "8 or 16",
                    bits);
}

static enum rfx_status check_size(const struct rfx_output_kind *kind, const struct rfx_tensor *map,
                                  const char *path, struct rfx_error *err) {
    bool sides = map->h <= kind->most_side && map->w <= kind->most_side;
    if (kind->most_channels > 0) {
        if (map->c <= kind->most_channels && sides) return RFX_OK;
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: a %s has at most %d channels and %" PRId64
                        " rows and columns, "
                        "the map is %" PRId64 " x %" PRId64 " x %" PRId64 "; use .npy",
                        path, kind->name, kind->most_channels, kind->most_side, map->c, map->h,
                        map->w);
    }
    if (map->c != 1 && map->c != 3)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: a %s has 1 or 3 channels, the map has %" PRId64 "; use .tif or .npy",
                        path, kind->name, map->c);
    if (sides) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "%s: a %s has at most %" PRId64 " rows and columns, the map is %" PRId64
                    " x %" PRId64 "; use .tif or .npy",
                    path, kind->name, kind->most_side, map->h, map->w);
}

enum rfx_status rfx_output_format_check(const struct rfx_output_format *format,
                                        const struct rfx_tensor *tensor, const char *path,
                                        struct rfx_error *err) {
    const struct rfx_output_kind *kind = format->kind;
    enum rfx_status status = check_bits(format, path, err);
    if (status == RFX_OK && format->has_range &&
        (bits_of(format) == 32 || !(format->range.lo < format->range.hi)))
        status = rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                          "%s: a range of values needs samples of 8 or 16 bits and a lower end "
                          "below the upper one",
                          path);
    if (status == RFX_OK && kind->check != NULL) status = kind->check(format, path, err);
    if (status != RFX_OK || kind->write_row == NULL) return status;
    if (format->images > 1)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: the outputs of a batch of %" PRId64
                        " images are one .npy file, not a %s; run --list makes a file of each "
                        "picture",
                        path, format->images, kind->name);
    if (tensor->layout != RFX_LAYOUT_NHWC && kind->take != NULL)
        return kind->check_map(format, tensor, path, err);
    if (tensor->layout != RFX_LAYOUT_NHWC)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "%s: a %s takes a map of rows, columns and channels; use .npy", path,
                        kind->name);
    status = check_size(kind, tensor, path, err);
    return status == RFX_OK && kind->check_map != NULL ? kind->check_map(format, tensor, path, err)
                                                       : status;
}

const struct rfx_output_kind rfx_output_npy = {
    .name = ".npy file", .ends = {".npy"}, .samples = 1U << RFX_TYPE_FLOAT32};
