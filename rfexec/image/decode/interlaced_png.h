/* Private: decodes interlaced PNG files. A temporary file without a name holds the seven passes one
 * after the other, as they are decoded. A row of the picture is assembled from the passes when it
 * is read. */
#ifndef RFX_RFEXEC_IMAGE_DECODE_INTERLACED_PNG_H
#define RFX_RFEXEC_IMAGE_DECODE_INTERLACED_PNG_H

#include "layers/core/memory.h"

#define RFX_PASSES 7

struct rfx_passes {
    int64_t h, w;
    size_t pixel_bytes;
    const char *folder;            /* NULL: rfx_temp_folder */
    int fd;                        /* -1: no file */
    int64_t start[RFX_PASSES + 1]; /* offset of each pass in the file, and the end of the last */
    int64_t held;                  /* number of the group of rows in memory; -1: none */
    unsigned char *rows;           /* a group of eight rows, and a buffer for rows of a pass */
};

/* Initialises the struct, without a file or memory. h and w up to 1,000,000. */
void rfx_passes_init(struct rfx_passes *passes, int64_t h, int64_t w, size_t pixel_bytes,
                     const char *folder);

/* Returns the memory that decoding takes. */
size_t rfx_passes_bytes(const struct rfx_passes *passes);

/* Return the rows and columns of a pass. Either may be 0: the file then has no such pass. */
int64_t rfx_passes_rows(const struct rfx_passes *passes, int pass);
int64_t rfx_passes_columns(const struct rfx_passes *passes, int pass);

/* Returns the row of the picture to which row `row` of a pass belongs. */
int64_t rfx_passes_row_of(int pass, int64_t row);

/* Makes the file and the memory, unless they exist. OUT_OF_MEMORY or IO; the texts begin with
 * `name`. */
RFX_NODISCARD enum rfx_status rfx_passes_open(struct rfx_memory *mem, struct rfx_passes *passes,
                                              const char *name, struct rfx_error *err);

/* Returns a buffer for a row of the picture, valid until the first rfx_passes_row. */
unsigned char *rfx_passes_room(struct rfx_passes *passes);

/* Writes row `row` of a pass to the file. The row is at the start of the buffer of rfx_passes_room.
 * IO. */
RFX_NODISCARD enum rfx_status rfx_passes_put(struct rfx_passes *passes, int pass, int64_t row,
                                             const char *name, struct rfx_error *err);

/* Points *row at row y of the picture, valid until the next call. IO. */
RFX_NODISCARD enum rfx_status rfx_passes_row(struct rfx_passes *passes, int64_t y,
                                             const unsigned char **row, const char *name,
                                             struct rfx_error *err);

void rfx_passes_close(struct rfx_memory *mem, struct rfx_passes *passes);
#endif
