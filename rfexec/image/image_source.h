/* Images as sources of rectangles: opened once, asked for rectangles of float32 NHWC values.
 *
 * Kinds: PNG read by rows (interlaced: by rectangles, from a nameless file); JPEG read by rows
 * (progressive: with its coefficients in a nameless file); TIFF and BigTIFF, the first picture of a
 * file or all its grey pages as bands, by rectangles (uncompressed, or in tiles, of which one row
 * is kept) or by rows (compressed strips), all bands that are not called alpha; slides (by their
 * names' endings) through OpenSlide, by rectangles; Zarr folders by rectangles, with one row of
 * chunks kept; .npy (float32, CxHxW, 1xCxHxW or, where a batch is taken, NxCxHxW) read by
 * rectangles; "bands:FILE,FILE,..." are files of one size, each with some of the bands;
 * "synthetic:HxW[:seed]" computed; everything else stb_image reads, decoded whole. Alpha is dropped
 * and the colour kept as stored; palettes are expanded; colour profiles are not applied. The
 * orientation of JPEG (EXIF) and TIFF files is: what is not stored as it is seen is read by
 * rectangles from a nameless file, once decoded into it. Floats, of .npy and TIFF, and signed and
 * 32-bit integers of TIFF are taken as they are: no scale, mean or order of channels. Grey for a
 * 3-channel network is replicated; colour for a 1-channel network becomes luma, (299 R + 587 G +
 * 114 B + 500) / 1000 in integers, before scale. Invariants: 1. the value of a pixel is a function
 * of the file and the options alone, never of which rectangle asked for it; 2. a row source keeps
 * only `window_rows` rows; 3. no allocation after rfx_image_set_window; 4. the bytes held never
 * pass fixed_bytes + rows * window_row_bytes (PNG and JPEG by rows: are exactly that; TIFF:
 * libtiff's own are bounded within it). */
#ifndef RFX_RFEXEC_IMAGE_IMAGE_SOURCE_H
#define RFX_RFEXEC_IMAGE_IMAGE_SOURCE_H

#include "layers/core/memory.h"
#include "layers/graph/tensor.h"
#include "tiler/plan/source_traits.h"

struct rfx_image;

/* Rows times columns of the largest picture that is decoded whole where nobody has said how much
 * memory may be used: a file of some bytes may say that it holds any number of pixels. */
#define RFX_IMAGE_WHOLE_PIXELS INT64_C(100000000)

/* Bands of a picture by their numbers. */
#define RFX_IMAGE_MAX_BANDS 512
struct rfx_image_bands {
    int n;
    uint16_t numbers[RFX_IMAGE_MAX_BANDS];
};

/* Samples that stand for nothing. */
struct rfx_image_nodata {
    bool given;
    double value; /* the sample as the file has it; NaN: every NaN */
    float fill;   /* the sample that is read in its place, before scale, mean and std */
    bool flags;   /* values are not those of the picture, but 1 where the sample that one is made of
                   * (or one of several) is missing, else 0 */
};

/* value = (sample * scale - mean[c]) / std[c], sample in 0..255 (16-bit samples / 257), or with
 * `raw` as the file has it. */
struct rfx_image_options {
    float scale;
    bool raw; /* 16-bit samples are not divided by 257 */
    /* One for each delivered channel, or one for all of them; read by rfx_image_open only. NULL and
     * 0: with raw 0 and 1, else ImageNet's for 3 channels and its first one for 1, which other
     * numbers of channels do without: 0 and 1. */
    const float *mean, *std;
    int n_mean, n_std;
    bool bgr;         /* channels in blue, green, red order; mean and std are given in that order */
    int64_t channels; /* what the network takes: 3 or 1 (grey), 0: as the file has it (npy: any) */
    int64_t max_pixels; /* of a picture that is decoded whole; 0: any number */
    /* Of TIFF, Zarr and .npy files: these bands, from 1, in this order. NULL: all but alpha. Read
     * by rfx_image_open only. */
    const struct rfx_image_bands *bands;
    bool channels_last;     /* of a .npy file: (rows, columns, channels), also behind 1 or N */
    int64_t max_images;     /* that a .npy file may hold as a batch (N, C, H, W); 0: one */
    int64_t page;           /* of a TIFF; level of a slide or Zarr folder; see rfx_image_pages */
    bool only_page;         /* page 0 is asked for by its number: no other page is a band */
    bool slide;             /* read by OpenSlide, whatever its name says */
    struct rfx_rect region; /* of the picture as it is read; empty: all of it */
    bool as_stored;         /* the orientation that JPEG and TIFF files name is not applied */
    struct rfx_image_nodata nodata;
    const char *folder; /* for pictures that need a nameless file; NULL: TMPDIR or /var/tmp.
                         * Borrowed until rfx_image_free. */
};

/* ImageNet's mean 0.485, 0.456, 0.406 and std 0.229, 0.224, 0.225, of samples times 1/255. */
extern const float rfx_imagenet_mean[3], rfx_imagenet_std[3];

/* ImageNet's: scale 1/255, mean and std not given, RGB, 3 channels; RFX_IMAGE_WHOLE_PIXELS. */
struct rfx_image_options rfx_image_default_options(void);

/* File k of a spec that names several ("bands:b2.tif,b3.tif"), in room[size]; of any other spec
 * itself for k 0. NULL: there is no such file, or its name does not fit. */
const char *rfx_image_file_of(const char *spec, int k, char *room, size_t size);

/* Opens `spec` and reads its header. MALFORMED: not an image, truncated header, with file name and
 * reason; UNSUPPORTED: a kind that is refused in words, or more than max_pixels; IO: cannot be
 * opened. */
RFX_NODISCARD enum rfx_status rfx_image_open(struct rfx_memory *mem, const char *spec,
                                             const struct rfx_image_options *options,
                                             struct rfx_image **out, struct rfx_error *err);

/* A source over the caller's array (c, h, w) float32, taken as it is; borrowed until
 * rfx_image_free. INVALID_ARGUMENT for sizes that are not positive. */
RFX_NODISCARD enum rfx_status rfx_image_from_array(struct rfx_memory *mem, const float *values,
                                                   int64_t c, int64_t h, int64_t w,
                                                   struct rfx_image **out, struct rfx_error *err);

/* Floats from one row, column and channel of an array to the next; any numbers. */
struct rfx_image_steps {
    int64_t row, column, channel;
};

/* As rfx_image_from_array, of values that lie in those steps: element (row, column, channel) is at
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

/* Something that is asked for values: writes `rect` to `values` in those steps, of which it starts
 * at (rect.y0, rect.x0, 0). Another result than 0 is a failure. */
struct rfx_image_reader {
    int (*read)(void *user, struct rfx_rect rect, struct rfx_image_steps steps, float *values);
    void *user;
    bool concurrent; /* several threads may ask at a time */
};

/* A source over a reader, which is copied: any rectangle at any time, c channels as it has them.
 * Reading it is an IO failure where the reader fails. INVALID_ARGUMENT as rfx_image_from_array. */
RFX_NODISCARD enum rfx_status rfx_image_from_reader(struct rfx_memory *mem,
                                                    const struct rfx_image_reader *reader,
                                                    int64_t c, int64_t h, int64_t w,
                                                    struct rfx_image **out, struct rfx_error *err);

/* Closes and frees; NULL is fine. */
void rfx_image_free(struct rfx_image *image);

/* What reading a .npy picture holds: the fixed_bytes of its traits. */
size_t rfx_image_npy_bytes(void);

/* Size and access pattern; valid from open on. */
struct rfx_source_traits rfx_image_traits(const struct rfx_image *image);

struct rfx_image_facts {
    const char *kind; /* of file, such as "PNG" */
    int64_t h, w;
    int bands;          /* per pixel; without alpha but in a TIFF */
    int sample_bits;    /* as they are read; 32: floats */
    int orientation;    /* of h and w that are not turned; 1: as they are seen */
    double pixel_um[2]; /* of slides: a pixel's width and height in micrometres; 0: not known */
    int64_t images;     /* of a batch, all of that size; else 1 */
};
struct rfx_image_facts rfx_image_facts(const struct rfx_image *image);

/* Reads image n of a batch from now on; the first one is 0, and read without being asked for. */
void rfx_image_select(struct rfx_image *image, int64_t n);

/* The sample, 0 to 255, that a value delivered in a channel was made of, but for its rounding: what
 * preprocessing did is undone. Of pictures whose sample_bits are 32 the value itself. */
float rfx_image_sample_of(const struct rfx_image *image, int64_t channel, float value);

/* How many samples of a pixel a TIFF calls alpha, which are dropped (0: none, or bands are chosen);
 * *bands, may be NULL: of how many, 0 for other kinds. */
int rfx_image_alpha(const struct rfx_image *image, int *bands);

/* How the file is taken where it does not say so itself, in words without its name; "": nothing
 * to tell. Valid until rfx_image_free. */
const char *rfx_image_note(const struct rfx_image *image);

/* Allocates the window for a row source: at least `rows` consecutive rows can be asked for at a
 * time (at most the picture's), and starts at the first row. Sources with random access need none;
 * those decoded whole are decoded here, or else by the first read: MALFORMED as from read. */
RFX_NODISCARD enum rfx_status rfx_image_set_window(struct rfx_image *image, int64_t rows,
                                                   struct rfx_error *err);

/* Writes `rect` of the preprocessed picture into `out` (which holds it). A row source accepts
 * rectangles whose y1 is not above the window and whose y0 has not been passed: y0 must not be
 * less than (highest y1 asked so far) - window rows. MALFORMED when the file breaks off or is
 * corrupt, naming the row. Not thread-safe on one image, but where rfx_image_is_concurrent. */
RFX_NODISCARD enum rfx_status rfx_image_read(struct rfx_image *image, struct rfx_rect rect,
                                             const struct rfx_view *out, struct rfx_error *err);

/* Adds what is read from now on to `sums`, which is borrowed; NULL: to none. */
struct rfx_row_sums;
void rfx_image_set_row_sums(struct rfx_image *image, struct rfx_row_sums *sums);

/* Whether several threads may call rfx_image_read for different rows at a time. */
bool rfx_image_is_concurrent(const struct rfx_image *image);

/* Starts again at the first row. */
RFX_NODISCARD enum rfx_status rfx_image_rewind(struct rfx_image *image, struct rfx_error *err);
#endif
