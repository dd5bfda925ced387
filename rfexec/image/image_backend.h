/* Private: the interface between image_source.c and the reader of one kind of image file.
 *
 * A backend delivers the stored samples (8 or 16 bits) row by row. image_source.c does all
 * preprocessing, so that preprocessing is the same for every kind of file. Float samples (.npy,
 * many TIFF files) are delivered without preprocessing. Invariants: 1. fixed_bytes counts every
 * byte that the backend ever holds apart from the window; 2. a backend allocates memory in open and
 * set_window only; 3. an error text starts with the file name. */
#ifndef RFX_RFEXEC_IMAGE_IMAGE_BACKEND_H
#define RFX_RFEXEC_IMAGE_IMAGE_BACKEND_H

#include "layers/core/memory.h"
#include "layers/graph/tensor.h"
#include "rfexec/image/image_source.h"

#define RFX_IMAGE_ROOM_BYTES 8192 /* aligned for any type */
/* Rows or columns of a picture file: those of line cameras have millions. Both sides, 512 bands and
 * 8 bytes a sample multiply to less than 2^61. */
#define RFX_IMAGE_MAX_SIDE 16000000

struct rfx_image_backend;

struct rfx_image_backend_ops {
    /* Allocates the window (sources that are read by rows) or decodes the image (sources that are
     * decoded whole). NULL: nothing to do. */
    enum rfx_status (*set_window)(struct rfx_image_backend *b, int64_t rows, struct rfx_error *err);
    /* Points *samples at columns [x0, *end) of row y, x0 < *end <= x1. The samples are valid until
     * the next call with this room: RFX_IMAGE_ROOM_BYTES that the backend may write into. A source
     * that is read by rows decodes forward only; the caller asks for rows of the window only. */
    enum rfx_status (*fetch)(struct rfx_image_backend *b, int64_t y, int64_t x0, int64_t x1,
                             void *room, const void **samples, int64_t *end, struct rfx_error *err);
    /* Fills `rect` of `out` with floats. A backend has this function or fetch. */
    enum rfx_status (*read_floats)(struct rfx_image_backend *b, struct rfx_rect rect,
                                   const struct rfx_view *out, struct rfx_error *err);
    /* Goes back to the first row. NULL: nothing to do. */
    enum rfx_status (*rewind)(struct rfx_image_backend *b, struct rfx_error *err);
    /* Reads image n of the batch from now on. NULL: the file has one image. */
    void (*select)(struct rfx_image_backend *b, int64_t n);
    void (*free)(struct rfx_image_backend *b); /* frees the backend itself too */
};

/* The first member of every backend's own struct. */
struct rfx_image_backend {
    const struct rfx_image_backend_ops *ops;
    struct rfx_memory *mem;
    const char *name;    /* as the user gave it; outlives the backend */
    const char *kind;    /* of file; NULL: none */
    int64_t h, w, c;     /* c: samples per pixel, 1 or 3 (TIFF and floats: any) */
    int64_t images;      /* of a batch, all of that size; 0: one */
    int sample_bits;     /* 8 or 16; 32: floats, by read_floats or fetch */
    int bands;           /* per pixel in the file; 0: not told, as images have 1 or 3 */
    int n_alpha;         /* bands that the file calls alpha, which are not delivered */
    int64_t other_pages; /* of a TIFF whose page 0 is read by default: grey is then not repeated for
                          * three channels */
    char note[160];      /* tells the user how the file is read; "": nothing to tell */
    bool chosen;         /* the user chose the bands */
    bool is_colour;      /* bands: red, green and blue are among them */
    double pixel_um[2];  /* width and height of a pixel in micrometres; 0: not known */
    int orientation;     /* as TIFF's tag, which h and w do not follow; 0: as the image is seen */
    int64_t whole_pixels; /* of the image of which this is a rectangle; 0: this is all of it */
    bool random_access;
    bool concurrent; /* several threads may read different rows at a time */
    size_t fixed_bytes;
    size_t shared_bytes; /* of fixed_bytes: once in a process, for all open files of this kind */
    size_t file_bytes;   /* of a temporary file that is filled before the first row is delivered */
    size_t window_row_bytes;
    double pass_picoseconds; /* of decoding all rows (decoding.h); 0 with random access */
};

/* An image of floats that `b` delivers by read_floats, which it owns from then on. */
RFX_NODISCARD enum rfx_status rfx_image_of_backend(struct rfx_image_backend *b,
                                                   struct rfx_image **out, struct rfx_error *err);

/* Opens a picture. `name` is borrowed and outlives the backend, and so is options->folder. Fails as
 * rfx_image_open. */
typedef enum rfx_status rfx_image_opener(struct rfx_memory *mem, const char *name,
                                         const struct rfx_image_options *options,
                                         struct rfx_image_backend **out, struct rfx_error *err);

/* An image of 8 or 16-bit samples that `b` delivers by fetch, all channels as they are,
 * preprocessed by `options`. The image owns `b` from then on. INVALID_ARGUMENT: a mean or std that
 * is no number, or neither one nor one for each channel. */
RFX_NODISCARD enum rfx_status rfx_image_of_samples(struct rfx_image_backend *b,
                                                   const struct rfx_image_options *options,
                                                   struct rfx_image **out, struct rfx_error *err);

/* Of any kind: one of those below. */
RFX_NODISCARD rfx_image_opener rfx_image_backend_open;

/* Files of one kind. A build may be without some of them: see image_open.c. */
RFX_NODISCARD rfx_image_opener rfx_image_npy_open, rfx_image_png_open, rfx_image_jpeg_open,
    rfx_image_webp_open, rfx_image_jp2_open, rfx_image_bmp_rle_open, rfx_image_stb_open;

/* Level options->page of a Zarr folder or a slide, whatever its name. IO also where the library
 * that it needs is not there. */
RFX_NODISCARD rfx_image_opener rfx_image_zarr_open, rfx_image_slide_open;

/* A TIFF file. Where no page is asked for, grey pages of one size that are channels, or of which
 * nothing says what they are, are the picture's bands, and options->bands counts them. A stack that
 * is no set of channels is refused in words unless bands are chosen. A grey page beside which there
 * are others is not repeated for a network of three channels. */
RFX_NODISCARD rfx_image_opener rfx_image_tiff_pages_open;

/* One page of a TIFF; plane: of a page that has several, one behind another, uncompressed. */
RFX_NODISCARD enum rfx_status rfx_image_tiff_open(struct rfx_memory *mem, const char *name,
                                                  const struct rfx_image_options *options,
                                                  int64_t plane, struct rfx_image_backend **out,
                                                  struct rfx_error *err);

/* `name` is "synthetic:HxW[:seed]". */
RFX_NODISCARD rfx_image_opener rfx_image_synthetic_open;

/* A file for each band, as satellites' pictures are given: `name` is "bands:b2.tif,b3.tif". The
 * files' bands follow each other (alpha left out), and options->bands counts them all; files whose
 * bands are not chosen are closed again. UNSUPPORTED: the files have other sizes, samples or
 * orientations than the first. */
RFX_NODISCARD rfx_image_opener rfx_image_file_bands_open;

/* The fixed_bytes of every .npy file. */
size_t rfx_image_npy_source_bytes(void);

#define RFX_IMAGE_SYNTHETIC_PREFIX "synthetic:"
#define RFX_IMAGE_BANDS_PREFIX "bands:" /* before files, one for each band, with commas between */
#endif
