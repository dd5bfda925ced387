/* Private: decoding interlaced PNG files. A temporary file without a name holds the seven passes as
 * they are decoded, one after the other. A row of the image is put together from the passes when it
 * is asked for. */
#ifndef RFX_RFEXEC_IMAGE_DECODE_INTERLACED_PNG_H
#define RFX_RFEXEC_IMAGE_DECODE_INTERLACED_PNG_H

#include "layers/core/memory.h"

#define RFX_PASSES 7

struct rfx_passes {
    int64_t h, w;
    size_t pixel_bytes;
    const char *folder;            /* NULL: rfx_temp_folder */
    int fd;                        /* -1: no file */
    int64_t start[RFX_PASSES + 1]; /* of each pass in the file, and the end */
    int64_t held;                  /* the group of rows in memory; -1: none */
    unsigned char *rows;           /* eight of them, and what was read of a pass */
};

/* Without a file or memory. h, w up to 1,000,000. */
void rfx_passes_init(struct rfx_passes *passes, int64_t h, int64_t w, size_t pixel_bytes,
                     const char *folder);

/* Of memory. */
size_t rfx_passes_bytes(const struct rfx_passes *passes);

/* Rows and columns of a pass, either perhaps 0: it is then left out in the picture's file. */
int64_t rfx_passes_rows(const struct rfx_passes *passes, int pass);
int64_t rfx_passes_columns(const struct rfx_passes *passes, int pass);

/* The picture's row that row `row` of a pass is. */
int64_t rfx_passes_row_of(int pass, int64_t row);

/* Makes the file and the memory, where they are not there. OUT_OF_MEMORY or IO; the texts begin
 * with `name`. */
RFX_NODISCARD enum rfx_status rfx_passes_open(struct rfx_memory *mem, struct rfx_passes *passes,
                                              const char *name, struct rfx_error *err);

/* Room for a row of the picture. Until the first rfx_passes_row. */
unsigned char *rfx_passes_room(struct rfx_passes *passes);

/* Writes row `row` of a pass, which lies in the room from its beginning on. IO. */
RFX_NODISCARD enum rfx_status rfx_passes_put(struct rfx_passes *passes, int pass, int64_t row,
                                             const char *name, struct rfx_error *err);

/* Points *row at row y of the picture, until another one is asked for. IO. */
RFX_NODISCARD enum rfx_status rfx_passes_row(struct rfx_passes *passes, int64_t y,
                                             const unsigned char **row, const char *name,
                                             struct rfx_error *err);

void rfx_passes_close(struct rfx_memory *mem, struct rfx_passes *passes);
#endif
