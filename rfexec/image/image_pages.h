/* Lists the images of a file: every directory of a TIFF, every level of a slide or Zarr folder, and
 * one image for other kinds.
 *
 * Only headers are read. A page that cannot be read as an image is listed with the reason. */
#ifndef RFX_RFEXEC_IMAGE_IMAGE_PAGES_H
#define RFX_RFEXEC_IMAGE_IMAGE_PAGES_H

#include "layers/core/memory.h"
#include "rfexec/image/image_source.h"

struct rfx_image_page {
    int number, parent; /* parent: the page of which this is a SubIFD; -1: none */
    const char *kind;   /* "TIFF", "PNG", "slide", ... */
    int64_t h, w;       /* rows and columns as stored */
    int bands, n_alpha; /* n_alpha: how many of the bands are alpha */
    int bits;           /* bits of a sample */
    const char *type;   /* type of samples: "unsigned", "signed", "float" or "complex" */
    bool reduced;       /* the page is a smaller copy of another page */
    int orientation;    /* 1: stored as seen; else as in TIFF's tag */
    /* tile_w 0: no tiles, tile_h is then the rows of a strip; both 0: no TIFF */
    int64_t tile_h, tile_w;
    const char *compression;  /* name of the compression, or NULL */
    struct rfx_error refusal; /* why the page cannot be read; text "": it can */
};

/* Called for each page in turn. */
typedef void rfx_image_page_fn(void *user, const struct rfx_image_page *page);

/* Calls fn for each image of the file. Fails with the statuses of rfx_image_open. MALFORMED also:
 * the chain of pages is broken; fn was called for the pages before. */
RFX_NODISCARD enum rfx_status rfx_image_pages(struct rfx_memory *mem, const char *path,
                                              rfx_image_page_fn *fn, void *user,
                                              struct rfx_error *err);

/* Call fn for each level of a Zarr folder or of a slide. */
RFX_NODISCARD enum rfx_status rfx_image_zarr_levels(struct rfx_memory *mem, const char *name,
                                                    rfx_image_page_fn *fn, void *user,
                                                    struct rfx_error *err);
RFX_NODISCARD enum rfx_status rfx_image_slide_levels(struct rfx_memory *mem, const char *name,
                                                     rfx_image_page_fn *fn, void *user,
                                                     struct rfx_error *err);
#endif
