/* The kinds of files to which outputs are written, and what each kind can hold. */
#ifndef RFX_RFEXEC_OUTPUT_OUTPUT_FORMAT_H
#define RFX_RFEXEC_OUTPUT_OUTPUT_FORMAT_H

#include "layers/graph/graph.h"
#include "rfexec/output/answer_options.h"
#include "rfexec/output/npy_write.h"
#include "rfexec/output/samples.h"
#include "rfexec/output/tiff_write.h"

struct rfx_output_format;
struct rfx_box;
struct rfx_oriented_box;

/* What a file of answers has. Pointers live as long as the writer. */
struct rfx_found {
    const char *what; /* "regions", "points", "summary", "boxes" or "text"; NULL: the file has the
                         output itself */
    int64_t count;
    const char *unit;            /* what is counted, of "summary"; NULL: what `what` says */
    const char *head;            /* of boxes: description of the detector's head */
    const struct rfx_box *boxes; /* of boxes: all of them, by falling score (boxes.h) */
    const struct rfx_oriented_box *oriented; /* instead of `boxes`, of boxes with an angle */
    const char *names; /* of boxes: names of classes as rfx_names_read makes them; NULL: none */
    int64_t n_names;
    int64_t areas, empty_areas; /* of "summary": areas, and those that hold no pixel */
};

/* The options of the command line that a kind of file supports. */
enum {
    RFX_OUTPUT_TAKES_TILES = 1, /* tiles and their compression */
    RFX_OUTPUT_TAKES_COG = 2,
    RFX_OUTPUT_TAKES_OVERVIEWS = 4,
    RFX_OUTPUT_TAKES_NAMES = 8, /* names of channels */
    RFX_OUTPUT_TAKES_CHUNKS = 16,
    RFX_OUTPUT_TAKES_ANSWERS = 32,  /* thresholds and classes: the file has what was found in the
                                       map, not the map */
    RFX_OUTPUT_TAKES_DISTANCE = 64, /* of points */
    RFX_OUTPUT_TAKES_AREAS = 128,   /* areas, bins and quantiles of summaries */
    RFX_OUTPUT_TAKES_GROWTH = 256   /* of text */
};

/* A kind of file: its names, what it can hold, and how its rows are written. To add a kind, write a
 * file with such a struct and add its name to RFX_OUTPUT_KINDS. */
struct rfx_output_kind {
    const char *name;    /* for messages: "PNG" */
    const char *ends[2]; /* endings of file names, in upper or lower case; [1] may be NULL */
    unsigned samples;    /* bit t: the file can hold elements of enum rfx_type t. Usual samples:
                            FLOAT32 if it is there, else UINT8. */
    int most_channels;   /* 0: only 1 or 3 channels */
    int64_t most_side;   /* largest number of rows or columns */
    unsigned takes;
    size_t shared_bytes;  /* part of bytes() that counts once for all TIFFs that are read and
                             written: libtiff */
    bool folder;          /* the output is a folder */
    bool placed;          /* the file can be georeferenced */
    bool black_and_white; /* booleans are written as 0 and the largest sample, not as 0 and 1 */
    /* Further checks of a format. NULL: none besides the limits above. */
    enum rfx_status (*check)(const struct rfx_output_format *format, const char *path,
                             struct rfx_error *err);
    /* Returns the memory of the writer and its libraries. */
    size_t (*bytes)(const struct rfx_output_format *format, const struct rfx_tensor *map);
    /* Opens the file under a temporary name; commit gives it its name. */
    enum rfx_status (*open)(struct rfx_memory *mem, const char *path,
                            const struct rfx_output_format *format, const struct rfx_tensor *map,
                            void **writer, struct rfx_error *err);
    /* Writes the next row from the top: samples [w, channels]. NULL: .npy, which takes rectangles
     * of maps in any order, and tensors that are no maps (npy_write.h). */
    enum rfx_status (*write_row)(void *writer, const void *samples, struct rfx_error *err);
    enum rfx_status (*commit)(void *writer, struct rfx_error *err);
    void (*free)(void *writer); /* NULL is fine */
    /* Takes a piece of an output that is no map (output_sink.h), in any order. NULL: the kind takes
     * maps only, but .npy. */
    enum rfx_status (*take)(void *writer, const struct rfx_end *end, struct rfx_rect rect,
                            const struct rfx_view *view, struct rfx_error *err);
    /* Checks that the file can hold what is found in the output. NULL: any map of the sizes above.
     */
    enum rfx_status (*check_map)(const struct rfx_output_format *format,
                                 const struct rfx_tensor *map, const char *path,
                                 struct rfx_error *err);
    /* Says what was found and written. NULL: the file has the output itself. */
    struct rfx_found (*found)(const void *writer);
};

/* Sample types of most kinds: unsigned integers of 8 and 16 bits, signed integers of 8, 16 and 32
 * bits, float32. */
#define RFX_OUTPUT_ALL_SAMPLES                                                                   \
    (1U << RFX_TYPE_UINT8 | 1U << RFX_TYPE_UINT16 | 1U << RFX_TYPE_INT8 | 1U << RFX_TYPE_INT16 | \
     1U << RFX_TYPE_INT32 | 1U << RFX_TYPE_FLOAT32)

/* All kinds, each with the build option that it needs; 1: every build has it. */
/* clang-format off */
#define RFX_OUTPUT_KINDS(X)                                                             \
    X(npy, 1)                                                                           \
    X(tiff, RFX_WITH_TIFF) X(ome_tiff, RFX_WITH_TIFF) X(png, RFX_WITH_PNG)              \
    X(zarr, RFX_WITH_ZARR) X(ome_zarr, RFX_WITH_ZARR) X(pfm, 1)                         \
    X(geojson, RFX_WITH_ANSWERS) X(csv, RFX_WITH_ANSWERS) X(json, RFX_WITH_ANSWERS)     \
    X(coco, RFX_WITH_ANSWERS)                                                           \
    X(boxes_geojson, RFX_WITH_ANSWERS) X(boxes_csv, RFX_WITH_ANSWERS)                   \
    X(points_geojson, RFX_WITH_ANSWERS) X(points_csv, RFX_WITH_ANSWERS)                 \
    X(summary_json, RFX_WITH_ANSWERS) X(summary_csv, RFX_WITH_ANSWERS)                  \
    X(text_json, RFX_WITH_ANSWERS) X(text_csv, RFX_WITH_ANSWERS)                        \
    X(text_geojson, RFX_WITH_ANSWERS)
/* clang-format on */
#define RFX_OUTPUT_DECLARE(kind, option) extern const struct rfx_output_kind rfx_output_##kind;
RFX_OUTPUT_KINDS(RFX_OUTPUT_DECLARE)

struct rfx_output_format {
    const struct rfx_output_kind *kind;
    /* 32: float32. 8 or 16: unsigned samples, scaled. The kind must have such samples. 0: integers
     * and booleans keep their values; other outputs get 32 or, in a PNG, 8. */
    int bits;
    bool has_range;
    struct rfx_value_range range; /* used with 8 and 16 bits; without has_range: the map's smallest
                                     and largest value */
    /* .npy only: an existing file into which the stream writes some elements of maps, and which it
     * does not rename. NULL: the stream makes a file of its own. */
    const struct rfx_npy_target *onto;
    struct rfx_stored stored; /* how the output is declared (rfx_output_declare); zero: a float32
                                 map or tensor as it is */
    int64_t images; /* .npy only: number of tensors of a batch, one after the other; 0: one */
    /* TIFF only: */
    int tile;                           /* rows and columns of tiles; 0: strips */
    enum rfx_tiff_packing packing;      /* compression of tiles */
    const struct rfx_georeference *geo; /* borrowed while the stream is opened; NULL: none */
    enum rfx_overview_kind overviews;   /* overviews of a tiled TIFF or an OME-Zarr */
    bool cog;                           /* tiled TIFF in the layout of a cloud optimized GeoTIFF */
    const char *channel_names; /* OME-TIFF: path of a file with a channel name a line; borrowed;
                                  NULL: none */
    /* Zarr only: */
    int zarr_format; /* 2 or 3; 0 means 3 */
    int64_t chunk;   /* rows and columns of chunks; 0: rfx_zarr_choose_chunks */
    bool zstd;       /* chunks are compressed */
    /* Answers only: */
    struct rfx_answer_options answer;
    struct rfx_answer_cells cells; /* rfx_output_declare sets it */
    /* Set by rfx_output_declare_prototypes: pieces of that output must be passed to the file too.
     */
    struct rfx_answer_prototypes prototypes;
    struct rfx_answer_place place;
};

/* Returns the kind of file for a name: the kind with the longest ending that the name has, in upper
 * or lower case; .npy for "-"; NULL: no known ending. */
const struct rfx_output_kind *rfx_output_kind_of(const char *path);

/* Returns the build option that is OFF in this build and would add the kind of this file name, such
 * as RFX_OUTPUT_OPTION "TIFF". NULL: no such option. */
#define RFX_OUTPUT_OPTION "RFX_WITH_"
const char *rfx_output_option_of(const char *path);

/* Returns where the ending begins in a name: a known ending, else the last dot. NULL: the name has
 * no dot. */
const char *rfx_output_end(const char *path);

/* Writes all endings to `text`, for messages: ".npy, .ome.tif, ... or .pfm". Returns `text`. */
#define RFX_OUTPUT_ENDS 288
const char *rfx_output_ends(char text[RFX_OUTPUT_ENDS]);

/* Sets tiles of 256 x 256 pixels if compression or overviews of a TIFF need tiles and no tile size
 * is set. */
void rfx_output_format_settle(struct rfx_output_format *format);

/* Sets format->stored and format->cells to how output k of the graph is declared and computed. */
void rfx_output_declare(struct rfx_output_format *format, const struct rfx_graph *graph, int k);

/* Sets format->prototypes to the first output besides k that can have the prototypes of masks: a
 * map of floats with a pixel for each 4 x 4 pixels of the network's input or, of a padded image, of
 * the image. Call it after rfx_output_declare. */
void rfx_output_declare_prototypes(struct rfx_output_format *format, const struct rfx_graph *graph,
                                   int k);

/* Returns the type of the file's elements. .npy: the output's type. Other kinds: UINT8 or UINT16 if
 * values are scaled to 8 or 16 bits. Else FLOAT32, or the smallest type of the kind that holds
 * integers of the output's type: INT64 becomes UINT8 or UINT16 if the largest declared value fits,
 * else INT32; BOOL becomes UINT8. */
enum rfx_type rfx_output_sample(const struct rfx_output_format *format);

/* Returns whether values are scaled from a range to all 8 or 16 bits of the samples. */
bool rfx_output_is_scaled(const struct rfx_output_format *format);

/* Return the bits of a sample, and whether it is a signed integer. */
int rfx_output_bits(const struct rfx_output_format *format);
bool rfx_output_is_signed(const struct rfx_output_format *format);

/* Checks that a file of this format can hold the tensor. INVALID_ARGUMENT, with the reason: it
 * cannot. */
RFX_NODISCARD enum rfx_status rfx_output_format_check(const struct rfx_output_format *format,
                                                      const struct rfx_tensor *tensor,
                                                      const char *path, struct rfx_error *err);
#endif
