/* Kinds of files that outputs are written to, and what each can hold. */
#ifndef RFX_RFEXEC_OUTPUT_OUTPUT_FORMAT_H
#define RFX_RFEXEC_OUTPUT_OUTPUT_FORMAT_H

#include "layers/graph/graph.h"
#include "rfexec/output/npy_write.h"
#include "rfexec/output/samples.h"
#include "rfexec/output/tiff_write.h"

struct rfx_output_format;

/* What options of the command line a kind of file obeys. */
enum {
    RFX_OUTPUT_TAKES_TILES = 1, /* tiles and their compression */
    RFX_OUTPUT_TAKES_COG = 2,
    RFX_OUTPUT_TAKES_OVERVIEWS = 4,
    RFX_OUTPUT_TAKES_NAMES = 8, /* of channels */
    RFX_OUTPUT_TAKES_CHUNKS = 16
};

/* A kind of file, in one row: its names, what it can hold, and how its rows are written. To add
 * one, write its file with such a row and put its name into RFX_OUTPUT_KINDS. */
struct rfx_output_kind {
    const char *name;    /* for messages: "PNG" */
    const char *ends[2]; /* of the names of such files, in any case; [1] may be NULL */
    unsigned samples; /* bit t: elements of enum rfx_type t. FLOAT32 is the usual one, else UINT8 */
    int most_channels; /* 0: 1 or 3 */
    int64_t most_side; /* rows and columns */
    unsigned takes;
    size_t shared_bytes;  /* of bytes(): libtiff, once for all TIFFs that are read and written */
    bool folder;          /* it is one */
    bool placed;          /* it says where in the world its pixels lie */
    bool black_and_white; /* booleans are 0 and the largest sample, not 0 and 1 */
    /* NULL: nothing is refused beside what is said above. */
    enum rfx_status (*check)(const struct rfx_output_format *format, const char *path,
                             struct rfx_error *err);
    /* Bytes that the writer holds, and libraries for it. */
    size_t (*bytes)(const struct rfx_output_format *format, const struct rfx_tensor *map);
    /* Opens the file, which gets its name by commit. */
    enum rfx_status (*open)(struct rfx_memory *mem, const char *path,
                            const struct rfx_output_format *format, const struct rfx_tensor *map,
                            void **writer, struct rfx_error *err);
    /* The next row from the top: samples [w, channels]. NULL: .npy, which takes rectangles of maps
     * in any order, and tensors that are no maps (npy_write.h). */
    enum rfx_status (*write_row)(void *writer, const void *samples, struct rfx_error *err);
    enum rfx_status (*commit)(void *writer, struct rfx_error *err);
    void (*free)(void *writer); /* NULL is fine */
};

/* Unsigned integers of 8 and 16 bits, signed ones of 8, 16 and 32, floats. */
#define RFX_OUTPUT_ALL_SAMPLES                                                                   \
    (1U << RFX_TYPE_UINT8 | 1U << RFX_TYPE_UINT16 | 1U << RFX_TYPE_INT8 | 1U << RFX_TYPE_INT16 | \
     1U << RFX_TYPE_INT32 | 1U << RFX_TYPE_FLOAT32)

/* Each with the option without which a build has no such files; 1: all builds have them. */
#define RFX_OUTPUT_KINDS(X)                                                                       \
    X(npy, 1)                                                                                     \
    X(tiff, RFX_WITH_TIFF) X(ome_tiff, RFX_WITH_TIFF) X(png, RFX_WITH_PNG) X(zarr, RFX_WITH_ZARR) \
        X(ome_zarr, RFX_WITH_ZARR) X(pfm, 1)
#define RFX_OUTPUT_DECLARE(kind, option) extern const struct rfx_output_kind rfx_output_##kind;
RFX_OUTPUT_KINDS(RFX_OUTPUT_DECLARE)

struct rfx_output_format {
    const struct rfx_output_kind *kind;
    /* 32: float32; 8, 16: unsigned, scaled; each where the kind has such samples; 0: of an output
     * of integers or booleans its values as they are, else 32 or, for PNG, 8. */
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

/* The kind that a file's name asks for by its longest known end, in any case; .npy for "-"; NULL:
 * none. */
const struct rfx_output_kind *rfx_output_kind_of(const char *path);

/* Of a name with no known end: the option, such as RFX_OUTPUT_OPTION "TIFF", that is OFF in this
 * build and without which such files are not written; NULL: none. */
#define RFX_OUTPUT_OPTION "RFX_WITH_"
const char *rfx_output_option_of(const char *path);

/* Where such an end begins in a name, or, of another name, at the last dot; NULL: there is none. */
const char *rfx_output_end(const char *path);

/* All ends, for messages: ".npy, .ome.tif, ... or .pfm". */
#define RFX_OUTPUT_ENDS 160
const char *rfx_output_ends(char text[RFX_OUTPUT_ENDS]);

/* Tiles of 256 rows and columns where compression or overviews of a TIFF need some and none are
 * asked for. */
void rfx_output_format_settle(struct rfx_output_format *format);

/* Says that the file is for output k of the graph. */
void rfx_output_declare(struct rfx_output_format *format, const struct rfx_graph *graph, int k);

/* What the elements of the file are. Of .npy the output's type. Of others UINT8 or UINT16 where
 * values are scaled to 8 or 16 bits, else FLOAT32 or the smallest type that such files have for
 * integers of the output's type: INT64 is UINT8 or UINT16 where no value is above their largest,
 * else INT32; BOOL is UINT8. */
enum rfx_type rfx_output_sample(const struct rfx_output_format *format);

/* Whether values are scaled from a range to all of the samples' 8 or 16 bits. */
bool rfx_output_is_scaled(const struct rfx_output_format *format);

/* Bits of a sample, and whether it is an integer with a sign. */
int rfx_output_bits(const struct rfx_output_format *format);
bool rfx_output_is_signed(const struct rfx_output_format *format);

/* Whether such a file can hold the tensor: INVALID_ARGUMENT in words. */
RFX_NODISCARD enum rfx_status rfx_output_format_check(const struct rfx_output_format *format,
                                                      const struct rfx_tensor *tensor,
                                                      const char *path, struct rfx_error *err);
#endif
