/* Makes JPEG files of every kind that libjpeg writes from a smooth picture with known samples, and
 * decodes a file whole with libjpeg's own memory manager. Independent of the code under test. */
#ifndef RFX_TESTS_SUPPORT_MAKERS_JPEG_MAKER_H
#define RFX_TESTS_SUPPORT_MAKERS_JPEG_MAKER_H

#include <stdbool.h>

struct jpeg_maker {
    int h, w;
    int components;             /* 1 grey, 3 YCbCr, 4 CMYK */
    int h_sampling, v_sampling; /* of the luma against the chroma: 1, 2 or 4 */
    bool progressive;
    bool separate_scans; /* sequential, each component in a scan of its own */
    bool arithmetic;
    bool rgb;        /* three components stored as RGB */
    int orientation; /* in EXIF data; 0: none are written */
    bool exif_big_endian;
    int restart_interval;
    int quality;
};

/* Writes the file; false when libjpeg refuses. */
bool jpeg_maker_write(const struct jpeg_maker *m, const char *path);

/* The sample of channel c at (y, x) before compression: slowly changing, 40 ... 215. */
int jpeg_maker_sample(int y, int x, int c);

/* Decodes the whole file with libjpeg's defaults: [h, w, components], malloc'd; NULL on errors. */
unsigned char *jpeg_maker_decode(const char *path, int *h, int *w, int *components);
#endif
