/* Segments up to the first scan, then the first directory of the TIFF that the EXIF segment is.
 * Sources: JEITA CP-3451 (EXIF), TIFF 6.0. Every place is held against the segment's end. */
#include "rfexec/image/turn/exif.h"

#include <string.h>

enum { MAX_SEGMENTS = 1000, MAX_ENTRIES = 1000, TAG_ORIENTATION = 274, TYPE_SHORT = 3 };

/* The TIFF inside a segment. */
struct exif {
    struct rfx_image_file *file;
    int64_t start, end; /* in the file */
    bool big_endian;
};

/* `n` bytes from `at` in the TIFF as a number; -1: there are none. */
static int64_t number_at(const struct exif *e, int64_t at, int n) {
    unsigned char bytes[4];
    if (at < 0 || at > e->end - e->start - n) return -1;
    if (rfx_image_file_pread(e->file, bytes, (size_t)n, e->start + at) != (size_t)n) return -1;
    int64_t value = 0;
    for (int i = 0; i < n; i++) value = value << 8 | bytes[e->big_endian ? i : n - 1 - i];
    return value;
}

static int orientation_in(struct exif *e) {
    int64_t order = number_at(e, 0, 2); /* the same bytes twice */
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
        if (head[1] == 0xff) { /* bytes may fill the space before a marker */
            at++;
            continue;
        }
        int64_t length = (int64_t)head[2] << 8 | head[3];
        if (head[1] == 0xda || head[1] == 0xd9 || length < 2) break; /* the scans */
        struct exif e = {.file = file, .start = at + 10, .end = at + 2 + length};
        if (head[1] == 0xe1 && length >= 8 && memcmp(head + 4, "Exif\0\0", 6) == 0)
            return orientation_in(&e);
        at += 2 + length;
    }
    return 1;
}
