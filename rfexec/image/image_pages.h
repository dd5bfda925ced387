/* Lists the images of a file: one, but of a TIFF every directory, and of slides and Zarr folders
 * every level.
 *
 * Only headers are read. A page that cannot be read as an image is listed with the reason. */
#ifndef RFX_RFEXEC_IMAGE_IMAGE_PAGES_H
#define RFX_RFEXEC_IMAGE_IMAGE_PAGES_H

#include "layers/core/memory.h"
#include "rfexec/image/image_source.h"

struct rfx_image_page {
    int number, parent;       /* parent: the page whose SubIFD it is; -1: of the file itself */
    const char *kind;         /* "TIFF", "PNG", "slide", ... */
    int64_t h, w;             /* as stored */
    int bands, n_alpha;       /* n_alpha: of the bands */
    int bits;                 /* of a sample */
    const char *type;         /* of samples: "unsigned", "signed", "float" or "complex" */
    bool reduced;             /* a smaller copy of another page */
    int orientation;          /* 1: as stored; else see TIFF's tag */
    int64_t tile_h, tile_w;   /* tile_w 0: no tiles; tile_h: rows of a strip, 0: no TIFF */
    const char *compression;  /* a name, or NULL */
    struct rfx_error refusal; /* why the page is not read; text "": it is */
};

/* Each page in turn. */
typedef void rfx_image_page_fn(void *user, const struct rfx_image_page *page);

/* Statuses of rfx_image_open, for the file; MALFORMED also where its chain of pages breaks off,
 * after those before it have been told. */
RFX_NODISCARD enum rfx_status rfx_image_pages(struct rfx_memory *mem, const char *path,
                                              rfx_image_page_fn *fn, void *user,
                                              struct rfx_error *err);

/* The same of the levels of a Zarr folder, and of a slide. */
RFX_NODISCARD enum rfx_status rfx_image_zarr_levels(struct rfx_memory *mem, const char *name,
                                                    rfx_image_page_fn *fn, void *user,
                                                    struct rfx_error *err);
RFX_NODISCARD enum rfx_status rfx_image_slide_levels(struct rfx_memory *mem, const char *name,
                                                     rfx_image_page_fn *fn, void *user,
                                                     struct rfx_error *err);
#endif
