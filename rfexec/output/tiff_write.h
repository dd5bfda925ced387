/* TIFF files written row by row: float32, 8 or 16 bit, any number of channels side by side or each
 * a picture of its own.
 *
 * Uncompressed strips of about 256 KiB, or square tiles, uncompressed or by deflate or zstd;
 * with overviews as pages behind the picture's, or below it, when they are asked for (overviews.h);
 * BigTIFF when the file could pass 4 GiB. Built on rfexec/output/output_file.h: the file appears on
 * commit or not at all. libtiff takes its memory from the system: one strip (or row, when that is
 * more) or tile, the encoder's own, and 32 bytes a strip or tile. */
#ifndef RFX_RFEXEC_OUTPUT_TIFF_WRITE_H
#define RFX_RFEXEC_OUTPUT_TIFF_WRITE_H

#include "layers/core/memory.h"
#include "layers/graph/tensor.h"
#include "rfexec/image/geo/georeference.h"
#include "rfexec/output/overviews/overviews.h"

#define RFX_TIFF_MAX_CHANNELS 65535

enum rfx_tiff_packing { RFX_TIFF_PLAIN, RFX_TIFF_DEFLATE, RFX_TIFF_ZSTD, RFX_TIFF_PACKING_COUNT };

struct rfx_tiff_picture {
    int64_t h, w, channels;
    int bits;                      /* 8 and 16: unsigned samples, 32: float32, unless */
    bool is_signed;                /* samples of 8, 16 or 32 bits are integers with a sign */
    int tile;                      /* rows and columns of a tile, a multiple of 16; 0: strips */
    enum rfx_tiff_packing packing; /* of tiles */
    const struct rfx_georeference *geo; /* borrowed while it is opened; NULL: none */
    enum rfx_overview_kind overviews;   /* of tiles */
    bool planes; /* of tiles: a directory for each channel, in a file of which
                  * rfx_overviews has all until the last row is there */
    bool ome;    /* for Bio-Formats: overviews are SubIFDs of what they are smaller copies of, and
                  * floats are packed without the predictor that it does not know */
    bool cog;    /* of tiles: put in the order of a cloud optimized GeoTIFF at the end, for which a
                  * second file of that size is there until then */
    const char *description; /* of the first directory; borrowed while it is opened; NULL: none */
};

struct rfx_tiff_writer;

/* Opens a picture. Three channels are marked RGB, others as grey with unspecified further channels.
 * Takes the disk for all of it, when it is not compressed. INVALID_ARGUMENT: other bits or tiles, a
 * side outside of 1 ... 2^31 - 1, channels outside of 1 ... 65,535, compressed strips or planes in
 * strips, a COG in strips or into what is no file; UNSUPPORTED:
 * this libtiff has no such compression; IO: the file cannot be made. */
RFX_NODISCARD enum rfx_status rfx_tiff_write_open(struct rfx_memory *mem, const char *path,
                                                  const struct rfx_tiff_picture *picture,
                                                  struct rfx_tiff_writer **out,
                                                  struct rfx_error *err);

/* Writes the next row, samples [w, channels]: uint8, uint16 of this machine, or float32.
 * INVALID_ARGUMENT: all rows are written. */
RFX_NODISCARD enum rfx_status rfx_tiff_write_row(struct rfx_tiff_writer *writer,
                                                 const void *samples, struct rfx_error *err);

/* Completes the file. INVALID_ARGUMENT: rows are missing. Only free may follow. */
RFX_NODISCARD enum rfx_status rfx_tiff_write_commit(struct rfx_tiff_writer *writer,
                                                    struct rfx_error *err);

/* Frees; without a successful commit nothing is left on disk. NULL is fine. */
void rfx_tiff_write_free(struct rfx_tiff_writer *writer);

/* At most so many bytes the writer and libtiff take for it: of tiles, a row of them too. */
size_t rfx_tiff_write_bytes(const struct rfx_tiff_picture *picture);

/* Whether it becomes BigTIFF: when the samples alone could pass 4 GiB, compressed or not, for what
 * compression saves is known too late. */
bool rfx_tiff_write_is_big(const struct rfx_tiff_picture *picture);
#endif
