/* Boxes one behind another, those of the header inside one of them, then the first marker of the
 * codestream. Every place is held against the file's end. */
#include "rfexec/image/jp2/jp2_header.h"

#include <inttypes.h>
#include <string.h>

#include "layers/core/checked.h"

enum { MOST_BOXES = 1000, SRGB = 16, GREY = 17, SYCC = 18, CMYK = 12 };

/* Of up to 8 bytes, the highest first; -1: beyond any file's length. */
static int64_t number(const unsigned char *from, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value = value << 8 | from[i];
    return value > INT64_MAX ? -1 : (int64_t)value;
}

static bool get(struct rfx_image_file *file, int64_t at, void *to, size_t bytes) {
    return rfx_image_file_pread(file, to, bytes, at) == bytes;
}

/* A box: [at, end) is what it holds. */
struct box {
    char name[4];
    int64_t at, end;
};

static bool read_box(struct rfx_image_file *file, int64_t at, int64_t limit, struct box *out) {
    unsigned char head[16];
    if (limit - at < 8 || !get(file, at, head, 8)) return false;
    int64_t length = number(head, 4), before = 8;
    memcpy(out->name, head + 4, 4);
    if (length == 1) {
        if (!get(file, at, head, 16)) return false;
        length = number(head + 8, 8);
        before = 16;
    }
    if (length == 0) length = limit - at;
    if (length < before || length > limit - at) return false;
    out->at = at + before;
    out->end = at + length;
    return true;
}

static bool is_named(const struct box *box, const char *name) {
    return memcmp(box->name, name, 4) == 0;
}

static enum rfx_status read_colour(struct rfx_image_file *file, const struct box *box,
                                   struct rfx_jp2_header *h, struct rfx_error *err) {
    unsigned char bytes[7];
    if (box->end - box->at < 7 || !get(file, box->at, bytes, 7) || bytes[0] != 1) return RFX_OK;
    int64_t kind = number(bytes + 3, 4);
    if (kind != SRGB && kind != GREY)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "colours of kind %" PRId64 "%s; sRGB, grey and profiles are read", kind,
                        kind == SYCC   ? " (YCC)"
                        : kind == CMYK ? " (CMYK)"
                                       : "");
    h->colours = kind == SRGB ? 3 : 1;
    return RFX_OK;
}

/* Which bands are alpha; colours must come in their order. */
static enum rfx_status read_channels(struct rfx_image_file *file, const struct box *box,
                                     struct rfx_jp2_header *h, struct rfx_error *err) {
    unsigned char bytes[6];
    if (!get(file, box->at, bytes, 2)) return RFX_OK;
    int64_t n = number(bytes, 2);
    for (int64_t i = 0; i < n && i < RFX_JP2_MOST_BANDS; i++) {
        if (box->at + 8 + 6 * i > box->end || !get(file, box->at + 2 + 6 * i, bytes, 6)) break;
        int64_t band = number(bytes, 2), kind = number(bytes + 2, 2), colour = number(bytes + 4, 2);
        if (kind == 0 && colour > 0 && colour < 65535 && colour != band + 1)
            return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                            "band %" PRId64 " is colour %" PRId64
                            ": colours in another order than their bands",
                            band + 1, colour);
        if (kind != 1 && kind != 2) continue;
        h->alpha = (int)band;
        h->premultiplied = kind == 2;
    }
    return RFX_OK;
}

static enum rfx_status read_header_boxes(struct rfx_image_file *file, const struct box *in,
                                         struct rfx_jp2_header *h, struct rfx_error *err) {
    struct box box;
    enum rfx_status status = RFX_OK;
    int64_t at = in->at;
    for (int i = 0; i < MOST_BOXES && status == RFX_OK && read_box(file, at, in->end, &box); i++) {
        at = box.end;
        if (is_named(&box, "pclr"))
            status = rfx_fail(err, RFX_STATUS_UNSUPPORTED, "colours by a palette");
        else if (is_named(&box, "colr") && h->colours == 0)
            status = read_colour(file, &box, h, err);
        else if (is_named(&box, "cdef"))
            status = read_channels(file, &box, h, err);
    }
    return status;
}

/* The place of the codestream; -1: there is none. */
static enum rfx_status find_codestream(struct rfx_image_file *file, struct rfx_jp2_header *h,
                                       int64_t *found, struct rfx_error *err) {
    struct box box;
    enum rfx_status status = RFX_OK;
    int64_t at = 0;
    *found = -1;
    for (int i = 0; i < MOST_BOXES && read_box(file, at, file->bytes, &box); i++) {
        at = box.end;
        if (is_named(&box, "jp2h")) status = read_header_boxes(file, &box, h, err);
        if (status != RFX_OK) return status;
        if (!is_named(&box, "jp2c")) continue;
        *found = box.at;
        return RFX_OK;
    }
    return rfx_fail(err, RFX_STATUS_MALFORMED, "the file has no codestream, or is cut off");
}

static enum rfx_status read_size(struct rfx_image_file *file, int64_t at, struct rfx_jp2_header *h,
                                 struct rfx_error *err) {
    unsigned char siz[42], band[3];
    if (!get(file, at, siz, sizeof siz) || memcmp(siz, "\xff\x4f\xff\x51", 4) != 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "the codestream's header is broken or cut off");
    h->x1 = number(siz + 8, 4);
    h->y1 = number(siz + 12, 4);
    h->x0 = number(siz + 16, 4);
    h->y0 = number(siz + 20, 4);
    h->tile_w = number(siz + 24, 4);
    h->tile_h = number(siz + 28, 4);
    h->tile_x0 = number(siz + 32, 4);
    h->tile_y0 = number(siz + 36, 4);
    h->bands = (int)number(siz + 40, 2);
    bool fits = h->x0 < h->x1 && h->y0 < h->y1 && h->tile_w > 0 && h->tile_h > 0 &&
                h->tile_x0 <= h->x0 && h->tile_y0 <= h->y0 && h->tile_x0 + h->tile_w > h->x0 &&
                h->tile_y0 + h->tile_h > h->y0 && h->bands > 0;
    if (!fits) return rfx_fail(err, RFX_STATUS_MALFORMED, "the codestream has impossible sizes");
    h->n_across = rfx_ceil_div(h->x1 - h->tile_x0, h->tile_w);
    h->n_down = rfx_ceil_div(h->y1 - h->tile_y0, h->tile_h);
    if (h->bands > RFX_JP2_MOST_BANDS || h->n_across * h->n_down > RFX_JP2_MOST_TILES)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%d bands in %" PRId64 " x %" PRId64
                        " tiles; %d bands and %d tiles are read",
                        h->bands, h->n_down, h->n_across, RFX_JP2_MOST_BANDS, RFX_JP2_MOST_TILES);
    for (int i = 0; i < h->bands; i++) {
        if (!get(file, at + 42 + 3 * i, band, 3))
            return rfx_fail(err, RFX_STATUS_MALFORMED, "the codestream's header is cut off");
        int bits = (band[0] & 127) + 1;
        bool is_signed = (band[0] & 128) != 0;
        if (i == 0) {
            h->bits = bits;
            h->is_signed = is_signed;
        }
        if (bits != h->bits || is_signed != h->is_signed || band[1] != 1 || band[2] != 1)
            return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                            "band %d of %d bits, a sample for each %d x %d pixels: bands have one "
                            "type and a sample for each pixel",
                            i + 1, bits, band[2], band[1]);
    }
    if (h->bits > 31)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED, "samples of %d bits; up to 31 are read",
                        h->bits);
    return RFX_OK;
}

enum rfx_status rfx_jp2_header_read(struct rfx_image_file *file, struct rfx_jp2_header *out,
                                    struct rfx_error *err) {
    unsigned char head[4];
    int64_t at = 0;
    *out = (struct rfx_jp2_header){.alpha = -1};
    out->boxes = get(file, 0, head, 4) && memcmp(head, "\xff\x4f\xff\x51", 4) != 0;
    enum rfx_status status = out->boxes ? find_codestream(file, out, &at, err) : RFX_OK;
    if (status == RFX_OK) status = read_size(file, at, out, err);
    if (status == RFX_OK && out->alpha >= out->bands) out->alpha = -1;
    return status;
}
