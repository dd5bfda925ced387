/* Private: the interface between image_source.c and the reader of one kind of image file.
 *
 * A backend delivers the stored samples (8 or 16 bits) row by row. image_source.c does all
 * preprocessing, so that preprocessing is the same for every kind of file. Float samples (.npy,
 * many TIFF files) are delivered without preprocessing. Invariants: 1. fixed_bytes counts every
 * byte that the backend ever holds, except the window; 2. a backend allocates memory in open and
 * set_window only; 3. an error text starts with the file name. */
#ifndef RFX_RFEXEC_IMAGE_IMAGE_BACKEND_H
#define RFX_RFEXEC_IMAGE_IMAGE_BACKEND_H

#include "layers/core/memory.h"
#include "layers/graph/tensor.h"
#include "rfexec/image/image_source.h"

#define RFX_IMAGE_ROOM_BYTES 8192 /* bytes of the buffer `room` of fetch; aligned for any type */
/* Largest number of rows or columns of a picture file; files of line cameras have millions. Both
 * sides, 512 bands and 8 bytes a sample multiply to less than 2^61. */
#define RFX_IMAGE_MAX_SIDE 16000000

struct rfx_image_backend;

struct rfx_image_backend_ops {
    /* Allocates the window (sources that are read by rows) or decodes the image (sources that are
     * decoded whole). NULL: nothing to do. */
    enum rfx_status (*set_window)(struct rfx_image_backend *b, int64_t rows, struct rfx_error *err);
    /* Points *samples at columns [x0, *end) of row y, where x0 < *end <= x1. The samples may lie in
     * `room`, a buffer of RFX_IMAGE_ROOM_BYTES, and are valid until the next call with the same
     * `room`. A source that is read by rows only decodes forward; the caller asks for rows of the
     * window only. */
    enum rfx_status (*fetch)(struct rfx_image_backend *b, int64_t y, int64_t x0, int64_t x1,
                             void *room, const void **samples, int64_t *end, struct rfx_error *err);
    /* Fills `rect` of `out` with floats. A backend has either this function or fetch. */
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
    const char *name;    /* name as the user gave it; outlives the backend */
    const char *kind;    /* kind of file; NULL: none */
    int64_t h, w, c;     /* c: samples per pixel, 1 or 3 (TIFF and floats: any) */
    int64_t images;      /* number of images of a batch, all of that size; 0: one */
    int sample_bits;     /* 8 or 16; 32: floats, delivered by read_floats or fetch */
    int bands;           /* bands of a pixel in the file; 0: not set, the picture has 1 or 3 */
    int n_alpha;         /* number of bands that the file calls alpha and that are not delivered */
    int64_t other_pages; /* number of further pages, if page 0 of a TIFF is read by default; grey is
                            then not repeated for three channels */
    char note[160];      /* tells the user how the file is read; "": nothing to tell */
    bool chosen;         /* the user chose the bands */
    bool is_colour;      /* red, green and blue are among the bands */
    double pixel_um[2];  /* width and height of a pixel in micrometres; 0: not known */
    int orientation; /* orientation as in TIFF's tag; h and w are those of the stored picture; 0:
                        stored as seen */
    int64_t whole_pixels; /* pixels of the whole image, if this is a rectangle of it; 0: this is the
                             whole image */
    bool random_access;
    bool concurrent; /* several threads may read different rows at a time */
    size_t fixed_bytes;
    size_t shared_bytes; /* part of fixed_bytes that counts once in a process for all open files of
                            this kind */
    /* size of a temporary file that is filled before the first row is delivered */
    size_t file_bytes;
    size_t window_row_bytes;
    double pass_picoseconds; /* time of decoding all rows (decoding.h); 0 with random access */
};

/* For openers. Allocates the struct of a backend: `bytes` bytes, whose first member is **out. Sets
 * ops, mem, name and kind, and all else to zero. `name` and `kind` are borrowed. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_image_backend_create(struct rfx_memory *mem, size_t bytes,
                                                       const struct rfx_image_backend_ops *ops,
                                                       const char *name, const char *kind,
                                                       struct rfx_image_backend **out,
                                                       struct rfx_error *err);

/* For openers. Returns `status`. Sets *out to `b` if `status` is OK, and frees `b` otherwise. */
RFX_NODISCARD enum rfx_status rfx_image_backend_finish(struct rfx_image_backend *b,
                                                       enum rfx_status status,
                                                       struct rfx_image_backend **out);

/* Makes an image of the floats that `b` delivers by read_floats. The image owns `b`. */
RFX_NODISCARD enum rfx_status rfx_image_of_backend(struct rfx_image_backend *b,
                                                   struct rfx_image **out, struct rfx_error *err);

/* Opens a picture. `name` and options->folder are borrowed and must outlive the backend. Fails like
 * rfx_image_open. */
typedef enum rfx_status rfx_image_opener(struct rfx_memory *mem, const char *name,
                                         const struct rfx_image_options *options,
                                         struct rfx_image_backend **out, struct rfx_error *err);

/* Makes an image of the 8 or 16-bit samples that `b` delivers by fetch, with all their channels,
 * preprocessed by `options`. The image owns `b`. INVALID_ARGUMENT: a mean or std is no number, or
 * they are neither one nor one for each channel. */
RFX_NODISCARD enum rfx_status rfx_image_of_samples(struct rfx_image_backend *b,
                                                   const struct rfx_image_options *options,
                                                   struct rfx_image **out, struct rfx_error *err);

/* Opens a picture of any kind with one of the functions below. */
RFX_NODISCARD rfx_image_opener rfx_image_backend_open;

/* Open files of one kind. A build may lack some of these functions: see image_open.c. */
RFX_NODISCARD rfx_image_opener rfx_image_npy_open, rfx_image_png_open, rfx_image_jpeg_open,
    rfx_image_webp_open, rfx_image_jp2_open, rfx_image_bmp_rle_open, rfx_image_stb_open;

/* Open level options->page of a Zarr folder or a slide, whatever its name. IO also: the library
 * that it needs is missing. */
RFX_NODISCARD rfx_image_opener rfx_image_zarr_open, rfx_image_slide_open;

/* Opens a TIFF file. If no page is chosen, grey pages of one size become bands of one picture,
 * provided that they are channels or that nothing says what they are; options->bands then counts
 * pages. Another stack of pages is refused with an explanation, unless bands are chosen. A grey
 * page of a file with further pages is not repeated for a network of three channels. */
RFX_NODISCARD rfx_image_opener rfx_image_tiff_pages_open;

/* Opens one page of a TIFF. `plane` selects one of several uncompressed planes that follow each
 * other in the page. */
RFX_NODISCARD enum rfx_status rfx_image_tiff_open(struct rfx_memory *mem, const char *name,
                                                  const struct rfx_image_options *options,
                                                  int64_t plane, struct rfx_image_backend **out,
                                                  struct rfx_error *err);

/* Opens "synthetic:HxW[:seed]". */
RFX_NODISCARD rfx_image_opener rfx_image_synthetic_open;

/* Opens "bands:b2.tif,b3.tif", a file for each band, as satellites' pictures are distributed. The
 * files' bands follow each other (alpha left out), and options->bands counts all of them. Files
 * whose bands are not chosen are closed again. UNSUPPORTED: a file has another size, sample type or
 * orientation than the first. */
RFX_NODISCARD rfx_image_opener rfx_image_file_bands_open;

/* Returns the fixed_bytes of a .npy file, the same for every one. */
size_t rfx_image_npy_source_bytes(void);

#define RFX_IMAGE_SYNTHETIC_PREFIX "synthetic:"
#define RFX_IMAGE_BANDS_PREFIX "bands:" /* followed by file names with commas between them */
#endif
