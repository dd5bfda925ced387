/* PNG files row by row, 8 bits per sample: a thin cover over libpng for the demo's programs.
 *
 * Functions return 0, or -1 after printing the reason with the file's name to stderr. */
#ifndef RFX_TOOLS_DEMO_PNG_ROWS_H
#define RFX_TOOLS_DEMO_PNG_ROWS_H

#include <stdint.h>

struct png_rows;

/* Creates `path` for h x w pixels of `channels` samples (1: grey, 3: RGB). NULL on failure. */
struct png_rows *demo_png_create(const char *path, int64_t h, int64_t w, int channels);

/* Opens `path`, delivering RGB rows whatever the file holds (not interlaced). NULL on failure. */
struct png_rows *demo_png_open(const char *path, int64_t *h, int64_t *w);

int demo_png_write_row(struct png_rows *png, const uint8_t *row);
int demo_png_read_row(struct png_rows *png, uint8_t *row);

/* Ends and frees; for a created file every row must have been written. NULL is fine. */
int demo_png_close(struct png_rows *png);
#endif
