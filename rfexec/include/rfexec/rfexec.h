/* rfexec: runs convolutional networks on images of any size inside a fixed number of bytes and
 * returns exactly the bits of the whole-image run.
 *
 * This header is the whole C interface and includes no other header of rfexec. A program opens a
 * network for one image size. It may ask how much memory and how many operations a run would take.
 * It then runs the network on a picture file or on pixels in its own memory:
 *
 *     struct rfx_why why;
 *     struct rfx_network *net = NULL;
 *     struct rfx_open_options open;
 *     struct rfx_run_options run;
 *     rfx_open_options_init(&open, sizeof open);
 *     rfx_run_options_init(&run, sizeof run);
 *     run.memory_bytes = 64 << 20;
 *     enum rfx_code code = rfx_picture_size("scan.tif", &open.rows, &open.columns, NULL, &why);
 *     if (code == RFX_CODE_OK) code = rfx_network_open("net.onnx", &open, &net, &why);
 *     float *map = code == RFX_CODE_OK
 *                      ? malloc((size_t)rfx_network_output_elements(net, 0) * sizeof *map) : NULL;
 *     if (map != NULL) code = rfx_network_run_file(net, "scan.tif", &map, 1, &run, &why);
 *     if (code != RFX_CODE_OK) fprintf(stderr, "%s\n", why.text);
 *     rfx_network_free(net);
 *
 * Numbers: values are float32. Names say whether a size is in bytes or in pixels. Rows come before
 * columns. Maps are in ONNX order, 1 x channels x rows x columns, row-major without gaps. Other
 * tensors are row-major.
 *
 * Bits: for one build of the library on one processor, the outputs depend only on the network, the
 * image, the convolution arithmetic (rfx_convolution) and that of 8-bit networks (rfx_int8). They
 * do not depend on memory_bytes or threads. Every NaN in an output has the bits 0x7fc00000.
 *
 * Errors: a function that can fail returns an rfx_code; RFX_CODE_OK is 0. It writes its results
 * only on success. `why` may be NULL. After a success why->text is empty. A NULL pointer where a
 * call needs an object is USAGE. Functions that do not return a code return NULL, 0 or -1 then, or
 * do nothing. Callbacks must return normally: a C++ exception or a longjmp must not leave them.
 *
 * Floating point: the library computes, and calls callbacks, in the default floating-point
 * environment (round to nearest, subnormal numbers kept, no traps). It restores the caller's
 * environment before a call returns.
 *
 * Threads: functions on different networks may run at the same time in different threads. A network
 * may be used in any thread, but only in one at a time. Models and their plans may be used by any
 * number of threads at a time. There is nothing to initialise. The library prints nothing and never
 * ends the process. docs/host_process.md lists the other effects on the process.
 *
 * Fork: the child process may use networks that no other thread was using at the fork. If the
 * forking thread has run networks with several threads before, the child must run with one thread,
 * or in a new thread that it starts for the run. Reason: the threads of the OpenMP runtime stay in
 * the parent, and the forked thread would wait for them.
 *
 * Growth: structs that programs fill begin with their size, and new members are added at the end.
 * While RFX_VERSION_MAJOR and RFX_VERSION_MINOR stay the same, no member and no function is
 * removed. */
#ifndef RFX_RFEXEC_H
#define RFX_RFEXEC_H

#include <stddef.h>
#include <stdint.h>

/* Version of this header; rfx_version returns the version of the library. */
#define RFX_VERSION_MAJOR 0
#define RFX_VERSION_MINOR 2
#define RFX_VERSION_PATCH 0
#define RFX_VERSION "0.2.0"

#if defined(__GNUC__)
#define RFX_API __attribute__((visibility("default")))
#define RFX_MUST_CHECK __attribute__((warn_unused_result))
#else
#define RFX_API
#define RFX_MUST_CHECK
#endif

#define RFX_MAX_DIMS 8 /* highest number of dimensions of a tensor */

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the library's version, such as "0.2.0". The text is never freed. */
RFX_API const char *rfx_version(void);

/* Result of a call. The rfexec program exits with the same numbers, with two exceptions: it exits
 * with 1 if `verify` found a difference, and with 5 if a run was cancelled. */
enum rfx_code {
    RFX_CODE_OK = 0,
    RFX_CODE_USAGE = 2, /* a mistake of the caller: an argument or option is out of its range */
    /* the model or picture cannot be read, is broken, or is not supported */
    RFX_CODE_REFUSED = 3,
    /* no plan fits in memory_bytes; the text names the smallest budget that works */
    RFX_CODE_BUDGET = 4,
    /* out of memory or threads, a read or write failed, or a bug in rfexec */
    RFX_CODE_SYSTEM = 5,
    /* the caller's progress, observe or stop function asked to end the call */
    RFX_CODE_CANCELLED = 6,
};

/* The reason of a failure in one line of English, with names and numbers. The text is UTF-8 and
 * safe to print: unprintable bytes of a model's names appear as \xNN. */
struct rfx_why {
    char text[512];
};

/* ---- networks ---------------------------------------------------------------------------- */

/* A network loaded for one image size. It holds the graph. The weights stay in the model's file, or
 * in the caller's bytes, and must not change while the network exists. */
struct rfx_network;

/* Selects the code that computes convolutions. It determines the order of the sums, and so the
 * rounding. With each choice the outputs do not depend on memory_bytes or threads; between two
 * choices the bits differ. */
enum rfx_convolution {
    /* rfexec's own kernels; on a processor without fused multiply-add, the same as OPENBLAS */
    RFX_CONVOLUTION_DIRECT = 0,
    /* matrix products by OpenBLAS with its kernels for this processor; each thread reserves 128
     * MiB of address space, of which only the part in use is resident */
    RFX_CONVOLUTION_OPENBLAS = 1,
    /* Winograd for 3x3 layers of stride 1, the same as DIRECT for other layers; fewer
     * multiplications, but one to three times the rounding error of DIRECT and up to four times
     * its memory for weights */
    RFX_CONVOLUTION_WINOGRAD = 2,
};

/* Selects the arithmetic of 8-bit networks: of QuantizeLinear, QLinearConv and their kin. It has no
 * effect on other networks. With each choice the outputs are the same on every machine. */
enum rfx_int8 {
    /* the bytes of ONNX Runtime's integer kernels on x86-64; DequantizeLinear, operator,
     * QuantizeLinear are joined to one operator on integers */
    RFX_INT8_ONNXRUNTIME = 0,
    /* as the ONNX standard writes it: DequantizeLinear, the float32 operator and QuantizeLinear,
     * each by itself; slower */
    RFX_INT8_STANDARD = 1,
};

/* Values of the pixels that pad an image to the multiple that its network takes (pad_to). */
enum rfx_padding {
    /* the image's last rows and columns, reflected; the border itself is not repeated */
    RFX_PADDING_REFLECT = 0,
    /* the image's last row and column, repeated */
    RFX_PADDING_EDGE = 1,
    /* zeros, after mean and std were applied */
    RFX_PADDING_ZERO = 2,
};

struct rfx_open_options {
    size_t size;                      /* sizeof(struct rfx_open_options): set by init */
    int64_t rows, columns;            /* image size; both 0: the model's (built-in networks: 224) */
    uint64_t seed;                    /* seed for the weights of built-in networks */
    enum rfx_convolution convolution; /* the code that computes convolutions */
    /* The caller's allocator. The network, its runners and its runs use it for all their memory
     * until the network is freed. `allocate` returns a block aligned as by malloc, or NULL if there
     * is no memory. `release` receives the block and the number of bytes that was allocated.
     * Several threads of a run may call both at a time. Give both or neither (NULL: malloc and
     * free). These parts keep their own allocators: libtiff, OpenBLAS, the OpenMP runtime, the C
     * library, rfx_picture_size and the stacks of threads. */
    void *(*allocate)(void *user, size_t bytes);
    void (*release)(void *user, void *block, size_t bytes);
    void *memory_user;
    /* For a network that only takes sizes that are multiples of a number: that number, up to
     * 65,536. An image of another size is padded at its right and bottom to the next multiple. An
     * output that is a map is cut to the part that belongs to the image; its size is rounded up. 0:
     * no padding. */
    int64_t pad_to;
    enum rfx_padding padding; /* values of the padding */
    enum rfx_int8 int8;       /* the arithmetic of 8-bit networks */
    /* Not 0: an output of uint8 or int8 whose scale is known from the model is float32: (element -
     * zero point) * scale. 0: outputs have the model's types. */
    int dequantize;
    /* Not 0: if the outputs are those of a detector's head that has several (YuNet, the RFB face
     * detector, CenterNet; docs/answers.md), the network has one more, the last, that joins them.
     * Files of boxes (rfx_result_file) are about that output. Other networks stay as they are. */
    int join_heads;
    /* Path of a head file (docs/answers.md), which describes a detector's head. The outputs that
     * the file names are replaced by one that joins them, the last output. The file is read when a
     * network is opened or a plan of a model is made. NULL: none. */
    const char *head_file;
    /* Not 0: the model may end in nodes whose sizes depend on data, such as NonMaxSuppression, and
     * what follows them (docs/answers.md). They run after the plan. Outputs then have dimensions
     * that are not known before a run. They have no arrays: they go to rfx_run_options.write or to
     * files, .npy or those of boxes. With join_heads, a detector's boxes, scores and labels, or the
     * results of EfficientNMS_TRT, are joined to one more output, the last, of 1 x N x 6, which
     * files of boxes take; they also take the only output of this form. Memory besides the plan is
     * counted in rfx_forecast.picture_bytes: the tensors that these nodes take, and
     * rfx_result_file.answer_bytes, the most that they may use; with a budget and 0: 8 MiB and
     * twice the size of these tensors. 0: such models are REFUSED. */
    int late_nodes;
};

/* Sets every member to its default. `size`: sizeof *options. */
RFX_API void rfx_open_options_init(struct rfx_open_options *options, size_t size);

/* Opens a network for one image size. `model` is a built-in name ("mobilenet_v2",
 * "mobilenet_v2:0.5"; `rfexec models` lists all) or the path of an .onnx file. options NULL: the
 * defaults. Free *out with rfx_network_free. USAGE: negative sizes, only one of rows and columns 0,
 * an unknown convolution, padding or int8, or options without init. REFUSED: the model does not
 * exist, is broken, has an operator that is not supported, or does not fit this size; the text
 * names node and reason. SYSTEM. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_open(const char *model,
                                                      const struct rfx_open_options *options,
                                                      struct rfx_network **out,
                                                      struct rfx_why *why);

/* Opens a network from the bytes of an .onnx file in the caller's memory; else like
 * rfx_network_open. The bytes are not copied: they must stay there, unchanged, until
 * rfx_network_free. They belong to the caller, but memory_bytes of runs counts them as part of the
 * reserve, because the bytes of a model file would stay on the disk. REFUSED also: the model has
 * external data (weights in files of their own), because a model in memory has no folder. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_open_memory(const void *bytes, size_t n_bytes,
                                                             const struct rfx_open_options *options,
                                                             struct rfx_network **out,
                                                             struct rfx_why *why);

/* Frees a network; NULL is fine. Its parts and runners keep what they need of the network. They may
 * be freed before or after the network, in any order and in any thread. */
RFX_API void rfx_network_free(struct rfx_network *network);

/* Returns the shape of the input: sets dims to 1, channels, rows, columns. */
RFX_API void rfx_network_input_shape(const struct rfx_network *network, int64_t dims[4]);

/* Returns the input's name in the model, printable as in struct rfx_why. Valid as long as the
 * network. */
RFX_API const char *rfx_network_input_name(const struct rfx_network *network);

/* Returns the number of outputs, at least 1. Outputs are numbered from 0, in the model's order. */
RFX_API int rfx_network_output_count(const struct rfx_network *network);

/* Returns the name of output k in the model, printable as in struct rfx_why, or NULL if there is no
 * output k. Valid as long as the network. */
RFX_API const char *rfx_network_output_name(const struct rfx_network *network, int k);

/* Sets dims to the shape of output k in ONNX order and returns the number of dimensions, or -1 if
 * there is no output k. With late_nodes a dimension may be -1: it depends on the data of a run. A
 * shape that the model does not declare is one such dimension. */
RFX_API int rfx_network_output_shape(const struct rfx_network *network, int k,
                                     int64_t dims[RFX_MAX_DIMS]);

/* Returns the element type that the model declares for output k, by numpy's name: "float32",
 * "uint8", "int8", "uint16", "int16", "int32", "int64" or "bool"; NULL if there is no output k.
 * Runs return floats for every type: integers as whole numbers, booleans as 0 and 1. With
 * rfx_run_options.typed_outputs runs return elements of the declared type. */
RFX_API const char *rfx_network_output_type(const struct rfx_network *network, int k);

/* Describes output k as a map: sets *area to its rows, columns and channels, and to the steps, in
 * elements, between neighbours in the declared shape. options->write receives parts of this map.
 * Returns 1. Returns 0 and leaves *area alone if the output is not a map, or if there is no output
 * k. */
struct rfx_area;
RFX_API int rfx_network_output_map(const struct rfx_network *network, int k, struct rfx_area *area);

/* Returns the number of elements of output k. Returns -1 if there is no output k, and for an output
 * of late nodes (late_nodes): it has no array, even where the model declares its size. */
RFX_API int64_t rfx_network_output_elements(const struct rfx_network *network, int k);

/* ---- analysis ---------------------------------------------------------------------------- */

/* A layer of a network: one or more operators of the model that are computed as one. Pairs are rows
 * and columns. */
struct rfx_layer_report {
    const char *name; /* name in the model, printable; valid as long as the network */
    const char *op; /* operator, mostly by its ONNX name, such as "Conv"; in the network of a part,
                       "Inner" is a layer that the part does not need; valid like name */
    int n_dims;     /* dimensions of the layer's output in ONNX order */
    int global;     /* not 0: each value depends on the whole image; fields and jump are 0 */
    int64_t dims[RFX_MAX_DIMS];
    int64_t field[2];         /* receptive field of one value, in pixels of the image */
    int64_t field_padding[2]; /* distance, in pixels, by which the first value's receptive field
                                 begins before the image */
    double jump[2]; /* effective stride: pixels from one value's receptive field to the next;
                       negative: mirrored */
    uint64_t macs;  /* multiply-accumulates of a run on whole maps */
    uint64_t parameters;
    uint64_t output_bytes;
    uint64_t live_bytes; /* memory of all maps that exist while this layer runs on whole maps */
};

/* Returns the number of layers. */
RFX_API int rfx_network_layer_count(const struct rfx_network *network);

/* Describes the layers in the order in which they are computed, so inputs come before their
 * readers. `layers` is an array of rfx_network_layer_count elements; layer_bytes is sizeof *layers.
 * USAGE: layer_bytes is too small. SYSTEM. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_layers(const struct rfx_network *network,
                                                        struct rfx_layer_report *layers,
                                                        size_t layer_bytes, struct rfx_why *why);

/* ---- pictures ---------------------------------------------------------------------------- */

/* Sets *rows, *columns and *channels to the size of a picture as a run would read it. `picture` is
 * a PNG, JPEG, TIFF, BigTIFF, WebP, JPEG 2000 or .npy file, any other file that stb_image reads,
 * "bands:FILE,FILE,..." (files of one size, each with some of the bands), or
 * "synthetic:ROWSxCOLUMNS[:SEED]". The command line takes the same names. Reads the headers only.
 * channels may be NULL. REFUSED: the file cannot be opened or is no picture. SYSTEM. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_picture_size(const char *picture, int64_t *rows,
                                                      int64_t *columns, int64_t *channels,
                                                      struct rfx_why *why);

/* A picture that was given as bytes instead of a file. Any kind is possible that is recognised by
 * its content (all but slides and Zarr). The bytes are copied to a temporary file without a name in
 * `folder` (NULL: the folder TMPDIR, or /var/tmp). Nothing of the file stays, however the process
 * ends. */
struct rfx_picture;

/* Makes a picture from the bytes of a picture file in memory, which it copies. Free *out with
 * rfx_picture_free. USAGE: bytes is NULL. SYSTEM: no free space, or no such folder. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_picture_from_bytes(const void *bytes, size_t n_bytes,
                                                            const char *folder,
                                                            struct rfx_picture **out,
                                                            struct rfx_why *why);

/* Makes a picture from a stream. Each call of `read` writes up to `most` bytes to `to` and returns
 * their number; 0 is the end of the stream. If `read` returns a negative number, the function fails
 * with SYSTEM. Free *out with rfx_picture_free. USAGE and SYSTEM else as rfx_picture_from_bytes. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_picture_from_stream(
    int64_t (*read)(void *user, void *to, int64_t most), void *user, const char *folder,
    struct rfx_picture **out, struct rfx_why *why);

/* Returns a name to pass to any call that takes a picture. Valid until the picture is freed. */
RFX_API const char *rfx_picture_name(const struct rfx_picture *picture);

/* Frees a picture; NULL is fine. No call may be using it. */
RFX_API void rfx_picture_free(struct rfx_picture *picture);

/* ---- runs -------------------------------------------------------------------------------- */

/* A rectangle of an image or of a map: rows [row, row + rows), columns [column, column + columns),
 * all channels. It also describes where the values lie: the value of row r, column c and channel k,
 * counted from the rectangle's first row and column, is values[r * row_step + c * column_step + k *
 * channel_step]. */
struct rfx_area {
    int64_t row, column;
    int64_t rows, columns, channels;
    int64_t row_step, column_step, channel_step; /* steps in floats */
};

/* Kind of work that a step of a run did. */
enum rfx_step_work {
    RFX_STEP_WORK_READ = 0, /* read a rectangle of the image from its source */
    /* computed a rectangle of the layer's map */
    RFX_STEP_WORK_COMPUTE = 1,
    /* added a rectangle of the layer's input map to the layer's sums, or, with no pixels, set
     * the sums to 0 */
    RFX_STEP_WORK_SUM = 2,
    /* copied a rectangle that was just computed to where later steps read it */
    RFX_STEP_WORK_KEEP = 3,
    /* passed a rectangle to the output's array or to rfx_run_options.write */
    RFX_STEP_WORK_WRITE = 4,
    /* wrote a rectangle to a file in spill_folder */
    RFX_STEP_WORK_SPILL = 5,
    /* read a rectangle from a file in spill_folder */
    RFX_STEP_WORK_FETCH = 6,
    RFX_STEP_WORK_PACK = 7, /* packed the layer's weights for the stage; has no pixels */
};

/* Describes a step of a run that has just been done, for rfx_run_options.observe. */
struct rfx_step_report {
    size_t size; /* bytes of this struct that the library has set; later versions add members at the
                    end */
    int stage, n_stages; /* number of the stage, from 0, and number of stages; rfx_network_stages
                            and rfx_runner_stages describe them */
    enum rfx_step_work work;
    int layer; /* number of the layer, as in rfx_network_layers; if one step computes several layers
                  piece by piece, the last of them */
    const char *name; /* name of the layer; valid as long as the network */
    /* Number of the output of which the rectangle has just become final, or -1. With an output's
     * number the rectangle is counted in that output's rows and columns (for an output that is
     * joined from several maps: in those of the layer's map). With -1 it is counted in the layer's
     * whole map. The final rectangles of an output cover each of its pixels once, with one
     * exception: they overlap if a stage stores the output in tiles or strips and also reads it. If
     * the network lists one tensor twice as an output, this is the first number. */
    int output;
    int64_t step;        /* number of the step, from 1 */
    int64_t done, total; /* values passed to progress before the step */
    /* The rectangle. A tensor that is not a map counts as one row and column with its elements as
     * channels. The rectangles of a layer cover the part of its map that is needed; tiles and
     * strips overlap. */
    int64_t row, column, rows, columns, channels;
    uint64_t planned_bytes; /* the plan's peak: rfx_forecast.peak_bytes */
    uint64_t held_bytes;    /* bytes that the network, its runners and this run have allocated now,
                               with the system's own share */
    double seconds;         /* seconds since the first step began, after planning and packing */
};

/* A file or folder to which an output is written during the run. Its bytes are those that `rfexec
 * run -o` writes. It appears under its name when the run has succeeded. After a failure no new file
 * appears, and an existing file is unchanged. Writing it needs no memory for a whole map. */
struct rfx_result_file {
    size_t size; /* sizeof(struct rfx_result_file): set by init */
    int output;  /* number of the output, from 0 */
    int bits;    /* bits of a sample: 8 or 16, 32 for floats; 0: as usual for this kind of file */
    /* Selects the kind: .npy, .tif, .ome.tif, .png, .pfm, .zarr, .ome.zarr. Files of these kinds
     * have what is found in the output, not the output: .geojson and .csv, the connected regions of
     * a map, or the boxes of a detector, whose output is no map; .json, .coco.json, .boxes.geojson
     * and .boxes.csv, boxes; .points.geojson and .points.csv, the peaks of a map; .summary.json and
     * .summary.csv, the pixels, areas and values of a map's classes; .text.json, .text.csv and
     * .text.geojson, boxes of text in a DB network's map. Boxes of `head` "yolov8-seg" have masks
     * (docs/answers.md). Masks are made of another output, the prototypes, which need no array and
     * no file. They wait in a file without a name beside `path`, 4 bytes for each value. */
    const char *path;
    /* With 8 and 16 bits: the values that become the smallest and the largest sample. If both are
     * equal, the smallest and the largest value of the map are used. */
    float low, high;
    const char *compression; /* TIFF: "deflate" or "zstd"; Zarr: "zstd"; NULL: not compressed */
    const char *overviews; /* smaller copies for viewers in TIFF and .ome.zarr: "mean", or "nearest"
                              for maps of labels; NULL: none */
    const char *channel_names; /* .ome.tif: text file with a channel name a line; NULL: none */
    int tile; /* TIFF: rows and columns of a tile, a multiple of 16; 0: strips, or 256 where tiles
                 are needed */
    int cog;  /* TIFF: not 0 writes the layout of a cloud optimized GeoTIFF */
    int zarr_format; /* 2 or 3; 0: 3 */
    int64_t chunk; /* Zarr: rows and columns of a chunk; 0: 256, or fewer rows and more columns for
                      wide maps */
    /* Regions and summaries. With thresholds, one for all channels or one for each, a channel is
     * the class of the pixels whose value is above its threshold. Without, the class of a pixel is
     * its largest channel, or its value if the map has one channel of integers. Points need
     * thresholds, which they are above. */
    const float *thresholds;
    int n_thresholds;
    int corners;           /* not 0: pixels that touch at corners are connected too */
    int all_labels;        /* not 0: label 0, or channel 0 of several, is no background */
    int pixels;            /* not 0: coordinates are in pixels of the picture, also if it has a
                              coordinate system */
    int64_t least_area;    /* regions of fewer pixels of the map are left out */
    const char *classes;   /* text file with a name of a class a line, label 0 first; NULL: none */
    uint64_t answer_bytes; /* memory for regions that are not complete, or for late_nodes; 0: no
                              limit, or with a budget 8 MiB (late_nodes: see there) */
    /* Boxes. A candidate's class is that of its largest score. */
    const char *head;   /* form of the detector's output, such as "yolov8" (docs/answers.md); NULL:
                           the one that the shape fits, or that of rfx_open_options.head_file */
    float score;        /* boxes with scores up to it are left out, and boxes of text with scores
                           below it; init sets 0.25, which stands for 0.6 for text */
    int agnostic;       /* not 0: boxes of different classes suppress each other too */
    double overlap;     /* of two boxes whose intersection is a larger share of their union, the one
                           of the lower score is dropped; init sets 0.45 */
    int64_t most_boxes; /* candidates that are held at most; 0: 100,000 */
    int64_t distance;   /* points: a peak is the largest value of 2 distance + 1 rows and columns
                           around it, and the first of equal ones; 0: 1 */
    /* Summaries. */
    const char *within; /* GeoJSON file of polygons in which pixels are counted once more; NULL:
                           none */
    int64_t bins;       /* bins of a histogram of the values, up to 65,536; 0: none */
    double bins_low, bins_high; /* ends of the histogram */
    double simplify; /* regions in .geojson: polygons have fewer points, at most so many pixels of
                        the map from the exact ones, up to 0.7; 0: they are exact */
    int soft_nms;    /* boxes, not 0: overlaps lower scores by a Gaussian of sigma 0.5, in place of
                        dropping boxes; `overlap` is not used */
    int64_t class_count; /* boxes: classes of the head, if further channels are behind them; 0: all
                            channels are classes, but 1 with "yolov8-pose", and with "yolov8-seg"
                            all but 32 */
    const double *quantiles; /* summaries: exact quantiles of each channel, and with `within` of
                                each polygon too: rising numbers from 0 to 1, at most 16. The values
                                wait in a file without a name beside `path`, 4 bytes for each; NULL:
                                none */
    int n_quantiles;
};

/* Sets every member to its default. `size`: sizeof *file. */
RFX_API void rfx_result_file_init(struct rfx_result_file *file, size_t size);

struct rfx_run_options {
    size_t size; /* sizeof(struct rfx_run_options): set by init */
    /* Memory budget of the run, in bytes. It covers everything that the run allocates, and a
     * reserve for the code of libraries and for stacks in a process that does nothing else. The
     * caller's own memory, including the arrays for input and outputs, is not covered. 0: no limit;
     * the network then runs on whole maps, layer by layer. */
    size_t memory_bytes;
    /* Called between the steps of a run, in the calling thread, with `done` of `total`. `total`
     * stays the same during a run, `done` never falls, and both are equal at the end. A result
     * other than 0 cancels the run. The function must not use the network. NULL: none. */
    int (*progress)(void *user, int64_t done, int64_t total);
    void *user;
    int threads; /* at most 1024; 0: the number of processors that the process may use */
    /* How samples of picture files become values: (sample * scale - mean[c]) / std[c]. 8-bit
     * samples are 0 to 255. 16-bit samples are divided by 257, so that they have the same range;
     * with `raw` not 0 they are used as stored. The caller's samples (rfx_source.samples) become
     * values in the same way. .npy files, float TIFF files and the caller's float values are used
     * unchanged: none of these members applies to them. */
    int bgr; /* not 0: channels in the order blue, green, red, and mean and std in that order */
    int raw;
    float scale; /* 1/255 by default; `raw` with scale 1 uses samples as they are */
    /* One number for all channels, or one for each channel of the network. n_mean and n_std are the
     * numbers of elements, at most 512; any other number is USAGE. The arrays must not change
     * during the call. NULL and 0: ImageNet's mean and std for networks of 3 channels and their
     * first elements for networks of 1 channel; mean 0 and std 1 for other networks and with `raw`.
     */
    const float *mean, *std;
    int n_mean, n_std;
    /* Used without memory_bytes: rows times columns of the largest picture that is decoded whole,
     * because its format cannot be read in parts. A larger picture is REFUSED. 0: 100 million. */
    int64_t max_pixels;
    /* Returns whether the call is to end: a result other than 0 ends it. Called often, with `user`,
     * while the call plans, packs weights and runs, and from several of its threads at a time. So
     * the function must be quick and thread-safe (reading an atomic flag is) and must not use the
     * network. Once it has returned a result other than 0 it must go on to do so until the call
     * returns. NULL: none. */
    int (*stop)(void *user);
    /* Receives, with `user`, the outputs whose outputs[k] is NULL. Each part is passed as soon as
     * it is done, so no map has to fit in memory as a whole. Called in the calling thread. `values`
     * is read-only and valid during the call. Each element is passed once.
     *
     * A map is passed in rectangles with all channels of a pixel together: mostly whole rows from
     * top to bottom, strips or tiles if the plan has them. An output of three dimensions (1, rows,
     * columns) is passed as a map of one channel. The outputs of a detector are passed in
     * rectangles in any order. An output with any other number of dimensions, or of more than one
     * image, is passed as one pixel whose channels are its elements, row-major.
     *
     * An output whose size depends on data (late_nodes) is passed at the end, as a whole: one of
     * two dimensions as one pixel with all elements. One without elements is passed too.
     *
     * A result other than 0 ends the run with SYSTEM. The function must not use the network. If it
     * is given, `outputs` may be NULL with n_outputs 0: all outputs are then passed here. NULL: an
     * output that has neither an array nor a file is not wanted. */
    int (*write)(void *user, int output, const struct rfx_area *part, const float *values);
    /* Used with memory_bytes: a folder for large maps that are needed again later. They are stored
     * in temporary files without names, of which nothing stays however the process ends. If the
     * folder is in memory (tmpfs), the files take memory too. The run fails with SYSTEM if the disk
     * is full. The text must not change during the call (for a runner: until the runner is freed).
     * NULL: no such files. */
    const char *spill_folder;
    /* Which part of a picture file is read. These members have the same meaning in every call that
     * takes a picture. */
    int64_t page; /* page of a TIFF or level of a slide, numbered as in `rfexec info`. With 0, grey
                     pages of one size that are channels are read as bands; `channels` then counts
                     them. */
    /* Bands of a TIFF or .npy file that are read: n_channels numbers from 1, in the order of the
     * network's channels. A band may be named several times. bgr must then be 0. The array must not
     * change during the call. NULL and 0: all bands but alpha. */
    const int *channels;
    int n_channels; /* number of elements of channels, at most 512 */
    int as_stored;  /* not 0: the orientation in EXIF data or the TIFF tag is not applied */
    /* Called with `user` after each step, in the calling thread, while the other threads wait. A
     * run has thousands of steps, large plans more. Each call costs about 0.1 microseconds besides
     * the function's own time. A result other than 0 cancels the run. *step is valid during the
     * call. The function must not use the network. It does not influence the outputs' bits. NULL:
     * no calls; steps are then neither counted nor timed. */
    int (*observe)(void *user, const struct rfx_step_report *step);
    /* A rectangle of the picture, which is read as if it were the whole picture: rows [region_row,
     * region_row + region_rows), columns [region_column, region_column + region_columns). It is
     * counted in the picture as it is seen, or with as_stored as it is stored. Both numbers of rows
     * and columns 0: the whole picture. */
    int64_t region_row, region_column, region_rows, region_columns;
    /* Files to write outputs to, at most one for each output: n_files elements, files[0].size bytes
     * apart. An output that has a file and whose outputs[k] is NULL is not passed to `write`. If
     * there are files, `outputs` may be NULL with n_outputs 0. The array and its texts must not
     * change during the call. If the picture is a GeoTIFF that is named by its path, TIFF files are
     * georeferenced too. SYSTEM: a file cannot be made or written. USAGE: a kind of file cannot
     * hold its output. */
    const struct rfx_result_file *files;
    int n_files;
    /* Path of a plan file that rfx_model_plan_save or `rfexec plan -o` wrote for this network and
     * size. The call uses this plan instead of planning. `threads` other than 0 overrides the
     * number in the file. REFUSED or USAGE: the file cannot be read, or is no plan of this network.
     * NULL: the library plans. */
    const char *plan_file;
    /* Not 0: outputs[k], cast to float *, points to elements of the type that
     * rfx_network_output_type returns (a bool is a byte of 0 or 1), in the same number and order as
     * the floats. Labels in uint8 thus take a quarter of the memory. Values become integers as in
     * files: truncated towards zero and clamped to the type's range; NaN becomes 0. `write` still
     * receives floats. 0: outputs[k] receives floats for every type. */
    int typed_outputs;
    /* Path of a mask: a picture file of any size, grey or in colour, that is laid over an output.
     * An output pixel is wanted if any pixel of the mask over it is not 0. The run computes only a
     * few rectangles that contain the wanted pixels, and reads only the part of the image that they
     * need. Each rectangle is planned within memory_bytes. Wanted pixels have the bits of the whole
     * run. All other pixels are 0, or the no-data value if the picture is a GeoTIFF that is named
     * by its path. If a layer before the output depends on a whole map (global pool, instance norm,
     * attention), the whole output is computed, and the mask only decides which pixels are passed
     * on.
     *
     * Exactly one output must have an array, a file or `write`, and it must be a map. `write`
     * receives each pixel once, in rectangles in any order. `progress` counts the pixels of the
     * rectangles; it is not called if the mask is empty.
     *
     * Only rfx_network_run_file, rfx_network_run_values and rfx_network_run_source on a whole
     * network take a mask. A mask is USAGE in calls of runners, plans, parts, rounds and forecasts,
     * with `observe` or plan_file, and with a file of 8 or 16 bits without low and high. REFUSED:
     * the mask cannot be read, or the output is no map. BUDGET: the mask or one of the rectangles
     * does not fit in memory_bytes; nothing has been computed then. NULL: no mask. */
    const char *mask;
};

/* Sets every member to its default. `size`: sizeof *options. */
RFX_API void rfx_run_options_init(struct rfx_run_options *options, size_t size);

/* Like rfx_picture_size, for a run with these options: their page, bands, region and orientation
 * apply. options NULL: the defaults. USAGE also: options without init, or a member out of range. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_picture_size_with(const char *picture,
                                                           const struct rfx_run_options *options,
                                                           int64_t *rows, int64_t *columns,
                                                           int64_t *channels, struct rfx_why *why);

/* Memory and operations of a run. */
struct rfx_forecast {
    size_t size;       /* sizeof(struct rfx_forecast): set by the caller */
    size_t peak_bytes; /* sum of the next five members: the smallest memory_bytes for this plan */
    size_t activation_bytes; /* feature maps and other data of the run's arena */
    size_t weight_bytes;     /* packed weights of the run */
    size_t scratch_bytes;
    size_t picture_bytes;   /* memory of the picture's decoder; 0 for the caller's own values */
    size_t reserve_bytes;   /* see memory_bytes; includes the bytes of a model in memory */
    uint64_t macs;          /* multiply-accumulates of the run */
    uint64_t macs_whole;    /* the same for a run on whole maps, which computes nothing twice */
    char plan[400];         /* the plan in words */
    uint64_t spilled_bytes; /* most bytes that files in spill_folder hold at a time */
};

/* Plans a run and describes its memory and operations in *forecast: the run of rfx_network_run_file
 * on `picture`, or with picture NULL that of rfx_network_run_values. options NULL: the defaults.
 * Allocates no feature maps and computes no layer. Planning a large network with a budget can take
 * seconds. USAGE: options or forecast without their size, or a member out of range. REFUSED: the
 * picture cannot be read, or its size is not the network's. SYSTEM. CANCELLED by options->stop.
 * BUDGET: no plan fits; *forecast then describes the run with the smallest peak memory. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_predict(struct rfx_network *network,
                                                         const char *picture,
                                                         const struct rfx_run_options *options,
                                                         struct rfx_forecast *forecast,
                                                         struct rfx_why *why);

/* A stage of a run. It computes some layers and stores the maps that later stages need. */
struct rfx_stage_report {
    const char *mode;         /* "whole", "tiled", "streamed": as in plan files */
    const char *first, *last; /* the first and the last layer that the stage computes; valid as long
                                 as the network */
    int64_t tiles[2];         /* number of tiles: rows of tiles, columns of tiles */
    int64_t band_rows;        /* in mode "streamed": rows of the image per step; else 0 */
    uint64_t macs;        /* multiply-accumulates; their sum over all stages is rfx_forecast.macs */
    uint64_t arena_bytes; /* the part of activation_bytes that holds data during this stage */
    uint64_t spilled_bytes; /* bytes that the stage writes to files */
};

/* Plans again as rfx_network_predict does, and describes the stages of the plan in the order in
 * which they run. *count receives the number of stages. `stages` is NULL, or an array of `most`
 * elements of stage_bytes (sizeof *stages) each, which receives all stages. Fails like
 * rfx_network_predict. USAGE also: stage_bytes or most is too small. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_stages(
    struct rfx_network *network, const char *picture, const struct rfx_run_options *options,
    struct rfx_stage_report *stages, size_t stage_bytes, int most, int *count, struct rfx_why *why);

/* Runs the network on a picture (see rfx_picture_size). The picture is read in parts, never as a
 * whole if its format allows that.
 *
 * Orientation: unless options->as_stored is set, EXIF data and the TIFF orientation tag are
 * applied. A rotated or mirrored picture, an interlaced PNG and a progressive JPEG are first
 * decoded to a temporary file without a name, in spill_folder, TMPDIR or /var/tmp. Size and
 * channels: the picture must have the network's rows and columns. A TIFF must have as many bands as
 * the network has channels, not counting bands that the file calls alpha; or options->channels must
 * name that many. A grey picture becomes three equal channels for a network of three channels. A
 * colour picture becomes luma for a network of one channel.
 *
 * outputs[k] receives output k: rfx_network_output_elements values in the caller's memory, which
 * must not overlap any other argument. NULL: output k is not wanted, or goes to options->write or a
 * file. n_outputs must be rfx_network_output_count. After a failure the arrays hold anything.
 * options NULL: the defaults. Each call plans and packs the weights again, and frees all its memory
 * at the end.
 *
 * USAGE, REFUSED, SYSTEM and BUDGET as rfx_network_predict. REFUSED also: the picture is truncated.
 * CANCELLED by options->progress, observe or stop. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_run_file(struct rfx_network *network,
                                                          const char *picture,
                                                          float *const *outputs, int n_outputs,
                                                          const struct rfx_run_options *options,
                                                          struct rfx_why *why);

/* Like rfx_network_run_file, but runs on the caller's values: float32, 1 x channels x rows x
 * columns as in rfx_network_input_shape. They are only read, and used without mean and std.
 * `values` may be NULL if rfx_network_input_area has no rows. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_run_values(struct rfx_network *network,
                                                            const float *values,
                                                            float *const *outputs, int n_outputs,
                                                            const struct rfx_run_options *options,
                                                            struct rfx_why *why);

/* An image that is neither in a file nor in one array in ONNX order. Set one of `values` (with the
 * steps), `read` (with user and concurrent) and `samples` (with sample_bits and the steps); set the
 * other members to 0. */
struct rfx_source {
    size_t size; /* sizeof(struct rfx_source): set by the caller */
    /* A read-only array: the value of row y, column x and channel c of the image is values[y *
     * row_step + x * column_step + c * channel_step]. Steps are in floats and may be any numbers,
     * also negative. All three 0: 1 x channels x rows x columns without gaps. */
    const float *values;
    int64_t row_step, column_step, channel_step;
    /* Writes all values of a part of the image to `values`. It is called for any rectangle, in any
     * order. Some rectangles are read several times (where strips or tiles overlap, or the plan
     * reads the image twice), and each time the values must be the same. Called in the calling
     * thread; if `concurrent` is not 0, in any of the run's threads, several at a time. A result
     * other than 0 ends the run with SYSTEM. The function must not use the network. Memory that it
     * allocates is not counted in memory_bytes. */
    int (*read)(void *user, const struct rfx_area *part, float *values);
    void *user;
    int concurrent;
    /* A read-only array of unsigned samples in place of `values`; sample_bits is 8 or 16. The steps
     * are in samples. The samples become values with bgr, raw, scale, mean and std of the run's
     * options, as those of a picture file do. NULL and 0: no samples. */
    const void *samples;
    int sample_bits;
};

/* Like rfx_network_run_values, but runs on a source. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_run_source(struct rfx_network *network,
                                                            const struct rfx_source *source,
                                                            float *const *outputs, int n_outputs,
                                                            const struct rfx_run_options *options,
                                                            struct rfx_why *why);

/* ---- parts of an output ------------------------------------------------------------------- */

/* Opens a network that computes one rectangle of output k and nothing else. `part` gives the
 * rectangle's row, column, rows and columns; its other members are not read. The new network has
 * one output, number 0, of the rectangle's shape. Parts that options->write receives are counted
 * from the rectangle's first row and column.
 *
 * The new network takes the same image, but its runs read only the rectangle that
 * rfx_network_input_area returns. Every element has the same bits as in a run of the whole network.
 * So runs of parts, also in other processes or on other machines, put side by side equal one run.
 * If a layer before the output depends on a whole map (global pool, instance norm, attention), a
 * part computes everything before that layer. Rounds of states (below) share that work between
 * parts.
 *
 * The new network shares the graph of `network`. The two together may be used by one thread at a
 * time, and may be freed in any order. Free *out with rfx_network_free. USAGE: no output k, output
 * k is no map, or the rectangle is empty or not inside the output. SYSTEM. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_open_part(struct rfx_network *network, int k,
                                                           const struct rfx_area *part,
                                                           struct rfx_network **out,
                                                           struct rfx_why *why);

/* Sets *area to the rectangle of the image that runs of the network read: the whole image, or for a
 * part the pixels that it needs. Sets row, column, rows, columns and channels; the steps become 0.
 */
RFX_API void rfx_network_input_area(const struct rfx_network *network, struct rfx_area *area);

/* ---- rounds of states --------------------------------------------------------------------- */

/* A layer after a global operation (a global pool, an instance norm) depends on all layers and
 * pixels before that operation. Shards share that work in rounds. In each round every shard adds
 * its rows of the image to the states of the next global operations. Merging the states of all
 * shards gives the states for the next round. After the last round parts of the output can be
 * computed:
 *
 *     rfx_network_rounds(net, k, &rounds, &why)
 *     for each round 1 .. rounds:
 *         for each shard 1 .. count, in any process:
 *             rfx_round_open(net, k, round, shard, count, &r, &why)
 *             rfx_round_run_file(r, merged, n_merged, "scan.tif", &options, &states, &why)
 *         merged = rfx_network_merge_states of the states of all shards
 *     for each part, in any process:
 *         rfx_network_open_part_after(net, k, &area, merged, n_merged, &part, &why)
 *
 * States are bytes without pointers. They can be stored in files and databases and sent in
 * messages. Sums are exact: any number of shards, merged in any order and in any groups, gives the
 * bits of one run. The bytes contain the identity of the network, the image size, the output, the
 * round, the shards, and checksums of the image rows that were read. Only the same version of the
 * library can read them. */

/* Bytes that the library has written, in memory of a network. The network may be freed before them.
 * Until rfx_bytes_free they may only be used by the thread that uses the network. */
struct rfx_bytes;

/* Returns the address of the bytes, valid until rfx_bytes_free. Returns NULL for NULL. */
RFX_API const void *rfx_bytes_data(const struct rfx_bytes *bytes);

/* Returns the number of bytes. Returns 0 for NULL. */
RFX_API size_t rfx_bytes_size(const struct rfx_bytes *bytes);

/* Frees bytes; NULL is fine. */
RFX_API void rfx_bytes_free(struct rfx_bytes *bytes);

/* Sets *rounds to the number of rounds that output k needs before its parts. 0: no round is needed,
 * and parts of rfx_network_open_part repeat no global operation. USAGE: no output k, or the network
 * is a part. REFUSED: a layer depends on a whole map and has no state that can be merged
 * (attention). */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_rounds(struct rfx_network *network, int k,
                                                        int *rounds, struct rfx_why *why);

/* The work of one shard in one round. It may only be used by the thread that uses its network.
 * Round and network may be freed in any order. */
struct rfx_round;

/* Opens the work of shard `shard` of `count` in round `number` of output k. Shards and rounds are
 * counted from 1. A shard takes some rows of each map that a global operation of the round reads.
 * If there are more shards than rows, some shards have nothing to do. Free *out with
 * rfx_round_free. USAGE: no such round or shard, or as rfx_network_rounds. REFUSED as
 * rfx_network_rounds. SYSTEM. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_round_open(struct rfx_network *network, int k, int number,
                                                    int64_t shard, int64_t count,
                                                    struct rfx_round **out, struct rfx_why *why);

/* Frees a round; NULL is fine. */
RFX_API void rfx_round_free(struct rfx_round *round);

/* Sets *area to the rectangle of the image that runs of the round read, as rfx_network_input_area
 * does. No rows: the runs read nothing. */
RFX_API void rfx_round_input_area(const struct rfx_round *round, struct rfx_area *area);

/* Computes the states of the shard on a picture file, which is read as by rfx_network_run_file.
 * states, n_bytes: the merged states of the round before; NULL and 0 in the first round. Options as
 * in rfx_network_run_file, except: `write` and `spill_folder` are not used, reports for `observe`
 * contain no outputs, and `files`, `plan_file` and `mask` must be empty. memory_bytes includes the
 * states. Free *out with rfx_bytes_free. USAGE: states are missing, or were given in the first
 * round. REFUSED: the states are of another network, output or round, or of some shards only, or
 * their bytes were changed; or a row of the image differs from the row that an earlier round has
 * read. BUDGET, SYSTEM, CANCELLED and others as rfx_network_run_file. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_round_run_file(struct rfx_round *round, const void *states,
                                                        size_t n_bytes, const char *picture,
                                                        const struct rfx_run_options *options,
                                                        struct rfx_bytes **out,
                                                        struct rfx_why *why);

/* Like rfx_round_run_file, but runs on a source as in rfx_network_run_source. source may be NULL if
 * the round reads no pixels. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_round_run_source(
    struct rfx_round *round, const void *states, size_t n_bytes, const struct rfx_source *source,
    const struct rfx_run_options *options, struct rfx_bytes **out, struct rfx_why *why);

/* Merges the states of n shards of one round, or of groups of shards that were merged before.
 * states[i] has n_bytes[i] bytes. The result does not depend on the order or the groups. Once the
 * states of all shards are merged, the next round takes the result. Free *out with rfx_bytes_free.
 * USAGE: n below 1. REFUSED: states of another network, of different outputs, rounds or numbers of
 * shards; a shard that is there twice; shards that have read different values of one image row; or
 * changed bytes. SYSTEM. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_merge_states(struct rfx_network *network,
                                                              const void *const *states,
                                                              const size_t *n_bytes, int n,
                                                              struct rfx_bytes **out,
                                                              struct rfx_why *why);

/* Opens a part like rfx_network_open_part, using the merged states of the last round. The states
 * are not needed after the call; they are NULL and 0 if the output needs no round. `part` NULL: the
 * whole output, which then may be a tensor that is no map. Runs must be on the same image; this is
 * not checked. A network that reads no pixels, such as the classes after a global pool, may be run
 * with values NULL. Fails like rfx_network_open_part and rfx_round_run_file. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_open_part_after(struct rfx_network *network, int k,
                                                                 const struct rfx_area *part,
                                                                 const void *states, size_t n_bytes,
                                                                 struct rfx_network **out,
                                                                 struct rfx_why *why);

/* Sets *area to the rectangle of the image that a network of rfx_network_open_part_after reads. It
 * can be called before any round has run. Fails like rfx_network_open_part and rfx_network_rounds.
 */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_part_area_after(struct rfx_network *network, int k,
                                                                 const struct rfx_area *part,
                                                                 struct rfx_area *area,
                                                                 struct rfx_why *why);

/* ---- runners ----------------------------------------------------------------------------- */

/* The memory of one run at a time: feature maps and workspace. The runner of a network also holds
 * its plan and packed weights. A runner runs any number of times. It may be used in any thread, but
 * only in one at a time. Runners of one network share the network's memory: only one of them may be
 * used at a time. Runners of a plan (rfx_model_plan_runner) share only constant data: all of them
 * may run at once. The network, or the plan and its model, may be freed before their runners. */
struct rfx_runner;

/* Makes a runner of a network: plans with the options (memory_bytes, threads) and packs the
 * weights. If the options name files, the plan reserves memory for writing them. options NULL: the
 * defaults. progress, observe and write are not called. Free *out with rfx_runner_free. Fails like
 * rfx_network_run_values. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_runner_create(struct rfx_network *network,
                                                       const struct rfx_run_options *options,
                                                       struct rfx_runner **out,
                                                       struct rfx_why *why);

/* Frees a runner; NULL is fine. */
RFX_API void rfx_runner_free(struct rfx_runner *runner);

/* Sets *forecast to the memory and operations of the runner's runs. Most of the memory stays
 * allocated between two runs. USAGE: forecast without its size. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_runner_forecast(const struct rfx_runner *runner,
                                                         struct rfx_forecast *forecast,
                                                         struct rfx_why *why);

/* Describes the stages of the runner's plan, like rfx_network_stages. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_runner_stages(const struct rfx_runner *runner,
                                                       struct rfx_stage_report *stages,
                                                       size_t stage_bytes, int most, int *count,
                                                       struct rfx_why *why);

/* Runs once more, like rfx_network_run_source. memory_bytes, threads, spill_folder and plan_file
 * are not read, because the plan has fixed them. After any failure the runner can run again. BUDGET
 * also: source and files need more memory than the plan reserved. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_runner_run(struct rfx_runner *runner,
                                                    const struct rfx_source *source,
                                                    float *const *outputs, int n_outputs,
                                                    const struct rfx_run_options *options,
                                                    struct rfx_why *why);

/* Runs once more, like rfx_runner_run, but reads a picture file like rfx_network_run_file. Also
 * returns BUDGET if the picture's decoder needs more memory than the plan reserved. A plan made
 * with a picture reserves what that picture's decoder needs. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_runner_run_file(struct rfx_runner *runner,
                                                         const char *picture, float *const *outputs,
                                                         int n_outputs,
                                                         const struct rfx_run_options *options,
                                                         struct rfx_why *why);

/* ---- models and plans -------------------------------------------------------------------- */

/* For programs that use several image sizes, or run one model in several threads:
 *
 *     model  --rfx_model_plan_create-->  plan  --rfx_model_plan_runner-->  runner
 *
 * A model is opened once and has no size. A plan is a model at one size under one budget, with the
 * packed weights. A runner is the memory of one run. Models and plans never change: any number of
 * threads may use them at a time. Each object keeps the others that it needs, so the three may be
 * freed in any order. */

/* A model: the open files of an .onnx model, the caller's bytes, or a built-in name, with all open
 * options except the size. */
struct rfx_model;

/* Opens a model, like rfx_network_open. Reads the file and checks its structure. rows and columns
 * of the options become the size of plans that name no size. Free *out with rfx_model_free. Fails
 * like rfx_network_open; failures that depend on the size appear when a plan is made. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_model_open(const char *model,
                                                    const struct rfx_open_options *options,
                                                    struct rfx_model **out, struct rfx_why *why);

/* Opens a model from the bytes of an .onnx file in the caller's memory. The bytes must stay there,
 * unchanged, until the model, its plans and its runners are freed. Else like rfx_model_open and
 * rfx_network_open_memory. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_model_open_memory(const void *bytes, size_t n_bytes,
                                                           const struct rfx_open_options *options,
                                                           struct rfx_model **out,
                                                           struct rfx_why *why);

/* Frees a model; NULL is fine. May be called in any thread. */
RFX_API void rfx_model_free(struct rfx_model *model);

/* A model at one size, with its plan and packed weights. */
struct rfx_model_plan;

/* Makes a plan of the model. May be called in any thread, several at a time.
 *
 * rows, columns: the size of images. Both 0: the size of `picture`, or without a picture the
 * model's own.
 *
 * picture: a picture (see rfx_picture_size) for whose decoder the plan reserves memory, or NULL if
 * runs are on sources only.
 *
 * options: memory_bytes, threads, spill_folder, plan_file, stop, and how the picture is read; NULL:
 * the defaults.
 *
 * Packs the weights that stay in memory, once for all runs of the plan. memory_bytes is the budget
 * of a process with this model, this plan and one runner. Every further runner takes
 * activation_bytes, scratch_bytes and picture_bytes of the forecast once more. Free *out with
 * rfx_model_plan_free. Fails like rfx_network_open and rfx_network_predict. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_model_plan_create(struct rfx_model *model, int64_t rows,
                                                           int64_t columns, const char *picture,
                                                           const struct rfx_run_options *options,
                                                           struct rfx_model_plan **out,
                                                           struct rfx_why *why);

/* Frees a plan; NULL is fine. May be called in any thread. */
RFX_API void rfx_model_plan_free(struct rfx_model_plan *plan);

/* Returns the model as a network at the plan's size, for functions that take a const network and
 * describe it. Valid as long as the plan. */
RFX_API const struct rfx_network *rfx_model_plan_network(const struct rfx_model_plan *plan);

/* Sets *forecast to the memory and operations of a process with this model, this plan and one
 * runner. USAGE: forecast without its size. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_model_plan_forecast(const struct rfx_model_plan *plan,
                                                             struct rfx_forecast *forecast,
                                                             struct rfx_why *why);

/* Describes the stages of the plan, like rfx_network_stages. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_model_plan_stages(const struct rfx_model_plan *plan,
                                                           struct rfx_stage_report *stages,
                                                           size_t stage_bytes, int most, int *count,
                                                           struct rfx_why *why);

/* Writes the plan to the file `path`, for rfx_run_options.plan_file and `rfexec run --plan`. The
 * file appears under its name when it is complete. SYSTEM: it cannot be written. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_model_plan_save(const struct rfx_model_plan *plan,
                                                         const char *path, struct rfx_why *why);

/* Makes a runner of the plan. Free *out with rfx_runner_free. SYSTEM: out of memory or threads. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_model_plan_runner(struct rfx_model_plan *plan,
                                                           struct rfx_runner **out,
                                                           struct rfx_why *why);

#ifdef __cplusplus
}
#endif
#endif
