/* Halves rows and cuts them into tiles; see tile_pyramid.h. */
#include "tools/report/tile_pyramid.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/output/image_write.h"
#include "rfexec/output/output_spool.h"

/* PNG_BYTES: libpng's and zlib's memory besides rows. FILE_NAME: of a tile. */
enum { MOST_LEVELS = 64, PNG_BYTES = 384 * 1024, FILE_NAME = 96 };

struct level { /* 0 is the picture here: rows come from the largest level to the smallest */
    int64_t h, w;
    int64_t x;           /* first column in the spool */
    int64_t taken;       /* rows that came */
    unsigned char *held; /* [w, channels]: a row that waits for the one below */
    unsigned char *row;  /* [w, channels]: the row that is made of two rows above; not of level 0 */
};

struct rfx_tile_pyramid {
    struct rfx_memory *mem;
    struct rfx_output_folder *folder;
    const char *name;
    int channels, count;
    struct level levels[MOST_LEVELS];
    struct rfx_output_spool *spool; /* the rows of tiles of all levels, side by side */
    unsigned char *part;            /* [RFX_TILE_SIDE, channels]: a row of a tile */
    unsigned char *packed;          /* the file of a tile */
    size_t used;                    /* bytes of it */
};

static int64_t half_of(int64_t length) {
    return rfx_ceil_div(length, 2);
}

int rfx_tile_pyramid_levels(int64_t h, int64_t w) {
    int levels = 1;
    for (; h > 1 || w > 1; h = half_of(h), w = half_of(w)) ++levels;
    return levels;
}

/* Returns an upper bound of the bytes of a tile's file: those of its pixels, if they do not
 * compress, and those of the file's parts. */
static size_t packed_bytes(int channels) {
    size_t pixels = (size_t)RFX_TILE_SIDE * (size_t)(RFX_TILE_SIDE * channels + 1);
    return pixels + pixels / 64 + 4096;
}

size_t rfx_tile_pyramid_bytes(int64_t h, int64_t w, int channels) {
    size_t pixels = 0;
    for (int64_t y = h, x = w;; y = half_of(y), x = half_of(x)) {
        pixels += 2 * (size_t)x;
        if (y <= 1 && x <= 1) break;
    }
    size_t tile_row = (size_t)RFX_TILE_SIDE * (size_t)channels;
    return sizeof(struct rfx_tile_pyramid) + RFX_OUTPUT_SPOOL_BYTES + pixels * (size_t)channels +
           5 * tile_row + packed_bytes(channels) + PNG_BYTES;
}

static enum rfx_status make_bytes(struct rfx_tile_pyramid *p, size_t bytes, unsigned char **out,
                                  struct rfx_error *err) {
    *out = rfx_memory_alloc(p->mem, bytes);
    return *out != NULL ? RFX_OK : rfx_memory_fail(p->mem, "tiles", bytes, err);
}

static enum rfx_status make_levels(struct rfx_tile_pyramid *p, int64_t h, int64_t w, int64_t *width,
                                   struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    p->count = rfx_tile_pyramid_levels(h, w);
    *width = 0;
    for (int k = 0; k < p->count && status == RFX_OK; ++k, h = half_of(h), w = half_of(w)) {
        struct level *level = &p->levels[k];
        size_t bytes = (size_t)w * (size_t)p->channels;
        level->h = h;
        level->w = w;
        level->x = *width;
        *width += w;
        status = make_bytes(p, bytes, &level->held, err);
        if (status == RFX_OK && k > 0) status = make_bytes(p, bytes, &level->row, err);
    }
    return status;
}

enum rfx_status rfx_tile_pyramid_open(struct rfx_memory *mem, struct rfx_output_folder *folder,
                                      const char *name, const char *beside, int64_t h, int64_t w,
                                      int channels, struct rfx_tile_pyramid **out,
                                      struct rfx_error *err) {
    int64_t width;
    struct rfx_tile_pyramid *p = rfx_memory_calloc(mem, 1, sizeof *p);
    if (p == NULL) return rfx_memory_fail(mem, "tiles", sizeof *p, err);
    p->mem = mem;
    p->folder = folder;
    p->name = name;
    p->channels = channels;
    enum rfx_status status = make_levels(p, h, w, &width, err);
    if (status == RFX_OK) status = make_bytes(p, (size_t)(RFX_TILE_SIDE * channels), &p->part, err);
    if (status == RFX_OK) status = make_bytes(p, packed_bytes(channels), &p->packed, err);
    if (status == RFX_OK) {
        struct rfx_tensor rows = rfx_tensor_nhwc(channels, rfx_min_i64(RFX_TILE_SIDE, h), width);
        rows.type = RFX_TYPE_UINT8;
        status = rfx_output_spool_open(mem, beside, &rows, &p->spool, err);
    }
    if (status == RFX_OK)
        *out = p;
    else
        rfx_tile_pyramid_free(p);
    return status;
}

void rfx_tile_pyramid_free(struct rfx_tile_pyramid *p) {
    if (p == NULL) return;
    for (int k = 0; k < p->count; ++k) {
        rfx_memory_release(p->mem, p->levels[k].held);
        rfx_memory_release(p->mem, p->levels[k].row);
    }
    rfx_output_spool_free(p->spool);
    rfx_memory_release(p->mem, p->part);
    rfx_memory_release(p->mem, p->packed);
    rfx_memory_release(p->mem, p);
}

/* Takes the next bytes of a tile's file. */
static enum rfx_status pack(void *user, const void *data, size_t bytes, struct rfx_error *err) {
    struct rfx_tile_pyramid *p = user;
    (void)err;
    assert(bytes <= packed_bytes(p->channels) - p->used);
    memcpy(p->packed + p->used, data, bytes);
    p->used += bytes;
    return RFX_OK;
}

/* Writes the tile of `rows` rows at a tile's row and column of level k. */
static enum rfx_status write_tile(struct rfx_tile_pyramid *p, int k, int64_t row, int64_t col,
                                  int64_t rows, struct rfx_error *err) {
    const struct level *level = &p->levels[k];
    int64_t x = col * RFX_TILE_SIDE, cols = rfx_min_i64(RFX_TILE_SIDE, level->w - x);
    char name[FILE_NAME];
    struct rfx_png_writer *png = NULL;
    (void)snprintf(name, sizeof name, "%.20s_files/%d/%" PRId64 "_%" PRId64 ".png", p->name,
                   p->count - 1 - k, col, row);
    p->used = 0;
    enum rfx_status status =
        rfx_png_write_open_to(p->mem, name, pack, p, rows, cols, p->channels, 8, &png, err);
    for (int64_t y = 0; y < rows && status == RFX_OK; ++y) {
        status = rfx_output_spool_read_part(p->spool, y, level->x + x, level->x + x + cols, p->part,
                                            err);
        if (status == RFX_OK) status = rfx_png_write_row(png, p->part, err);
    }
    if (status == RFX_OK) status = rfx_png_write_commit(png, err);
    rfx_png_write_free(png);
    return status == RFX_OK ? rfx_output_folder_put(p->folder, name, p->packed, p->used, err)
                            : status;
}

static enum rfx_status write_description(struct rfx_tile_pyramid *p, struct rfx_error *err) {
    char text[512], name[FILE_NAME];
    (void)snprintf(name, sizeof name, "%.20s.dzi", p->name);
    int n = snprintf(text, sizeof text,
                     "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                     "<Image xmlns=\"http://schemas.microsoft.com/deepzoom/2008\" Format=\"png\" "
                     "Overlap=\"0\" TileSize=\"%d\">\n"
                     "  <Size Width=\"%" PRId64 "\" Height=\"%" PRId64
                     "\"/>\n"
                     "</Image>\n",
                     RFX_TILE_SIDE, p->levels[0].w, p->levels[0].h);
    return rfx_output_folder_put(p->folder, name, text, (size_t)n, err);
}

/* Stores a row of level k, and writes its row of tiles if that is complete now. */
static enum rfx_status take_row(struct rfx_tile_pyramid *p, int k, unsigned char *row,
                                struct rfx_error *err) {
    struct level *level = &p->levels[k];
    int64_t y = level->taken++, rows = y % RFX_TILE_SIDE + 1;
    struct rfx_tensor all = rfx_tensor_nhwc(p->channels, level->h, level->w);
    all.type = RFX_TYPE_UINT8;
    struct rfx_rect rect = rfx_rect_make(rows - 1, rows, level->x, level->x + level->w);
    struct rfx_view view = rfx_view_of(&all, row, rect);
    enum rfx_status status = rfx_output_spool_write(p->spool, rect, &view, err);
    if (rows < RFX_TILE_SIDE && level->taken < level->h) return status;
    for (int64_t col = 0; col * RFX_TILE_SIDE < level->w && status == RFX_OK; ++col)
        status = write_tile(p, k, y / RFX_TILE_SIDE, col, rows, err);
    return status;
}

/* Sets `to` to the mean of four pixels of `channels` samples. Without alpha all are opaque. */
static void mean_of(const unsigned char *const pixels[4], int channels, unsigned char *to) {
    unsigned weights[4], weight = 0;
    for (int i = 0; i < 4; ++i) weight += weights[i] = channels == 4 ? pixels[i][3] : 1U;
    for (int c = 0; c < 3; ++c) {
        unsigned sum = weight / 2;
        for (int i = 0; i < 4; ++i) sum += weights[i] * pixels[i][c];
        to[c] = (unsigned char)(weight > 0 ? sum / weight : 0);
    }
    if (channels == 4) to[3] = (unsigned char)((weight + 2) / 4);
}

/* Makes a row of level k + 1 of two rows of level k. At odd edges the last row and column count
 * twice, which does not change the mean. */
static void halve(const struct rfx_tile_pyramid *p, int k, const unsigned char *above,
                  const unsigned char *below) {
    const struct level *from = &p->levels[k], *to = &p->levels[k + 1];
    for (int64_t x = 0; x < to->w; ++x) {
        int64_t left = 2 * x, right = rfx_min_i64(left + 1, from->w - 1), c = p->channels;
        const unsigned char *const pixels[4] = {above + left * c, above + right * c,
                                                below + left * c, below + right * c};
        mean_of(pixels, p->channels, to->row + x * c);
    }
}

enum rfx_status rfx_tile_pyramid_put(struct rfx_tile_pyramid *p, unsigned char *row,
                                     struct rfx_error *err) {
    for (int k = 0;; ++k, row = p->levels[k].row) {
        struct level *level = &p->levels[k];
        int64_t y = level->taken;
        enum rfx_status status = take_row(p, k, row, err);
        if (status != RFX_OK) return status;
        if (k + 1 == p->count) return write_description(p, err);
        if (y % 2 == 0 && y + 1 < level->h) {
            memcpy(level->held, row, (size_t)(level->w * p->channels));
            return RFX_OK;
        }
        halve(p, k, y % 2 == 1 ? level->held : row, row);
    }
}
