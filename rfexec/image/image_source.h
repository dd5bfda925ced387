/* Images as sources of rectangles: an image is opened once, then read as rectangles of float32 NHWC
 * values.
 *
 * Kinds of pictures:
 * - PNG: read by rows; an interlaced one by rectangles, from a temporary file without a name.
 * - JPEG: read by rows; a progressive one with its coefficients in a temporary file.
 * - TIFF and BigTIFF: the first picture of a file, or all its grey pages as bands; all bands that
 * are not called alpha. Uncompressed data and tiles are read by rectangles, with one row of tiles
 * kept in memory; compressed strips by rows.
 * - Slides (recognised by their names' endings) through OpenSlide, by rectangles.
 * - Zarr folders by rectangles, with one row of chunks kept in memory.
 * - .npy by rectangles: CxHxW, 1xCxHxW or, if a batch is allowed, NxCxHxW.
 * - "bands:FILE,FILE,...": files of one size, each with some of the bands.
 * - "synthetic:HxW[:seed]": computed.
 * - Everything else that stb_image reads: decoded whole.
 *
 * Alpha is dropped, and the colour kept as stored. Palettes are expanded. Colour profiles are not
 * applied. The orientation of JPEG (EXIF) and TIFF files is applied: a picture that is stored
 * rotated or mirrored is decoded once into a temporary file and read from there by rectangles.
 * Floats of .npy and TIFF, and signed and 32-bit integers of TIFF, are used unchanged: no scale,
 * mean or order of channels. Grey is replicated for a 3-channel network. Colour becomes luma for a
 * 1-channel network, (299 R + 587 G + 114 B + 500) / 1000 in integers, before scale.
 *
 * Invariants: 1. the value of a pixel depends only on the file and the options, never on the
 * rectangle that is read; 2. a row source keeps only `window_rows` rows; 3. nothing is allocated
 * after rfx_image_set_window; 4. the bytes held never exceed fixed_bytes + rows * window_row_bytes
 * (for PNG and JPEG by rows they are exactly that many; for TIFF, libtiff's own memory is bounded
 * within them). */
#ifndef RFX_RFEXEC_IMAGE_IMAGE_SOURCE_H
#define RFX_RFEXEC_IMAGE_IMAGE_SOURCE_H

#include "layers/core/memory.h"
#include "layers/graph/tensor.h"
#include "tiler/plan/source_traits.h"

struct rfx_image;

/* Rows times columns of the largest picture that is decoded whole if no budget is given: even a
 * small file can claim any number of pixels. */
#define RFX_IMAGE_WHOLE_PIXELS INT64_C(100000000)

/* A list of a picture's band numbers. */
#define RFX_IMAGE_MAX_BANDS 512
struct rfx_image_bands {
    int n;
    uint16_t numbers[RFX_IMAGE_MAX_BANDS];
};

/* Samples that mark missing data. */
struct rfx_image_nodata {
    bool given;
    double value; /* value of such a sample in the file; NaN: every NaN */
    float fill;   /* sample that replaces it, before scale, mean and std */
    bool flags;   /* the values read are flags: 1 if the sample (or one of several) of which a value
                     is made is missing, else 0 */
};

/* value = (sample * scale - mean[c]) / std[c]. The sample is in 0..255 (16-bit samples are divided
 * by 257), or with `raw` as the file has it. */
struct rfx_image_options {
    float scale;
    bool raw; /* 16-bit samples are not divided by 257 */
    /* One number for each delivered channel, or one for all of them; read by rfx_image_open only.
     * NULL and 0: with raw, mean 0 and std 1. Else ImageNet's numbers for 3 channels, the first of
     * them for 1 channel, and 0 and 1 for other numbers of channels. */
    const float *mean, *std;
    int n_mean, n_std;
    bool bgr;         /* channels in blue, green, red order; mean and std are given in that order */
    int64_t channels; /* channels of the network: 3 or 1 (grey); 0: as many as the file has (npy:
                         any) */
    int64_t max_pixels; /* largest picture that is decoded whole; 0: any size */
    /* TIFF, Zarr and .npy files: the bands to deliver, from 1, in this order. NULL: all but alpha.
     * Read by rfx_image_open only. */
    const struct rfx_image_bands *bands;
    bool channels_last; /* .npy: the shape is (rows, columns, channels), also after a leading 1 or N
                         */
    int64_t max_images; /* most images that a .npy file may hold as a batch (N, C, H, W); 0: one */
    int64_t page;       /* page of a TIFF; level of a slide or Zarr folder; see rfx_image_pages */
    bool only_page;     /* page 0 was chosen by its number: no other page becomes a band */
    bool slide;         /* read the file with OpenSlide, whatever its name */
    struct rfx_rect region; /* rectangle of the picture to read; empty: the whole picture */
    bool as_stored;         /* the orientation of JPEG and TIFF files is not applied */
    struct rfx_image_nodata nodata;
    const char *folder; /* folder for temporary files without names; NULL: TMPDIR or /var/tmp.
                           Borrowed until rfx_image_free. */
};

/* ImageNet's mean 0.485, 0.456, 0.406 and std 0.229, 0.224, 0.225, for samples times 1/255. */
extern const float rfx_imagenet_mean[3], rfx_imagenet_std[3];

/* Returns the options for ImageNet networks: scale 1/255, mean and std not set, RGB, 3 channels,
 * max_pixels RFX_IMAGE_WHOLE_PIXELS. */
struct rfx_image_options rfx_image_default_options(void);

/* Returns file k of a spec with several files ("bands:b2.tif,b3.tif"), written to room[size]. For
 * any other spec, file 0 is the spec itself. NULL: there is no file k, or its name does not fit. */
const char *rfx_image_file_of(const char *spec, int k, char *room, size_t size);

/* Opens `spec` and reads its header. MALFORMED: no image, or a truncated header; the text has file
 * name and reason. UNSUPPORTED: a kind of file that is not read, or more than max_pixels. IO: it
 * cannot be opened. */
RFX_NODISCARD enum rfx_status rfx_image_open(struct rfx_memory *mem, const char *spec,
                                             const struct rfx_image_options *options,
                                             struct rfx_image **out, struct rfx_error *err);

/* Makes a source of the caller's array (c, h, w) float32, whose values are used unchanged. The
 * array is borrowed until rfx_image_free. INVALID_ARGUMENT: sizes that are not positive. */
RFX_NODISCARD enum rfx_status rfx_image_from_array(struct rfx_memory *mem, const float *values,
                                                   int64_t c, int64_t h, int64_t w,
                                                   struct rfx_image **out, struct rfx_error *err);

/* Steps in floats from one row, column and channel of an array to the next; any numbers. */
struct rfx_image_steps {
    int64_t row, column, channel;
};

/* Like rfx_image_from_array, for values with these steps: element (row, column, channel) is at
 * values[row * steps.row + column * steps.column + channel * steps.channel]. */
RFX_NODISCARD enum rfx_status rfx_image_from_steps(struct rfx_memory *mem, const float *values,
                                                   struct rfx_image_steps steps, int64_t c,
                                                   int64_t h, int64_t w, struct rfx_image **out,
                                                   struct rfx_error *err);

/* Unsigned samples of the caller's, of 8 or 16 bits in the machine's byte order, with the steps
 * from one to the next. */
struct rfx_image_samples {
    const void *samples;
    int bits; /* 8 or 16 */
    struct rfx_image_steps steps;
};

/* Makes a source over samples, which become values as those of picture files do: by scale, raw,
 * mean, std and bgr of the options; borrowed until rfx_image_free. INVALID_ARGUMENT: sizes that are
 * not positive, more than RFX_IMAGE_MAX_BANDS channels, or a mean or std that does not fit. */
RFX_NODISCARD enum rfx_status rfx_image_from_samples(struct rfx_memory *mem,
                                                     const struct rfx_image_samples *samples,
                                                     const struct rfx_image_options *options,
                                                     int64_t c, int64_t h, int64_t w,
                                                     struct rfx_image **out, struct rfx_error *err);

/* A function that computes values: writes `rect` to `values` with these steps; `values` is the
 * place of element (rect.y0, rect.x0, 0). A result other than 0 is a failure. */
struct rfx_image_reader {
    int (*read)(void *user, struct rfx_rect rect, struct rfx_image_steps steps, float *values);
    void *user;
    bool concurrent; /* several threads may call read at a time */
};

/* Makes a source of a reader, which is copied: any rectangle at any time, c channels as the reader
 * has them. Reading fails with IO if the reader fails. INVALID_ARGUMENT as rfx_image_from_array. */
RFX_NODISCARD enum rfx_status rfx_image_from_reader(struct rfx_memory *mem,
                                                    const struct rfx_image_reader *reader,
                                                    int64_t c, int64_t h, int64_t w,
                                                    struct rfx_image **out, struct rfx_error *err);

/* Closes and frees; NULL is fine. */
void rfx_image_free(struct rfx_image *image);

/* Returns the memory that reading a .npy picture takes: the fixed_bytes of its traits. */
size_t rfx_image_npy_bytes(void);

/* Returns the size and access pattern of the image. */
struct rfx_source_traits rfx_image_traits(const struct rfx_image *image);

struct rfx_image_facts {
    const char *kind; /* kind of file, such as "PNG" */
    int64_t h, w;
    int bands;          /* bands of a pixel; includes alpha in a TIFF only */
    int sample_bits;    /* bits of a sample as it is read; 32: floats */
    int orientation;    /* orientation to which h and w belong; 1: as seen */
    double pixel_um[2]; /* slides: width and height of a pixel in micrometres; 0: not known */
    int64_t images;     /* number of images of a batch, all of that size; else 1 */
};
struct rfx_image_facts rfx_image_facts(const struct rfx_image *image);

/* Selects image n of a batch for later reads. Image 0 is selected at open. */
void rfx_image_select(struct rfx_image *image, int64_t n);

/* Returns the sample, 0 to 255, of which a delivered value of a channel was made, up to rounding:
 * preprocessing is undone. For pictures whose sample_bits are 32: the value itself. */
float rfx_image_sample_of(const struct rfx_image *image, int64_t channel, float value);

/* Returns the number of samples of a TIFF's pixel that are alpha and dropped (0: none, or bands are
 * chosen). *bands receives the number of all samples, 0 for other kinds; it may be NULL. */
int rfx_image_alpha(const struct rfx_image *image, int *bands);

/* Returns how the file is interpreted where it does not say so itself, in words without its name;
 * "": nothing to tell. Valid until rfx_image_free. */
const char *rfx_image_note(const struct rfx_image *image);

/* Allocates the window of a row source and starts at the first row. At least `rows` consecutive
 * rows (at most the picture's) can then be read at a time. Sources with random access need no
 * window. Sources that are decoded whole are decoded here, or else by the first read: MALFORMED as
 * from rfx_image_read. */
RFX_NODISCARD enum rfx_status rfx_image_set_window(struct rfx_image *image, int64_t rows,
                                                   struct rfx_error *err);

/* Writes `rect` of the preprocessed picture into `out`, which must hold it. A row source only reads
 * rectangles of its window: y0 must not be less than (highest y1 read so far) - window rows.
 * MALFORMED: the file is truncated or corrupt; the text names the row. Only one thread at a time
 * may read one image, unless rfx_image_is_concurrent. */
RFX_NODISCARD enum rfx_status rfx_image_read(struct rfx_image *image, struct rfx_rect rect,
                                             const struct rfx_view *out, struct rfx_error *err);

/* Adds the checksums of all later reads to `sums`, which is borrowed; NULL: to none. */
struct rfx_row_sums;
void rfx_image_set_row_sums(struct rfx_image *image, struct rfx_row_sums *sums);

/* Returns whether several threads may call rfx_image_read for different rows at a time. */
bool rfx_image_is_concurrent(const struct rfx_image *image);

/* Goes back to the first row. */
RFX_NODISCARD enum rfx_status rfx_image_rewind(struct rfx_image *image, struct rfx_error *err);
#endif
