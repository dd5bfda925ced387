/* A decoder goes from top to bottom, but the picture as it is seen may begin at any corner. So the
 * samples are first written to a file in the order in which they are seen, and read from there. The
 * page cache is not the process's memory, so a budget holds for pictures of any size.
 *
 * The file consists of groups of GROUP seen rows, one after the other. If rows are columns, a group
 * is a row of blocks, and each block comes from one band of GROUP stored rows. So a band is written
 * in pieces of some KiB, and a group is one read. Else a group is simply its rows. Invariants: 1.
 * values are those of the stored picture, sample by sample; 2. `group` holds the rows of group
 * `held`, in the layout of the file; 3. nothing is allocated after open. */
#include "rfexec/image/decode/orientation.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "layers/core/checked.h"
#include "layers/core/descriptor.h"
#include "layers/core/temp_file.h"

/* EXIF: reads the segments up to the first scan, then the first directory of the TIFF in the EXIF
 * segment. Sources: JEITA CP-3451 (EXIF), TIFF 6.0. Every offset is checked against the segment's
 * end. */

enum { MAX_SEGMENTS = 1000, MAX_ENTRIES = 1000, TAG_ORIENTATION = 274, TYPE_SHORT = 3 };

/* The TIFF inside a segment. */
struct exif {
    struct rfx_image_file *file;
    int64_t start, end; /* place in the file */
    bool big_endian;
};

/* Returns `n` bytes at `at` of the TIFF as a number; -1: they are outside the segment. */
static int64_t number_at(const struct exif *e, int64_t at, int n) {
    unsigned char bytes[4];
    if (at < 0 || at > e->end - e->start - n) return -1;
    if (rfx_image_file_pread(e->file, bytes, (size_t)n, e->start + at) != (size_t)n) return -1;
    int64_t value = 0;
    for (int i = 0; i < n; i++) value = value << 8 | bytes[e->big_endian ? i : n - 1 - i];
    return value;
}

static int orientation_in(struct exif *e) {
    int64_t order = number_at(e, 0, 2); /* both bytes are equal, so byte order does not matter */
    if (order != 0x4949 && order != 0x4d4d) return 1;
    e->big_endian = order == 0x4d4d;
    if (number_at(e, 2, 2) != 42) return 1;
    int64_t directory = number_at(e, 4, 4), n = number_at(e, directory, 2);
    for (int64_t i = 0; directory >= 0 && i < n && i < MAX_ENTRIES; i++) {
        int64_t entry = directory + 2 + 12 * i;
        if (number_at(e, entry, 2) != TAG_ORIENTATION) continue;
        int64_t value = number_at(e, entry + 8, 2);
        bool known = number_at(e, entry + 2, 2) == TYPE_SHORT && number_at(e, entry + 4, 4) == 1;
        return known && value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

int rfx_exif_orientation_in(struct rfx_image_file *file, int64_t start, int64_t end) {
    unsigned char head[6] = {0};
    if (rfx_image_file_pread(file, head, sizeof head, start) == sizeof head &&
        memcmp(head, "Exif\0\0", 6) == 0)
        start += 6;
    struct exif e = {.file = file, .start = start, .end = end};
    return orientation_in(&e);
}

int rfx_exif_orientation(struct rfx_image_file *file) {
    int64_t at = 2; /* after the start of the image */
    for (int i = 0; i < MAX_SEGMENTS; i++) {
        unsigned char head[10];
        memset(head, 0, sizeof head);
        size_t got = rfx_image_file_pread(file, head, sizeof head, at);
        if (got < 4 || head[0] != 0xff) break;
        if (head[1] == 0xff) { /* fill bytes may stand before a marker */
            at++;
            continue;
        }
        int64_t length = (int64_t)head[2] << 8 | head[3];
        if (head[1] == 0xda || head[1] == 0xd9 || length < 2) break; /* the scans begin */
        struct exif e = {.file = file, .start = at + 10, .end = at + 2 + length};
        if (head[1] == 0xe1 && length >= 8 && memcmp(head + 4, "Exif\0\0", 6) == 0)
            return orientation_in(&e);
        at += 2 + length;
    }
    return 1;
}

#define GROUP 32 /* rows */

struct turned_source {
    struct rfx_image_backend base;
    struct rfx_image_backend *stored;
    const char *folder;
    bool columns;       /* seen rows are stored columns */
    bool from_last_row; /* going down or right in the seen picture, stored rows come from the last
                           to the first */
    bool from_last_column; /* the same for stored columns */
    bool made;             /* the file is complete */
    int fd;
    int64_t held; /* number of the group in memory; -1: none */
    size_t pixel_bytes;
    /* GROUP rows of the longer side; holds stored rows while the file is written */
    unsigned char *group;
    unsigned char *block; /* GROUP x GROUP pixels, or one row */
};

static struct turned_source *self_of(struct rfx_image_backend *b) {
    return (struct turned_source *)(void *)b;
}

static enum rfx_status fail_file(const struct turned_source *s, const char *doing, int number,
                                 struct rfx_error *err) {
    size_t bytes = (size_t)(s->base.h * s->base.w) * s->pixel_bytes; /* checked at open */
    return rfx_fail(err, RFX_STATUS_IO,
                    "%s: is stored with orientation %d and is turned in a file of %.1f MiB: %s in "
                    "'%.150s': %s (--no-orient reads it as stored, TMPDIR is another folder)",
                    s->base.name, s->stored->orientation, (double)bytes / 1048576.0, doing,
                    rfx_temp_folder(s->folder), strerror(number));
}

static enum rfx_status put(const struct turned_source *s, const unsigned char *from, size_t bytes,
                           int64_t offset, struct rfx_error *err) {
    int number = rfx_descriptor_write_at(s->fd, from, bytes, offset);
    return number == 0 ? RFX_OK : fail_file(s, "cannot write", number, err);
}

static enum rfx_status get(const struct turned_source *s, unsigned char *to, size_t bytes,
                           int64_t offset, struct rfx_error *err) {
    int number = rfx_descriptor_read_at(s->fd, to, bytes, offset);
    return number == 0 ? RFX_OK : fail_file(s, "cannot read", number, err);
}

/* Reads rows [y0, y0 + rows) of the stored picture into s->group. */
static enum rfx_status read_band(struct turned_source *s, int64_t y0, int64_t rows,
                                 struct rfx_error *err) {
    struct rfx_image_backend *from = s->stored;
    _Alignas(max_align_t) unsigned char room[RFX_IMAGE_ROOM_BYTES];
    for (int64_t y = 0; y < rows; y++) {
        unsigned char *to = s->group + (size_t)(y * from->w) * s->pixel_bytes;
        for (int64_t x = 0, end = 0; x < from->w; x = end) {
            const void *samples = NULL;
            enum rfx_status status =
                from->ops->fetch(from, y0 + y, x, from->w, room, &samples, &end, err);
            if (status != RFX_OK) return status;
            memcpy(to + (size_t)x * s->pixel_bytes, samples, (size_t)(end - x) * s->pixel_bytes);
        }
    }
    return RFX_OK;
}

/* Returns the position from which seen row or column `at` of `n` comes. */
static int64_t from_end(int64_t at, int64_t n, bool from_last) {
    return from_last ? n - 1 - at : at;
}

/* Writes the rows of the band in s->group at the places where they are seen. */
static enum rfx_status put_rows(struct turned_source *s, int64_t y0, int64_t rows,
                                struct rfx_error *err) {
    const size_t row_bytes = (size_t)s->base.w * s->pixel_bytes;
    enum rfx_status status = RFX_OK;
    for (int64_t y = 0; y < rows && status == RFX_OK; y++) {
        const unsigned char *from = s->group + (size_t)y * row_bytes;
        for (int64_t x = 0; s->from_last_column && x < s->base.w; x++)
            memcpy(s->block + (size_t)x * s->pixel_bytes,
                   from + (size_t)(s->base.w - 1 - x) * s->pixel_bytes, s->pixel_bytes);
        int64_t seen = from_end(y0 + y, s->base.h, s->from_last_row);
        status = put(s, s->from_last_column ? s->block : from, row_bytes, seen * (int64_t)row_bytes,
                     err);
    }
    return status;
}

/* Returns the first seen column of stored rows [y0, y0 + rows). */
static int64_t first_column(const struct turned_source *s, int64_t y0, int64_t rows) {
    return s->from_last_row ? s->stored->h - y0 - rows : y0;
}

/* Writes the band in s->group as one block of each group. */
static enum rfx_status put_blocks(struct turned_source *s, int64_t y0, int64_t rows,
                                  struct rfx_error *err) {
    const size_t pixel = s->pixel_bytes;
    enum rfx_status status = RFX_OK;
    for (int64_t top = 0; top < s->base.h && status == RFX_OK; top += GROUP) {
        int64_t lines = rfx_min_i64(GROUP, s->base.h - top);
        for (int64_t i = 0; i < lines * rows; i++) {
            int64_t column = from_end(top + i / rows, s->stored->w, s->from_last_column);
            int64_t row = from_end(i % rows, rows, s->from_last_row);
            memcpy(s->block + (size_t)i * pixel,
                   s->group + (size_t)(row * s->stored->w + column) * pixel, pixel);
        }
        int64_t before = top * s->base.w + first_column(s, y0, rows) * lines;
        status = put(s, s->block, (size_t)(lines * rows) * pixel, before * (int64_t)pixel, err);
    }
    return status;
}

static enum rfx_status make_file(struct turned_source *s, struct rfx_error *err) {
    struct rfx_image_backend *from = s->stored;
    if (s->fd < 0) s->fd = rfx_temp_file_open(rfx_temp_folder(s->folder));
    if (s->fd < 0) return fail_file(s, "cannot make it", errno, err);
    s->held = -1;
    enum rfx_status status = RFX_OK;
    if (from->ops->set_window != NULL) status = from->ops->set_window(from, 1, err);
    for (int64_t y = 0; y < from->h && status == RFX_OK; y += GROUP) {
        int64_t rows = rfx_min_i64(GROUP, from->h - y);
        status = rfx_memory_check_stop(s->base.mem, err);
        if (status == RFX_OK) status = read_band(s, y, rows, err);
        if (status != RFX_OK) break;
        status = s->columns ? put_blocks(s, y, rows, err) : put_rows(s, y, rows, err);
    }
    s->made = status == RFX_OK;
    return status;
}

static enum rfx_status source_set_window(struct rfx_image_backend *b, int64_t rows,
                                         struct rfx_error *err) {
    struct turned_source *s = self_of(b);
    (void)rows;
    return s->made ? RFX_OK : make_file(s, err);
}

static enum rfx_status source_fetch(struct rfx_image_backend *b, int64_t y, int64_t x0, int64_t x1,
                                    void *room, const void **samples, int64_t *end,
                                    struct rfx_error *err) {
    struct turned_source *s = self_of(b);
    const int64_t top = y - y % GROUP, lines = rfx_min_i64(GROUP, b->h - top);
    const size_t row_bytes = (size_t)b->w * s->pixel_bytes;
    enum rfx_status status = RFX_OK;
    (void)room;
    if (!s->made) status = make_file(s, err);
    if (status == RFX_OK && s->held != top) {
        s->held = -1;
        status = get(s, s->group, (size_t)lines * row_bytes, top * (int64_t)row_bytes, err);
        if (status == RFX_OK) s->held = top;
    }
    if (status != RFX_OK) return status;
    int64_t at = (y - top) * b->w + x0; /* the pixel's place in the group */
    *end = x1;
    if (s->columns) {
        int64_t row = from_end(x0, b->w, s->from_last_row), band = row - row % GROUP;
        int64_t rows = rfx_min_i64(GROUP, b->w - band), first = first_column(s, band, rows);
        at = first * lines + (y - top) * rows + x0 - first;
        *end = rfx_min_i64(x1, first + rows);
    }
    *samples = s->group + (size_t)at * s->pixel_bytes;
    return RFX_OK;
}

static void source_free(struct rfx_image_backend *b) {
    struct turned_source *s = self_of(b);
    if (s->stored != NULL) s->stored->ops->free(s->stored);
    if (s->fd >= 0) (void)close(s->fd);
    rfx_memory_release(b->mem, s->group);
    rfx_memory_release(b->mem, s->block);
    rfx_memory_release(b->mem, s);
}

static const struct rfx_image_backend_ops source_ops = {
    .set_window = source_set_window, .fetch = source_fetch, .free = source_free};

/* Computes the bytes of a group, of a block, and of the whole source. Returns false if they exceed
 * any memory. */
static bool count_bytes(const struct turned_source *s, size_t *group, size_t *block, size_t *sum) {
    int64_t longer = rfx_max_i64(s->base.h, s->base.w), file; /* RFX_IMAGE_MAX_SIDE */
    *group = (size_t)longer * GROUP * s->pixel_bytes;
    *block = (size_t)rfx_max_i64(GROUP * GROUP, s->base.w) * s->pixel_bytes;
    *sum = sizeof *s + s->stored->fixed_bytes;
    return rfx_checked_mul_i64(s->base.h * s->base.w, (int64_t)s->pixel_bytes, &file) &&
           rfx_checked_add_size(*sum, *group, sum) && rfx_checked_add_size(*sum, *block, sum) &&
           rfx_checked_add_size(*sum, s->stored->window_row_bytes, sum);
}

enum rfx_status rfx_image_orient(struct rfx_image_backend *stored, const char *folder,
                                 struct rfx_image_backend **out, struct rfx_error *err) {
    const int o = stored->orientation;
    size_t group, block;
    struct turned_source *s = rfx_memory_calloc(stored->mem, 1, sizeof *s);
    if (s == NULL) return rfx_memory_fail(stored->mem, stored->name, sizeof *s, err);
    s->base = *stored;
    s->base.ops = &source_ops;
    s->base.random_access = true;
    s->base.concurrent = false;
    s->base.window_row_bytes = 0;
    s->base.orientation = 0;
    s->folder = folder;
    s->fd = -1;
    s->held = -1;
    s->columns = o >= 5;
    s->from_last_row = o == 3 || o == 4 || o == 6 || o == 7;
    s->from_last_column = o == 2 || o == 3 || o == 7 || o == 8;
    s->base.h = s->columns ? stored->w : stored->h;
    s->base.w = s->columns ? stored->h : stored->w;
    s->pixel_bytes = (size_t)(stored->c * (stored->sample_bits / 8));
    s->stored = stored;
    enum rfx_status status = RFX_OK;
    if (!count_bytes(s, &group, &block, &s->base.fixed_bytes))
        status = rfx_fail(err, RFX_STATUS_MALFORMED,
                          "%s: %" PRId64 " x %" PRId64 " pixels do not fit any file", stored->name,
                          s->base.h, s->base.w);
    if (status == RFX_OK) {
        s->group = rfx_memory_alloc(stored->mem, group);
        s->block = rfx_memory_alloc(stored->mem, block);
        if (s->group == NULL || s->block == NULL)
            status = rfx_memory_fail(stored->mem, stored->name, group + block, err);
    }
    if (status == RFX_OK) {
        *out = &s->base;
        return RFX_OK;
    }
    s->stored = NULL; /* the caller's */
    source_free(&s->base);
    return status;
}
