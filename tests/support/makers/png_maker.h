/* Makes PNG files of every kind with known stored samples, straight through libpng, and says what a
 * reader must deliver for them. Independent of the code under test. */
#ifndef RFX_TESTS_SUPPORT_MAKERS_PNG_MAKER_H
#define RFX_TESTS_SUPPORT_MAKERS_PNG_MAKER_H

#include <stdbool.h>
#include <stdint.h>

struct png_maker {
    int h, w;
    int bit_depth, color_type; /* as in IHDR */
    bool interlaced;
    bool transparent; /* with a tRNS chunk, where the colour type may have one */
    int orientation;  /* in an eXIf chunk, 1 to 8; 0: none */
    bool exif_last;   /* which stands behind the pixels */
    uint32_t seed;
};

/* Writes the file; false when libpng refuses. */
bool png_maker_write(const struct png_maker *m, const char *path);

/* Channels a reader delivers: 1 or 3. */
int png_maker_channels(const struct png_maker *m);

/* The sample of channel c at (y, x) on the 8-bit scale (16-bit files: on the 16-bit scale). */
int png_maker_sample(const struct png_maker *m, int y, int x, int c);
#endif
