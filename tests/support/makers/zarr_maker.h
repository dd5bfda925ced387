/* Zarr folders of any kind that is read, written without the code that reads or writes them
 * elsewhere: metadata as text, samples one by one. */
#ifndef RFX_TESTS_SUPPORT_MAKERS_ZARR_MAKER_H
#define RFX_TESTS_SUPPORT_MAKERS_ZARR_MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ZARR_MAKER_RANK = 5 };

struct zarr_maker {
    int format, rank;
    int64_t shape[ZARR_MAKER_RANK], chunk[ZARR_MAKER_RANK];
    int y, x, c;       /* axes; c -1: none */
    const char *names; /* JSON of a list, NULL: none */
    const char *type;  /* "uint16" */
    bool big;          /* samples in big-endian order */
    bool column_major; /* format 2 */
    const char *codec; /* NULL: chunks are not packed */
    char separator;
    bool old_keys;    /* format 3: keys of the kind v2 */
    const char *fill; /* JSON */
    double fill_value;
    int missing; /* every so many chunks one is not written; 0: none is */
    uint32_t seed;
};

/* Format 3, uint8, (3, 40, 52) as c, y, x in chunks of 1 x 16 x 20. */
struct zarr_maker zarr_maker_usual(void);

/* Whether chunks can be packed so here. */
bool zarr_maker_can(const char *codec);

/* Writes the folder, which is there no matter what; false: it could not be. */
bool zarr_maker_write(const struct zarr_maker *maker, const char *folder);

/* A sample as stored. */
double zarr_maker_value(const struct zarr_maker *maker, int64_t c, int64_t y, int64_t x);

/* As it is read without scale: 16 bits without sign divided by 257, floats the nearest. */
float zarr_maker_read(const struct zarr_maker *maker, int64_t c, int64_t y, int64_t x);

/* A file in a folder, and the folders above it. */
bool zarr_maker_put(const char *folder, const char *name, const void *data, size_t bytes);

/* Removes a folder with all that is in it. */
void zarr_maker_remove(const char *folder);
#endif
