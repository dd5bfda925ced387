/* rfexec: runs convolutional networks on images of any size inside a fixed number of bytes and
 * returns exactly the bits of the whole-image run.
 *
 * This is the whole interface, and it needs no other header. A program opens a network for one
 * image size, may ask what a run would take, and runs it on a picture file or on pixels of its own:
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
 * only then. `why` may be NULL; the text that it receives is empty after a success.
 * Threads: functions on different networks may run at the same time in different threads. One
 * network belongs to one thread at a time, whichever. There is nothing to initialise; the library
 * prints nothing and never ends the process. docs/host_process.md says what else it does to it.
 * Fork: the child may use networks that no other thread was using. Where the thread that forks has
 * run with several threads before, the child must run with one, or in a thread that it starts for
 * it: those of the OpenMP runtime stay in the parent, which this thread would wait for.
 * Growth: structs that programs fill begin with their size, and new members are added behind the
 * last; members and functions are never taken away while RFX_VERSION_MAJOR and RFX_VERSION_MINOR
 * stay the same. */
#ifndef RFX_RFEXEC_H
#define RFX_RFEXEC_H

#include <stddef.h>
#include <stdint.h>

/* Of this header; rfx_version gives the library's. */
#define RFX_VERSION_MAJOR 0
#define RFX_VERSION_MINOR 1
#define RFX_VERSION_PATCH 0
#define RFX_VERSION "0.1.0"

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

/* The library's version, "0.1.0": valid for ever. */
RFX_API const char *rfx_version(void);

/* What came of a call. The rfexec program exits with the same numbers; its 1 is a difference that
 * `verify` found, and for it a cancelled run is a 5. */
enum rfx_code {
    RFX_CODE_OK = 0,
    RFX_CODE_USAGE = 2,     /* the caller's mistake: an argument or option out of its range */
    RFX_CODE_REFUSED = 3,   /* model or picture: cannot be read, is broken, or is not supported */
    RFX_CODE_BUDGET = 4,    /* no way of running fits in memory_bytes; the text has the least */
    RFX_CODE_SYSTEM = 5,    /* no memory or threads, reading failed, or a bug of rfexec's */
    RFX_CODE_CANCELLED = 6, /* the caller's progress or stop function said so */
};

/* The reason of a failure in one line of English, with names and numbers: UTF-8 that is safe to
 * show, whatever a model's names are (bytes that are not printable stand there as \xNN). */
struct rfx_why {
    char text[512];
};

/* ---- networks ---------------------------------------------------------------------------- */

/* A network loaded for one image size. It holds its graph; weights stay in the model's file, which
 * must not change meanwhile. */
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

struct rfx_open_options {
    size_t size;           /* sizeof(struct rfx_open_options): set by init */
    int64_t rows, columns; /* of the image; both 0: as the model says (built-in networks: 224) */
    uint64_t seed;         /* of the weights of built-in networks */
    enum rfx_convolution convolution; /* what computes convolutions */
};

/* Sets every member to its default. `size`: sizeof *options. */
RFX_API void rfx_open_options_init(struct rfx_open_options *options, size_t size);

/* Opens `model`, a built-in name ("mobilenet_v2", "mobilenet_v2:0.5"; `rfexec models` lists them)
 * or the path of an .onnx file, for one image size. options NULL: the defaults. *out is to be freed
 * with rfx_network_free. USAGE: negative sizes, only one of them 0, a convolution that there is
 * not, options without init; REFUSED:
 * not there, broken, an operator that is not supported, or not for this size, with node and reason;
 * SYSTEM. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_open(const char *model,
                                                      const struct rfx_open_options *options,
                                                      struct rfx_network **out,
                                                      struct rfx_why *why);

/* Frees a network; NULL is fine. */
RFX_API void rfx_network_free(struct rfx_network *network);

/* Shape of the input: dims receives 1, channels, rows, columns. */
RFX_API void rfx_network_input_shape(const struct rfx_network *network, int64_t dims[4]);

/* The input's name in the model, made printable as in struct rfx_why; valid as long as the network.
 */
RFX_API const char *rfx_network_input_name(const struct rfx_network *network);

/* How many outputs the network has: at least 1. Outputs are numbered from 0, in the model's order.
 */
RFX_API int rfx_network_output_count(const struct rfx_network *network);

/* Name of output k in the model, made printable likewise, valid as long as the network; NULL when
 * there is no such output. */
RFX_API const char *rfx_network_output_name(const struct rfx_network *network, int k);

/* Shape of output k as ONNX has it: returns the number of dimensions, of which dims receives as
 * many; -1 when there is no such output. */
RFX_API int rfx_network_output_shape(const struct rfx_network *network, int k,
                                     int64_t dims[RFX_MAX_DIMS]);

/* Elements of output k, the product of its dimensions; -1 when there is no such output. */
RFX_API int64_t rfx_network_output_elements(const struct rfx_network *network, int k);

/* ---- pictures ---------------------------------------------------------------------------- */

/* Size of a picture as a run would read it. `picture` is what the command line takes: a PNG, JPEG,
 * TIFF, BigTIFF or .npy file, whatever stb_image reads, or "synthetic:ROWSxCOLUMNS[:SEED]". Reads
 * the header only. channels may be NULL. REFUSED: cannot be opened or is no picture; SYSTEM. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_picture_size(const char *picture, int64_t *rows,
                                                      int64_t *columns, int64_t *channels,
                                                      struct rfx_why *why);

/* ---- runs -------------------------------------------------------------------------------- */

/* A rectangle of an image or of a map: rows [row, row + rows), columns [column, column + columns),
 * all channels. Its values come with it: that of row r, column c and channel k, counted from the
 * rectangle's first, is values[r * row_step + c * column_step + k * channel_step]. */
struct rfx_area {
    int64_t row, column;
    int64_t rows, columns, channels;
    int64_t row_step, column_step, channel_step; /* in floats */
};

struct rfx_run_options {
    size_t size; /* sizeof(struct rfx_run_options): set by init */
    /* What the run may take: everything that it allocates, and a reserve for the code of libraries
     * and for stacks, as a process needs it that does nothing else. The caller's own, his arrays
     * for input and outputs included, comes on top. 0: no limit; the network then runs on whole
     * maps, layer by layer. */
    size_t memory_bytes;
    /* Called in the calling thread between the steps of a run: done of total, never falling, both 1
     * at the end. Another result than 0 cancels the run. It must not use the network. NULL: none.
     */
    int (*progress)(void *user, int64_t done, int64_t total);
    void *user;
    int threads; /* at most 1024; 0: as many as the process may use processors */
    /* How samples of picture files become values: (sample * scale - mean[c]) / std[c], samples from
     * 0 to 255. By default ImageNet's. .npy and float TIFF files, and the caller's own values, are
     * taken as they are. */
    int bgr; /* not 0: blue first, mean and std in that order */
    float scale;
    float mean[3], std[3];
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
     * the plan has those. An output of other than four dimensions, or of more than one image, comes
     * as one pixel whose channels are its elements, row-major. Another result than 0 ends the run
     * with SYSTEM. It must not use the network. NULL: such outputs are not wanted; where it is
     * given, `outputs` may be NULL and n_outputs 0: all come here. */
    int (*write)(void *user, int output, const struct rfx_area *part, const float *values);
    /* With memory_bytes: a folder in which large maps that are needed again may wait in nameless
     * files, of which nothing is left however the process ends. Where the folder lies in memory
     * (tmpfs), so do they. The run fails with SYSTEM when there is no room. The text must stay as
     * it is during the call, for a runner until it is freed. NULL: no files. */
    const char *spill_folder;
};

/* Sets every member to its default. `size`: sizeof *options. */
RFX_API void rfx_run_options_init(struct rfx_run_options *options, size_t size);

/* What a run would take. */
struct rfx_forecast {
    size_t size;             /* sizeof(struct rfx_forecast): set by the caller */
    size_t peak_bytes;       /* the sum of the five below: what memory_bytes must be at least */
    size_t activation_bytes; /* maps and the like */
    size_t weight_bytes;     /* as packed for the run */
    size_t scratch_bytes;
    size_t picture_bytes;   /* of the decoder; 0 for the caller's own values */
    size_t reserve_bytes;   /* see memory_bytes */
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

/* Runs the network on a picture (see rfx_picture_size), which is read in parts, never as a whole
 * where its format allows. It must have the network's rows and columns; alpha is dropped, grey
 * becomes three equal channels for a network that takes three, colour luma for one that takes one.
 *
 * outputs[k] receives output k, rfx_network_output_elements values in the caller's memory, which
 * may overlap nothing else of the call; NULL: not wanted, or for options->write. n_outputs must be
 * rfx_network_output_count. They hold anything after a failure. options NULL: the defaults. Plans
 * and packs the weights anew in each call, and gives everything back at its end.
 *
 * USAGE, REFUSED, SYSTEM, BUDGET as rfx_network_predict; REFUSED also where the picture breaks off;
 * CANCELLED by options->progress or options->stop. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_run_file(struct rfx_network *network,
                                                          const char *picture,
                                                          float *const *outputs, int n_outputs,
                                                          const struct rfx_run_options *options,
                                                          struct rfx_why *why);

/* As rfx_network_run_file, on the caller's values: float32, 1 x channels x rows x columns as
 * rfx_network_input_shape says, taken as they are and only read. */
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
};

/* As rfx_network_run_values, on a source. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_network_run_source(struct rfx_network *network,
                                                            const struct rfx_source *source,
                                                            float *const *outputs, int n_outputs,
                                                            const struct rfx_run_options *options,
                                                            struct rfx_why *why);

/* ---- runners ----------------------------------------------------------------------------- */

/* A network made ready to run many times: plan, packed weights and the memory of its maps are kept
 * until it is freed. It belongs to its network, which has to live longer, and to the thread that
 * uses the network at the time; several of one network may be kept, but not used at a time. */
struct rfx_runner;

/* Plans as options say (memory_bytes, threads) and packs the weights, for runs on values and
 * sources. options NULL: the defaults; progress and write are not called. Failures as
 * rfx_network_run_values. */
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

/* Runs once more, as rfx_network_run_source. Of the options only progress, stop, write and user
 * count: the others were settled by rfx_runner_create. After any failure it can run again. */
RFX_MUST_CHECK RFX_API enum rfx_code rfx_runner_run(struct rfx_runner *runner,
                                                    const struct rfx_source *source,
                                                    float *const *outputs, int n_outputs,
                                                    const struct rfx_run_options *options,
                                                    struct rfx_why *why);

#ifdef __cplusplus
}
#endif
#endif
