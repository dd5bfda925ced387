/* Kinds of files that outputs are written to, and what each can hold. */
#ifndef RFX_RFEXEC_OUTPUT_OUTPUT_FORMAT_H
#define RFX_RFEXEC_OUTPUT_OUTPUT_FORMAT_H

#include "layers/graph/graph.h"
#include "rfexec/output/npy_write.h"
#include "rfexec/output/samples.h"
#include "rfexec/output/tiff_write.h"

enum rfx_output_kind {
    RFX_OUTPUT_NPY,
    RFX_OUTPUT_TIFF,
    RFX_OUTPUT_OME_TIFF, /* tiles, with the OME-XML, overviews below what they are made of */
    RFX_OUTPUT_PNG,
    RFX_OUTPUT_ZARR,     /* a folder: one array */
    RFX_OUTPUT_OME_ZARR, /* a folder: a group with OME-Zarr's words, the array in it */
    RFX_OUTPUT_KIND_COUNT
};

struct rfx_output_format {
    enum rfx_output_kind kind;
    /* 32: float (all but PNG); 8, 16: unsigned, scaled (all but npy); 0: of an output of integers
     * or booleans its values as they are, else 32 or, for PNG, 8. */
    int bits;
    bool has_range;
    struct rfx_value_range range; /* with 8 and 16 bits; not given: the map's extremes */
    /* Of .npy: somebody else's file of which the stream writes some elements of maps, and which
     * gets no name by it; NULL: a file of its own. */
    const struct rfx_npy_target *onto;
    struct rfx_stored stored; /* how the output is declared: rfx_output_declare; zero: a float32 map
                                 or tensor as it is */
    int64_t images;           /* of .npy: a batch of so many tensors, one after the other; 0: one */
    /* Of TIFF: */
    int tile;                           /* rows and columns of tiles; 0: strips */
    enum rfx_tiff_packing packing;      /* of tiles */
    const struct rfx_georeference *geo; /* borrowed while the stream is opened; NULL: none */
    enum rfx_overview_kind overviews;   /* of tiles; also of OME-Zarr */
    bool cog;                  /* of TIFF tiles: in the order of a cloud optimized GeoTIFF */
    const char *channel_names; /* of OME-TIFF: a file with a line for each; borrowed; NULL: none */
    /* Of Zarr: */
    int zarr_format; /* 2, or 3: also 0 */
    int64_t chunk;   /* rows and columns of chunks; 0: rfx_zarr_choose_chunks */
    bool zstd;       /* chunks are compressed */
};

/* The kind that a file's name asks for: .npy, .tif, .tiff, .ome.tif, .ome.tiff, .png, .zarr,
 * .ome.zarr, in any case, and .npy for "-"; false: none. */
bool rfx_output_kind_of(const char *path, enum rfx_output_kind *kind);

/* Where such an end begins in a name: at the last dot, or at .ome before it; NULL: there is none.
 */
const char *rfx_output_end(const char *path);

bool rfx_output_is_zarr(enum rfx_output_kind kind);
bool rfx_output_is_tiff(enum rfx_output_kind kind);

/* Says that the file is for output k of the graph. */
void rfx_output_declare(struct rfx_output_format *format, const struct rfx_graph *graph, int k);

/* What the elements of the file are. Of .npy the output's type. Of others UINT8 or UINT16 where
 * values are scaled to 8 or 16 bits, else FLOAT32 or the smallest type that such files have for
 * integers of the output's type: INT64 is UINT8 or UINT16 where no value is above their largest,
 * else INT32; BOOL is UINT8. PNG has UINT8 and UINT16 only. */
enum rfx_type rfx_output_sample(const struct rfx_output_format *format);

/* Whether values are scaled from a range to all of the samples' 8 or 16 bits. */
bool rfx_output_is_scaled(const struct rfx_output_format *format);

/* Bits of a sample, and whether it is an integer with a sign. */
int rfx_output_bits(const struct rfx_output_format *format);
bool rfx_output_is_signed(const struct rfx_output_format *format);

/* For messages: "PNG". */
const char *rfx_output_kind_name(enum rfx_output_kind kind);

/* Whether such a file can hold the tensor: INVALID_ARGUMENT in words. PNG: maps of 1 or 3 channels
 * and at most 1,000,000 rows and columns; TIFF: maps of at most 65,535 channels, Zarr too,
 * OME-TIFF 4,096 and
 * not by zstd, whose frames Bio-Formats wants with their sizes; .npy: everything. */
RFX_NODISCARD enum rfx_status rfx_output_format_check(const struct rfx_output_format *format,
                                                      const struct rfx_tensor *tensor,
                                                      const char *path, struct rfx_error *err);
#endif
