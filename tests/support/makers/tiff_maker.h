/* Makes TIFF files of every kind that libtiff writes from known samples, and says what a reader
 * must deliver for them. Independent of the code under test. */
#ifndef RFX_TESTS_SUPPORT_MAKERS_TIFF_MAKER_H
#define RFX_TESTS_SUPPORT_MAKERS_TIFF_MAKER_H

#include <stdbool.h>
#include <stdint.h>

struct tiff_maker {
    int h, w;
    int bits;        /* 1, 2, 4, 8, 16, 32, 64 */
    int format;      /* of samples, as in the tag; 0: unsigned, and float with 32 and 64 bits */
    int samples;     /* stored per pixel, the last one alpha when 2 or 4 */
    bool no_alpha;   /* extra samples are called nothing */
    bool associated; /* colours are said to be multiplied with alpha; stored samples are the same */
    int orientation; /* as in the tag; 0: none */
    int photometric; /* as in the tag */
    int compression; /* as in the tag */
    int predictor;   /* 0: none */
    int rows;        /* of a strip or tile */
    int cols;        /* of a tile; 0: strips */
    bool separate, big_tiff, big_endian, lsb_first;
    bool wide_palette;       /* entries that 8 bits do not hold */
    bool smooth;             /* slowly changing samples, for lossy codecs */
    bool reduced;            /* said to be a smaller copy of another page */
    int subs;                /* of a file of pages: so many after this one are its SubIFDs */
    const char *description; /* in the tag; NULL: none */
    uint32_t seed;
};

/* A picture of 37 x 53 in one of the colours [0, TIFF_MAKER_COLOURS): depths of 1 to 32 bits, grey
 * both ways, RGB, palettes, with and without alpha. Its strips or tiles are still to be set. */
enum { TIFF_MAKER_COLOURS = 19 };
struct tiff_maker tiff_maker_of(int colour, int compression);

/* Writes the file; false when libtiff refuses or has not this codec. */
bool tiff_maker_write(const struct tiff_maker *m, const char *path);

/* Writes several pages into one file, of the kind that the first says. */
bool tiff_maker_write_pages(const struct tiff_maker *pages, int n, const char *path);

/* Channels a reader delivers: 1 or 3. */
int tiff_maker_channels(const struct tiff_maker *m);

/* What a reader delivers of channel c at (y, x): on the scale 0 ... 255, floats as they are. */
float tiff_maker_sample(const struct tiff_maker *m, int y, int x, int c);

/* Whether samples are taken as they are: float, signed and of 32 bits. */
bool tiff_maker_has_values(const struct tiff_maker *m);
#endif
