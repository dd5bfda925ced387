/* Writes TIFF files row by row: float32, 8 or 16 bits, any number of channels, side by side or each
 * as a picture of its own.
 *
 * Strips of about 256 KiB are not compressed. Square tiles are uncompressed or compressed by
 * deflate or zstd. Overviews (overviews.h), if any, are pages after the picture's page or SubIFDs
 * of it. The file is a BigTIFF if it could exceed 4 GiB. Built on rfexec/output/output_file.h: the
 * file appears on commit or not at all. libtiff takes its memory from the system: one strip (or
 * row, if that is larger) or tile, the encoder's own memory, and 32 bytes for each strip or tile.
 */
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
    int bits;                      /* 8 and 16: unsigned samples, 32: float32, if not is_signed */
    bool is_signed;                /* samples of 8, 16 or 32 bits are integers with a sign */
    int tile;                      /* rows and columns of a tile, a multiple of 16; 0: strips */
    enum rfx_tiff_packing packing; /* compression of tiles */
    const struct rfx_georeference *geo; /* borrowed while the file is opened; NULL: none */
    enum rfx_overview_kind overviews;   /* overviews of a tiled picture */
    bool planes; /* tiles only: each channel has a directory of its own. rfx_overviews stores the
                    whole picture in a file until the last row has come. */
    bool ome; /* for Bio-Formats: overviews are SubIFDs of their picture, and floats are compressed
                 without predictor, because it does not know the predictor for floats */
    bool cog; /* tiles only: at the end the file is rewritten as a cloud optimized GeoTIFF. Until
                 then a second file of that size exists. */
    const char *description; /* description of the first directory; borrowed while the file is
                                opened; NULL: none */
};

struct rfx_tiff_writer;

/* Opens a picture. Three channels are marked as RGB, other numbers as grey with unspecified further
 * channels. Reserves disk space for the whole picture if it is not compressed. INVALID_ARGUMENT:
 * other bits or tiles, a side outside 1 ... 2^31 - 1, channels outside 1 ... 65,535, strips with
 * compression, planes or COG, or a COG into an output that is no regular file; UNSUPPORTED: this
 * libtiff lacks the compression; IO: the file cannot be made. */
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

/* Returns an upper bound of the memory of the writer and libtiff, including a row of tiles. */
size_t rfx_tiff_write_bytes(const struct rfx_tiff_picture *picture);

/* Returns whether the file becomes a BigTIFF: if the uncompressed samples could exceed 4 GiB. With
 * compression too, because the compressed size is known too late. */
bool rfx_tiff_write_is_big(const struct rfx_tiff_picture *picture);
#endif
