/* rfexec: runs convolutional networks on images of any size inside a fixed number of bytes and
 * returns exactly the bits of the whole-image run.
 *
 * This is the whole interface, and it needs no other header. A program opens a network for
 * one image size, may ask what a run would take, and runs it on a picture file or on pixels of its
 * own:
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
 * Numbers: float32 values, sizes in bytes or pixels as the names say, rows before columns. Maps are
 * in ONNX order, 1 x channels x rows x columns, row-major without gaps; other tensors row-major.
 * Bits: for one build of the library on one processor, the outputs are a function of network, image
 * and what computes convolutions (rfx_convolution) alone, not of memory_bytes or threads; a NaN
 * always comes as the same one, 0x7fc00000.
 * Errors: functions that can fail return an rfx_code, RFX_CODE_OK being 0, and write their results
 * only then. `why` may be NULL; the text that it receives is empty after a success. NULL for a
 * pointer that a call needs is USAGE; functions without a code return NULL, 0 or -1, or do nothing.
 * Callbacks return normally: a C++ exception or a longjmp must not leave them.
 * Floating point: values are computed in the default environment (round to nearest, subnormal
 * numbers kept, no traps), in which callbacks are called too. The caller's own is set again before
 * a call returns.
 * Threads: functions on different networks may run at the same time in different threads. One
 * network belongs to one thread at a time, whichever; models and their plans belong to all. There
 * is nothing to initialise; the library prints nothing and never ends the process.
 * docs/host_process.md says what else it does to it. Fork: the child may use networks that no other
 * thread was using. Where the thread that forks has run with several threads before, the child must
 * run with one, or in a thread that it starts for it: those of the OpenMP runtime stay in the
 * parent, which this thread would wait for. Growth: structs that programs fill begin with their
 * size, and new members are added behind the last; members and functions are never taken away while
 * RFX_VERSION_MAJOR and RFX_VERSION_MINOR stay the same. */
#ifndef RFX_RFEXEC_H
#define RFX_RFEXEC_H

#include <stddef.h>
#include <stdint.h>

/* Of this header; rfx_version gives the library's. */
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

#define RFX_MAX_DIMS 8 /* of a tensor */

#ifdef __cplusplus
extern "C" {
#endif

/* The library's version, "0.2.0": valid for ever. */
RFX_API const char *rfx_version(void);

/* What came of a call. The rfexec program exits with the same numbers; its 1 is a difference that
 * `verify` found, and for it a cancelled run is a 5. */
enum rfx_code {
    RFX_CODE_OK = 0,
    RFX_CODE_USAGE = 2,     /* the caller's mistake: an argument or option out of its range */
    RFX_CODE_REFUSED = 3,   /* model or picture: cannot be read, is broken, or is not supported */
    RFX_CODE_BUDGET = 4,    /* no way of running fits in memory_bytes; the text has the least */
    RFX_CODE_SYSTEM = 5,    /* no memory or threads, reading failed, or a bug of rfexec's */
    RFX_CODE_CANCELLED = 6, /* the caller's progress, observe or stop function said so */
};

/* The reason of a failure in one line of English, with names and numbers: UTF-8 that is safe to
 * show, whatever a model's names are (bytes that are not printable stand there as \xNN). */
struct rfx_why {
    char text[512];
};

/* ---- networks ---------------------------------------------------------------------------- */

/* A network loaded for one image size. It holds its graph; weights stay in the model's file or
 * bytes, which must not change meanwhile. */
struct rfx_network;

/* Whose arithmetic the convolutions of a network have: the order of their sums, and so their
 * roundings. Each is exact in the sense above; from one to another bits differ. */
enum rfx_convolution {
    RFX_CONVOLUTION_DIRECT = 0,   /* own kernels; on a processor without fused multiply-adds
                                     as OPENBLAS */
    RFX_CONVOLUTION_OPENBLAS = 1, /* matrix products of OpenBLAS: the kernels that it has for the
                                     processor; each thread takes 128 MiB of address space for
                                     them, resident only as far as used */
    RFX_CONVOLUTION_WINOGRAD = 2, /* fewer products in 3x3 layers of stride 1, one to three times
                                     the rounding error of DIRECT and up to four times its weights
                                     in memory; elsewhere as DIRECT */
};

/* What an image is filled up with to a multiple that its network takes. */
enum rfx_padding {
    RFX_PADDING_REFLECT = 0, /* its last rows and columns, reflected without the border itself */
    RFX_PADDING_EDGE = 1,    /* its last row and column, again and again */
    RFX_PADDING_ZERO = 2,    /* zeros, of values as the network takes them (after mean and std) */
};

struct rfx_open_options {
    size_t size;           /* sizeof(struct rfx_open_options): set by init */
    int64_t rows, columns; /* of the image; both 0: as the model says (built-in networks: 224) */
    uint64_t seed;         /* of the weights of built-in networks */
    enum rfx_convolution convolution; /* what computes convolutions */
    /* The caller's memory, for all that the network, its runners and runs allocate, until it is
     * freed: blocks aligned as malloc's, NULL for none left; released with as many bytes. From any
     * of a run's threads, several at a time. Both or neither (NULL: the system's). Libraries keep
     * what is their own: libtiff, OpenBLAS, the OpenMP runtime and the C library; so do
     * rfx_picture_size and the stacks of threads. */
    void *(*allocate)(void *user, size_t bytes);
    void (*release)(void *user, void *block, size_t bytes);
    void *memory_user;
    /* Of a network that takes only sizes that are multiples of a number, up to 65,536: images are
     * filled up to such a size at their right and below; outputs that are maps are cut to the
     * image's part of them, rounded up. 0: images are as they are. */
    int64_t pad_to;
    enum rfx_padding padding; /* with what */
};

/* Sets every member to its default. `size`: sizeof *options. */
RFX_API void rfx_open_options_init(struct rfx_open_options *options, size_t size);

/* Opens `model`, a built-in name ("mobilenet_v2", "mobilenet_v2:0.5"; `rfexec models` lists them)
 * or the path of an .onnx file, for one image size. options NULL: the defaults. *out is to be freed
 * with rfx_network_free. USAGE: negative sizes, only one of them 0, a convolution or padding
 * that there is not, options without init; REFUSED:
 * not there, broken, an operator that is not supported, or not for this size, with node and reason;
 * SYSTEM. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_open(const char *model,
                                                      const struct rfx_open_options *options,
                                                      struct rfx_network **out,
                                                      struct rfx_why *why);

/* As rfx_network_open, of the bytes of an .onnx file in the caller's memory. Nothing is copied:
 * they have to stay there, unchanged, until rfx_network_free. They count in memory_bytes of runs,
 * as part of the reserve, though they are the caller's: the file's own would stay on the disk.
 * REFUSED also: weights in files of their own (external data), which a model in memory cannot name.
 */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_open_memory(const void *bytes, size_t n_bytes,
                                                             const struct rfx_open_options *options,
                                                             struct rfx_network **out,
                                                             struct rfx_why *why);

/* Frees a network; NULL is fine. Its parts and runners keep what they need of it: they may be freed
 * before or after it, in any order, and in any thread. */
RFX_API void rfx_network_free(struct rfx_network *network);

/* Shape of the input: dims receives 1, channels, rows, columns. */
RFX_API void rfx_network_input_shape(const struct rfx_network *network, int64_t dims[4]);

/* The input's name in the model, printable as in struct rfx_why; valid as long as the network. */
RFX_API const char *rfx_network_input_name(const struct rfx_network *network);

/* How many outputs the network has: at least 1. They are numbered from 0, in the model's order. */
RFX_API int rfx_network_output_count(const struct rfx_network *network);

/* Name of output k in the model, made printable likewise, valid as long as the network; NULL when
 * there is no such output. */
RFX_API const char *rfx_network_output_name(const struct rfx_network *network, int k);

/* Shape of output k as ONNX has it: returns how many dimensions dims receives; -1: no output k. */
RFX_API int rfx_network_output_shape(const struct rfx_network *network, int k,
                                     int64_t dims[RFX_MAX_DIMS]);

/* The element type that the model declares for output k, as numpy calls it: "float32", "uint8",
 * "int8", "uint16", "int16", "int32", "int64" or "bool"; NULL: no output k. Runs give the values as
 * floats whatever the type, whole numbers of integers, 0 and 1 of booleans, unless
 * rfx_run_options.typed_outputs asks for elements of the type. */
RFX_API const char *rfx_network_output_type(const struct rfx_network *network, int k);

/* The map that output k is, and where its elements lie in the declared shape: rows, columns and
 * channels, and the steps from one to the next, in elements. It is what options->write gets parts
 * of. Returns 1, or 0 where the output is no map, or there is none; *area is set with 1 only. */
struct rfx_area;
RFX_API int rfx_network_output_map(const struct rfx_network *network, int k, struct rfx_area *area);

/* Elements of output k, the product of its dimensions; -1 when there is no such output. */
RFX_API int64_t rfx_network_output_elements(const struct rfx_network *network, int k);

/* ---- analysis ---------------------------------------------------------------------------- */

/* A layer of a network: what of the model is computed as one. Pairs are rows and columns. */
struct rfx_layer_report {
    const char *name; /* in the model, printable; valid as long as the network, as is op */
    const char *op;   /* "Conv": what it computes, mostly by ONNX's names; of a part's network
                         "Inner": nothing, as the part does not need it */
    int n_dims;       /* of its output, as ONNX has it */
    int global;       /* not 0: its values depend on all of the image; fields and jump are 0 */
    int64_t dims[RFX_MAX_DIMS];
    int64_t field[2];         /* receptive field of one value, in pixels of the image */
    int64_t field_padding[2]; /* how far that of the first one begins before the image */
    double jump[2];           /* pixels from one value's field to the next; negative: mirrored */
    uint64_t macs;            /* multiply-accumulates, on whole maps */
    uint64_t parameters;
    uint64_t output_bytes;
    uint64_t live_bytes; /* maps that are there while it runs on whole maps */
};

/* How many layers the network has. */
RFX_API int rfx_network_layer_count(const struct rfx_network *network);

/* Describes the layers, in the order of their computation, inputs before those that read them:
 * layers has rfx_network_layer_count of them, layer_bytes is sizeof *layers. USAGE: less than a
 * layer's bytes; SYSTEM. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_layers(const struct rfx_network *network,
                                                        struct rfx_layer_report *layers,
                                                        size_t layer_bytes, struct rfx_why *why);

/* ---- pictures ---------------------------------------------------------------------------- */

/* Size of a picture as a run would read it. `picture` is what the command line takes: a PNG, JPEG,
 * TIFF, BigTIFF, WebP, JPEG 2000 or .npy file, whatever stb_image reads, "bands:FILE,FILE,..."
 * (files of one size, each with some of the bands), or "synthetic:ROWSxCOLUMNS[:SEED]". Reads the
 * headers only. channels may be NULL. REFUSED: cannot be opened or is no picture; SYSTEM. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_picture_size(const char *picture, int64_t *rows,
                                                      int64_t *columns, int64_t *channels,
                                                      struct rfx_why *why);

/* A picture that is no file: the bytes of one, of any kind that is recognised by its content (all
 * but slides and Zarr). They are copied to a nameless file in `folder` (NULL: that of TMPDIR, or
 * /var/tmp), of which nothing is left however the process ends. */
struct rfx_picture;

/* Copies a picture file's bytes from memory. USAGE: no bytes; SYSTEM: no room, or no such folder.
 */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_picture_from_bytes(const void *bytes, size_t n_bytes,
                                                            const char *folder,
                                                            struct rfx_picture **out,
                                                            struct rfx_why *why);

/* Copies what `read` gives, which is called until it returns 0, the end: it writes up to `most`
 * bytes to `to` and returns their number. A negative number ends the copying with SYSTEM. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_picture_from_stream(
    int64_t (*read)(void *user, void *to, int64_t most), void *user, const char *folder,
    struct rfx_picture **out, struct rfx_why *why);

/* What stands for the picture wherever a call takes one: valid until it is freed. */
RFX_API const char *rfx_picture_name(const struct rfx_picture *picture);

/* Frees a picture that no call uses; NULL is fine. */
RFX_API void rfx_picture_free(struct rfx_picture *picture);

/* ---- runs -------------------------------------------------------------------------------- */

/* A rectangle of an image or of a map: rows [row, row + rows), columns [column, column + columns),
 * all channels. Its values come with it: that of row r, column c and channel k, counted from the
 * rectangle's first, is values[r * row_step + c * column_step + k * channel_step]. */
struct rfx_area {
    int64_t row, column;
    int64_t rows, columns, channels;
    int64_t row_step, column_step, channel_step; /* in floats */
};

/* What a step of a run did. */
enum rfx_step_work {
    RFX_STEP_WORK_READ = 0,    /* read a rectangle of the image from its source */
    RFX_STEP_WORK_COMPUTE = 1, /* computed one of the layer's map */
    RFX_STEP_WORK_SUM = 2,     /* took one of the map before the layer into the layer's sums; of no
                                  pixels: set these to 0 */
    RFX_STEP_WORK_KEEP = 3,    /* copied one, just computed, to where later steps read it */
    RFX_STEP_WORK_WRITE = 4,   /* handed one to the output's array or to rfx_run_options.write */
    RFX_STEP_WORK_SPILL = 5,   /* wrote one to a file in spill_folder */
    RFX_STEP_WORK_FETCH = 6,   /* read one from there */
    RFX_STEP_WORK_PACK = 7,    /* packed the layer's weights for the stage; of no pixels */
};

/* A step of a run that has just been done, for rfx_run_options.observe. */
struct rfx_step_report {
    size_t size;         /* of what the library has set; a later one adds members behind */
    int stage, n_stages; /* from 0; rfx_network_stages and rfx_runner_stages describe them */
    enum rfx_step_work work;
    int layer; /* as rfx_network_layers counts them; of several that one step computes, a piece
                  at a time, the last */
    const char *name; /* the layer's; valid as long as the network */
    /* The output of which the rectangle has just become final, counted in its own rows and columns
     * (of one that is joined of maps: in those of the layer's map); -1: none, and it is counted in
     * the whole map's. The final rectangles of an output make it up, each pixel once; but where a
     * stage reads an output that it stores itself in tiles or strips, those overlap. One that is
     * there twice has the first number. */
    int output;
    int64_t step;        /* from 1, one more each time */
    int64_t done, total; /* as progress was told before the step */
    /* The rectangle; what is no map has one row and column, and its elements as channels. Those of
     * a layer make up what is needed of its map, of tiles and strips with their overlaps. */
    int64_t row, column, rows, columns, channels;
    uint64_t planned_bytes; /* the plan's peak: rfx_forecast.peak_bytes */
    uint64_t held_bytes;    /* what the network, its runners and this run have allocated now, with
                               the system's own share */
    double seconds;         /* since the first step began, when all was planned and packed */
};

/* A file, or folder, that an output is written to while the run goes on: what the program's -o
 * writes, byte for byte. It appears under its name when the run has ended well; after a failure
 * there is none, and one that was there is as it was. Maps need no room as a whole. */
struct rfx_result_file {
    size_t size; /* sizeof(struct rfx_result_file): set by init */
    int output;  /* which one, from 0 */
    int bits;    /* of samples: 8 or 16, 32 for floats; 0: what the kind of file usually has */
    const char
        *path; /* its end says the kind: .npy, .tif, .ome.tif, .png, .pfm, .zarr, .ome.zarr */
    /* With 8 and 16 bits: the values that become the smallest and the largest sample. Equal: the
     * smallest and the largest value of the map. */
    float low, high;
    const char *compression;   /* of TIFF "deflate" or "zstd", of Zarr "zstd"; NULL: none */
    const char *overviews;     /* smaller copies for viewers, of TIFF and .ome.zarr: "mean", or, of
                                  labels, "nearest"; NULL: none */
    const char *channel_names; /* of .ome.tif: a text file with a line for each; NULL: none */
    int tile;        /* of TIFF: rows and columns of tiles, a multiple of 16; 0: strips, or 256 */
    int cog;         /* of TIFF, not 0: in the order of a cloud optimized GeoTIFF */
    int zarr_format; /* 2 or 3; 0: 3 */
    int64_t chunk;   /* of Zarr: rows and columns of chunks; 0: 256, or lower and longer ones */
};

/* Sets every member to its default. `size`: sizeof *file. */
RFX_API void rfx_result_file_init(struct rfx_result_file *file, size_t size);

struct rfx_run_options {
    size_t size; /* sizeof(struct rfx_run_options): set by init */
    /* What the run may take: everything that it allocates, and a reserve for the code of libraries
     * and for stacks, as a process needs it that does nothing else. The caller's own, his arrays
     * for input and outputs included, comes on top. 0: no limit; the network then runs on whole
     * maps, layer by layer. */
    size_t memory_bytes;
    /* Called in the calling thread between the steps of a run: done of total. total stays the same
     * during a run, done never falls, and both are equal at the end. Another result than 0 cancels
     * the run. It must not use the network. NULL: none.
     */
    int (*progress)(void *user, int64_t done, int64_t total);
    void *user;
    int threads; /* at most 1024; 0: as many as the process may use processors */
    /* How samples of picture files become values: (sample * scale - mean[c]) / std[c]. Samples of 8
     * bits are 0 to 255; those of 16 bits are divided by 257, so that they are too, or with `raw`
     * not 0 taken as they are stored. .npy and float TIFF files, and the caller's own values, are
     * taken as they are: nothing of this applies. */
    int bgr; /* not 0: blue first, mean and std in that order */
    int raw;
    float scale; /* by default 1/255: with `raw` 1 takes samples as they are */
    /* One number for all channels, or one for each channel of the network: n_mean and n_std say how
     * many there are, at most 512; any other count is a USAGE error. They must stay as they are
     * during the call. NULL and 0: ImageNet's for networks of 3 channels, the first of them for
     * networks of 1; for others, and with `raw`, mean 0 and std 1. */
    const float *mean, *std;
    int n_mean, n_std;
    /* Without memory_bytes: rows times columns of the largest picture file that is decoded whole
     * (a format that cannot be read in parts). Larger ones are REFUSED. 0: 100 million. */
    int64_t max_pixels;
    /* Asked with `user` whether the call is to end: often, while it plans, packs weights and runs,
     * from any of its threads, several at a time. So it has to be quick and safe there (reading an
     * atomic flag is), must not use the network, and once it has said another result than 0 it
     * must say so until the call returns. NULL: nobody is asked. */
    int (*stop)(void *user);
    /* Receives, with `user`, the outputs whose outputs[k] is NULL, in parts, as soon as they are
     * done: so a map needs no room as a whole. In the calling thread; `values` is valid during the
     * call and may not be written. Each element comes once; of a map all channels of a pixel
     * together, rectangles mostly of whole rows from top to bottom, but of strips or tiles where
     * the plan has those. An output of three dimensions (1, rows, columns) comes as a map of one
     * channel, a detector's in rectangles in any order; any other of not four dimensions, or of
     * more than one image, as one pixel whose channels are its elements, row-major. Another result
     * than 0 ends the run with SYSTEM. It must not use the network. NULL: such outputs are not
     * wanted; where it is given, `outputs` may be NULL and n_outputs 0: all come here. */
    int (*write)(void *user, int output, const struct rfx_area *part, const float *values);
    /* With memory_bytes: a folder in which large maps that are needed again may wait in nameless
     * files, of which nothing is left however the process ends. Where the folder lies in memory
     * (tmpfs), so do they. The run fails with SYSTEM when there is no room. The text must stay as
     * it is during the call, for a runner until it is freed. NULL: no files. */
    const char *spill_folder;
    /* What is read of a picture file; the same for all calls. */
    int64_t page; /* of a TIFF, or level of a slide, as `rfexec info` numbers them; with 0, grey
                   * pages of one size that are channels are bands, which `channels` counts */
    /* Bands of a TIFF or .npy file, n_channels of them, from 1, in the order of the network's
     * channels, some perhaps several times; bgr must be 0 then. Must stay as it is during the call.
     * NULL and 0: all but alpha. */
    const int *channels;
    int n_channels; /* at most 512 */
    int as_stored;  /* not 0: pictures are not turned as EXIF data or TIFF's tag say */
    /* Told of every step when it is done, with `user`, in the calling thread while the others wait:
     * thousands of times, of large plans more, each about 0.1 microseconds beside what it does
     * itself. Another result than 0 cancels the run. *step is valid during the call. It must not
     * use the network, and cannot change bits. NULL: none, and nothing is counted or timed. */
    int (*observe)(void *user, const struct rfx_step_report *step);
    /* A rectangle of the picture, which is read as if it were all of it: region_rows rows from
     * region_row on, and columns likewise, of the picture as it is seen (or as_stored). Both counts
     * 0: all of it. */
    int64_t region_row, region_column, region_rows, region_columns;
    /* Files for outputs, at most one each, n_files of them, files[0].size apart. An output that has
     * one and whose outputs[k] is NULL does not go to `write`; where there are files, `outputs` may
     * be NULL and n_outputs 0. They must stay as they are during the call. Of a GeoTIFF that is run
     * by its path, TIFFs get the place in the world. A file that cannot be made or written is
     * SYSTEM, one that cannot hold its output USAGE. */
    const struct rfx_result_file *files;
    int n_files;
    /* A plan file, which rfx_model_plan_save or `rfexec plan -o` wrote for this network and size:
     * the call follows it instead of planning. `threads` other than 0 overrides the file's. A file
     * that cannot be read, or is no plan of this network, is REFUSED or USAGE. NULL: the library
     * plans. */
    const char *plan_file;
    /* Not 0: outputs[k], cast to float *, points to elements of the type that
     * rfx_network_output_type names (a bool is a byte of 0 or 1), as many and in the same order:
     * labels in uint8 take a quarter of the caller's memory. Values become integers as in files:
     * cut towards zero, held to the type's range, NaN 0. `write` receives floats as ever. 0: floats
     * whatever the type. */
    int typed_outputs;
};

/* Sets every member to its default. `size`: sizeof *options. */
RFX_API void rfx_run_options_init(struct rfx_run_options *options, size_t size);

/* As rfx_picture_size, of what a run with these options reads: the page, the bands, turned or not.
 * options NULL: the defaults. USAGE also: options without init, or a member out of range. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_picture_size_with(const char *picture,
                                                           const struct rfx_run_options *options,
                                                           int64_t *rows, int64_t *columns,
                                                           int64_t *channels, struct rfx_why *why);

/* What a run would take. */
struct rfx_forecast {
    size_t size;             /* sizeof(struct rfx_forecast): set by the caller */
    size_t peak_bytes;       /* the sum of the five below: what memory_bytes must be at least */
    size_t activation_bytes; /* maps and the like */
    size_t weight_bytes;     /* as packed for the run */
    size_t scratch_bytes;
    size_t picture_bytes;   /* of the decoder; 0 for the caller's own values */
    size_t reserve_bytes;   /* see memory_bytes; the bytes of a model in memory are part of it */
    uint64_t macs;          /* multiply-accumulates of the run */
    uint64_t macs_whole;    /* of a run on whole maps, which computes nothing twice */
    char plan[400];         /* how it would be done, in words */
    uint64_t spilled_bytes; /* that files in spill_folder hold at a time, at most */
};

/* Says what rfx_network_run_file on `picture` would take, or, with picture NULL,
 * rfx_network_run_values. options NULL: the defaults. Allocates no activations and computes
 * nothing; up to seconds for large networks with a budget. USAGE: options or forecast without their
 * size, or a member out of range; REFUSED: the picture, or it is not of the network's size;
 * SYSTEM; CANCELLED by options->stop; BUDGET: nothing fits, and *forecast then describes the run
 * with the smallest peak. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_predict(struct rfx_network *network,
                                                         const char *picture,
                                                         const struct rfx_run_options *options,
                                                         struct rfx_forecast *forecast,
                                                         struct rfx_why *why);

/* A stage of a run: computes some layers, and stores what later stages need. */
struct rfx_stage_report {
    const char *mode;         /* "whole", "tiled", "streamed": as in plan files */
    const char *first, *last; /* layers that it computes lie from one to the other; valid as
                                 long as the network */
    int64_t tiles[2];         /* parts that maps are cut into: rows of tiles, columns */
    int64_t band_rows;        /* streamed: rows of the image per step; else 0 */
    uint64_t macs;            /* those of all stages: rfx_forecast.macs */
    uint64_t arena_bytes;     /* of activation_bytes, those that hold something during the stage */
    uint64_t spilled_bytes;   /* that it writes to files */
};

/* The stages of the plan that rfx_network_predict describes, which is made once more, in the order
 * in which they run. *count receives how many they are; stages, an array of `most` whose elements
 * have stage_bytes (sizeof *stages), all of them, or is NULL. Failures as rfx_network_predict;
 * USAGE also where stage_bytes or most is too small. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_stages(
    struct rfx_network *network, const char *picture, const struct rfx_run_options *options,
    struct rfx_stage_report *stages, size_t stage_bytes, int most, int *count, struct rfx_why *why);

/* Runs the network on a picture (see rfx_picture_size), which is read in parts, never as a whole
 * where its format allows. Unless options->as_stored says otherwise it is read as it is seen,
 * turned where EXIF data or TIFF's tag say so (by way of a nameless file in spill_folder, TMPDIR or
 * /var/tmp, as interlaced PNG and progressive JPEG are read). It must have the network's rows and
 * columns, and a TIFF as many bands as the network has channels, not counting what the file calls
 * alpha, or options->channels as many; grey becomes three equal channels for a network that takes
 * three, colour luma for one that takes one.
 *
 * outputs[k] receives output k, rfx_network_output_elements values in the caller's memory, which
 * may overlap nothing else of the call; NULL: not wanted, or for options->write. n_outputs must be
 * rfx_network_output_count. They hold anything after a failure. options NULL: the defaults. Plans
 * and packs the weights anew in each call, and gives everything back at its end.
 *
 * USAGE, REFUSED, SYSTEM, BUDGET as rfx_network_predict; REFUSED also where the picture breaks off;
 * CANCELLED by options->progress, observe or stop. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_run_file(struct rfx_network *network,
                                                          const char *picture,
                                                          float *const *outputs, int n_outputs,
                                                          const struct rfx_run_options *options,
                                                          struct rfx_why *why);

/* As rfx_network_run_file, on the caller's values: float32, 1 x channels x rows x columns as
 * rfx_network_input_shape says, taken as they are and only read. May be NULL where
 * rfx_network_input_area has no rows. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_run_values(struct rfx_network *network,
                                                            const float *values,
                                                            float *const *outputs, int n_outputs,
                                                            const struct rfx_run_options *options,
                                                            struct rfx_why *why);

/* An image that is neither in a file nor in one array in ONNX order. Either `values` or `read` is
 * given; the rest is 0. */
struct rfx_source {
    size_t size; /* sizeof(struct rfx_source): set by the caller */
    /* An array, only read: that of row y, column x and channel c of the image is
     * values[y * row_step + x * column_step + c * channel_step]; steps in floats, any numbers, also
     * negative ones. All three 0: 1 x channels x rows x columns. */
    const float *values;
    int64_t row_step, column_step, channel_step;
    /* Fills a part of the image: writes every value of it. Asked for any rectangle, in any order,
     * some several times (where strips or tiles overlap, or the plan reads the image twice), and
     * must always give the same. In the calling thread, unless `concurrent` is not 0: then in any
     * of the run's threads, several at a time. Another result than 0 ends the run with SYSTEM. It
     * must not use the network. What it takes itself is not in memory_bytes. */
    int (*read)(void *user, const struct rfx_area *part, float *values);
    void *user;
    int concurrent;
    /* Unsigned samples of 8 or 16 bits, as sample_bits says, in the place of `values`; the steps
     * are in samples then. They become values as those of picture files do, by bgr, raw, scale,
     * mean and std of the run's options. NULL and 0: there are none. */
    const void *samples;
    int sample_bits;
};

/* As rfx_network_run_values, on a source. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_run_source(struct rfx_network *network,
                                                            const struct rfx_source *source,
                                                            float *const *outputs, int n_outputs,
                                                            const struct rfx_run_options *options,
                                                            struct rfx_why *why);

/* ---- parts of an output ------------------------------------------------------------------- */

/* The network that makes a rectangle of output k and nothing else: `part` says its row, column,
 * rows and columns, its other members are not read. Its only output, number 0, has that rectangle's
 * shape, and the parts that options->write gets are counted from its first row and column. It takes
 * the same image, of which its runs ask for what rfx_network_input_area says alone, and every
 * element has the bits that it has in a run of the whole: so runs of parts, in other processes or
 * on other machines too, put side by side are one run. Where a layer before the output sees all of
 * a map (global pools, instance norms, attention), a part needs all that comes before that layer;
 * rounds of states (below) share that work.
 *
 * It shares the graph of `network`, and like it is one thread's at a time, both together. The two
 * may be freed in any order. *out is to be freed with rfx_network_free. USAGE: no such output, one
 * that is no map, or a rectangle that is empty or not inside of it; SYSTEM. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_open_part(struct rfx_network *network, int k,
                                                           const struct rfx_area *part,
                                                           struct rfx_network **out,
                                                           struct rfx_why *why);

/* The rectangle of the image that runs of the network read: all of it, or what a part needs. Sets
 * row, column, rows, columns and channels, the steps to 0. */
RFX_API void rfx_network_input_area(const struct rfx_network *network, struct rfx_area *area);

/* ---- rounds of states --------------------------------------------------------------------- */

/* What comes after a global operation (a global pool, an instance norm) needs all of what comes
 * before it. Shards share that work in rounds. In each round every shard adds its rows of the image
 * to the states of the next global operations. Merging the states of all shards gives the states
 * for the next round, and after the last round parts of the output:
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
 * States are bytes without pointers, which files, messages and databases can carry. Sums are exact:
 * any number of shards, merged in any order and in any groups, gives the bits of one run. The bytes
 * say which network, image size, output, round and shards they are of, and have checksums of the
 * image rows that were read. Only the same version of the library reads them. */

/* Bytes that the library made, in the memory of a network. The network may be freed before them.
 * Until rfx_bytes_free they belong to the thread that uses the network. */
struct rfx_bytes;

/* Valid until rfx_bytes_free; NULL of NULL. */
RFX_API const void *rfx_bytes_data(const struct rfx_bytes *bytes);

/* How many they are; 0 of NULL. */
RFX_API size_t rfx_bytes_size(const struct rfx_bytes *bytes);

/* Frees bytes; NULL is fine. */
RFX_API void rfx_bytes_free(struct rfx_bytes *bytes);

/* How many rounds output k needs before its parts; 0: none, rfx_network_open_part shares all work.
 * USAGE: no such output, or the network is a part; REFUSED: a layer sees all of a map and has no
 * state that can be merged (attention). */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_rounds(struct rfx_network *network, int k,
                                                        int *rounds, struct rfx_why *why);

/* One shard's part in a round. It belongs to the thread that uses its network, and the two may be
 * freed in any order. */
struct rfx_round;

/* Opens the part of shard `shard` of `count`, both counted from 1, in round `number`, counted from
 * 1, of output k. A shard takes some rows of each map that a global operation of the round reads;
 * of more shards than rows some have nothing to do. *out is to be freed with rfx_round_free. USAGE:
 * no such round or shard, else as rfx_network_rounds; REFUSED as there; SYSTEM. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_round_open(struct rfx_network *network, int k, int number,
                                                    int64_t shard, int64_t count,
                                                    struct rfx_round **out, struct rfx_why *why);

/* Frees it; NULL is fine. */
RFX_API void rfx_round_free(struct rfx_round *round);

/* The rectangle of the image that its runs read, as rfx_network_input_area; no rows: none. */
RFX_API void rfx_round_input_area(const struct rfx_round *round, struct rfx_area *area);

/* Computes the shard's states on a picture file, as rfx_network_run_file reads it. states, n_bytes:
 * the merged states of the round before; NULL and 0 in the first round. options as in
 * rfx_network_run_file; `write` and `spill_folder` are not used, `observe` is told of no outputs,
 * and `files` and `plan_file` must be empty. memory_bytes includes the states. *out is to be freed
 * with rfx_bytes_free. USAGE: states that are missing, or too many; REFUSED: states of another
 * network, output or round, of some shards only, or changed bytes; a row of the image is not the
 * one that an earlier round has read; BUDGET, SYSTEM, CANCELLED and others as rfx_network_run_file.
 */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_round_run_file(struct rfx_round *round, const void *states,
                                                        size_t n_bytes, const char *picture,
                                                        const struct rfx_run_options *options,
                                                        struct rfx_bytes **out,
                                                        struct rfx_why *why);

/* As rfx_round_run_file, on a source as rfx_network_run_source; source may be NULL where nothing of
 * the image is read. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_round_run_source(
    struct rfx_round *round, const void *states, size_t n_bytes, const struct rfx_source *source,
    const struct rfx_run_options *options, struct rfx_bytes **out, struct rfx_why *why);

/* Adds up the states of n shards of one round, or of groups of shards that were merged before:
 * states[i] has n_bytes[i] bytes. The bits do not depend on the order or the groups. When all
 * shards are in, the next round takes the sum. *out is to be freed with rfx_bytes_free. USAGE: n
 * below 1; REFUSED: states of another network, or of different outputs, rounds or numbers of
 * shards; a shard that is there twice; shards that have read different values of one image row;
 * changed bytes; SYSTEM. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_merge_states(struct rfx_network *network,
                                                              const void *const *states,
                                                              const size_t *n_bytes, int n,
                                                              struct rfx_bytes **out,
                                                              struct rfx_why *why);

/* As rfx_network_open_part, given the merged states of the last round, which are not kept (NULL and
 * 0 where the output needs no round). `part` NULL: all of the output, which then may be no map.
 * Runs must be on the same image; this is not checked. A network that reads nothing of the image,
 * such as the classes after a global pool, may be run on values NULL. Failures as
 * rfx_network_open_part and rfx_round_run_file. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_open_part_after(struct rfx_network *network, int k,
                                                                 const struct rfx_area *part,
                                                                 const void *states, size_t n_bytes,
                                                                 struct rfx_network **out,
                                                                 struct rfx_why *why);

/* The rectangle of the image that such a part reads, known before any round has run. Failures as
 * rfx_network_open_part and rfx_network_rounds. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_part_area_after(struct rfx_network *network, int k,
                                                                 const struct rfx_area *part,
                                                                 struct rfx_area *area,
                                                                 struct rfx_why *why);

/* ---- runners ----------------------------------------------------------------------------- */

/* The memory of one run at a time: feature maps, workspace, and, of a network's runner, plan and
 * packed weights. A runner runs as often as its caller likes. It belongs to one thread at a time,
 * whichever. Runners of one network share its memory: only one of them may be used at a time.
 * Runners of a plan (rfx_model_plan_runner) share nothing that changes: all may run at once. The
 * network, or the plan and its model, may be freed before their runners. */
struct rfx_runner;

/* Plans as options say (memory_bytes, threads) and packs the weights. Room for files is kept where
 * options name some. options NULL: the defaults; progress, observe and write are not called.
 * Failures as rfx_network_run_values. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_runner_create(struct rfx_network *network,
                                                       const struct rfx_run_options *options,
                                                       struct rfx_runner **out,
                                                       struct rfx_why *why);

/* Frees a runner; NULL is fine. */
RFX_API void rfx_runner_free(struct rfx_runner *runner);

/* What the runner takes while it runs, most of it also between two runs. USAGE: forecast without
 * its size. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_runner_forecast(const struct rfx_runner *runner,
                                                         struct rfx_forecast *forecast,
                                                         struct rfx_why *why);

/* The stages of its plan, as rfx_network_stages. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_runner_stages(const struct rfx_runner *runner,
                                                       struct rfx_stage_report *stages,
                                                       size_t stage_bytes, int most, int *count,
                                                       struct rfx_why *why);

/* Runs once more, as rfx_network_run_source. memory_bytes, threads, spill_folder and plan_file are
 * not read: the plan has settled them. After any failure the runner can run again. BUDGET also:
 * source and files take more than the plan has room for. */
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

/* For programs with several sizes, or with several threads that run one model:
 *
 *     model  --rfx_model_plan_create-->  plan  --rfx_model_plan_runner-->  runner
 *
 * A model is opened once and has no size. A plan is a model at one size under one budget, with the
 * packed weights. A runner is the memory of one run. Models and plans never change: any number of
 * threads may use them at a time. Each object keeps what it needs alive, so the three may be freed
 * in any order. */

/* A model: the open files of an .onnx model, the caller's bytes, or a built-in name, with the open
 * options but for the size. */
struct rfx_model;

/* Opens a model, as rfx_network_open does. The file is read and its structure checked. rows and
 * columns of the options become the size of plans that name none. *out is to be freed with
 * rfx_model_free. Failures as rfx_network_open; what depends on the size fails when a plan is made.
 */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_model_open(const char *model,
                                                    const struct rfx_open_options *options,
                                                    struct rfx_model **out, struct rfx_why *why);

/* As rfx_model_open, of the bytes of an .onnx file in the caller's memory, as
 * rfx_network_open_memory: they must stay, unchanged, until the model, its plans and its runners
 * are freed. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_model_open_memory(const void *bytes, size_t n_bytes,
                                                           const struct rfx_open_options *options,
                                                           struct rfx_model **out,
                                                           struct rfx_why *why);

/* Frees a model; NULL is fine. In any thread. */
RFX_API void rfx_model_free(struct rfx_model *model);

/* A model at one size, planned and packed. */
struct rfx_model_plan;

/* Makes a plan of the model. In any thread, several at a time.
 * rows, columns: the size of images; both 0: that of `picture`, or without one the model's own.
 * picture: a picture (see rfx_picture_size) whose decoder the plan has room for, or NULL: runs are
 * on sources. options: memory_bytes, threads, spill_folder, plan_file, stop, and of a picture how
 * it is read; NULL: the defaults. Packs the weights that stay in memory; they are packed once for
 * all runs of the plan. memory_bytes holds for a process with this model, this plan and one runner;
 * every further runner takes activation_bytes, scratch_bytes and picture_bytes of the forecast once
 * more. *out is to be freed with rfx_model_plan_free. Failures as rfx_network_open and
 * rfx_network_predict. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_model_plan_create(struct rfx_model *model, int64_t rows,
                                                           int64_t columns, const char *picture,
                                                           const struct rfx_run_options *options,
                                                           struct rfx_model_plan **out,
                                                           struct rfx_why *why);

/* Frees a plan; NULL is fine. In any thread. */
RFX_API void rfx_model_plan_free(struct rfx_model_plan *plan);

/* The model at the plan's size, for the functions that describe a network (those that take a const
 * one); valid as long as the plan. */
RFX_API const struct rfx_network *rfx_model_plan_network(const struct rfx_model_plan *plan);

/* What a process with this model, this plan and one runner takes. USAGE: forecast without its size.
 */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_model_plan_forecast(const struct rfx_model_plan *plan,
                                                             struct rfx_forecast *forecast,
                                                             struct rfx_why *why);

/* Its stages, as rfx_network_stages. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_model_plan_stages(const struct rfx_model_plan *plan,
                                                           struct rfx_stage_report *stages,
                                                           size_t stage_bytes, int most, int *count,
                                                           struct rfx_why *why);

/* Writes the plan as a file that rfx_run_options.plan_file and `rfexec run --plan` follow. The file
 * appears under its name when it is complete. SYSTEM: it cannot be written. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_model_plan_save(const struct rfx_model_plan *plan,
                                                         const char *path, struct rfx_why *why);

/* A runner of the plan. *out is to be freed with rfx_runner_free. SYSTEM: no memory or threads. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_model_plan_runner(struct rfx_model_plan *plan,
                                                           struct rfx_runner **out,
                                                           struct rfx_why *why);

#ifdef __cplusplus
}
#endif
#endif
