/* Private: what the pages of a TIFF are to each other: channels, slices, times, or unknown.
 *
 * Read from the first page's description (OME-XML 2016-06, ImageJ's "key=value" lines, tifffile's
 * JSON) and from the pages' sizes. ImageJ writes stacks above 4 GiB with one directory, whose
 * planes follow each other from the first strip on; their planes are numbered as pages. */
#ifndef RFX_RFEXEC_IMAGE_TIFF_TIFF_STACK_H
#define RFX_RFEXEC_IMAGE_TIFF_TIFF_STACK_H

#include "layers/core/memory.h"
#include "rfexec/image/image_source.h"

enum { RFX_STACK_NAMES = 64, RFX_STACK_NAME_BYTES = 64 };

struct rfx_tiff_stack {
    int64_t n;         /* pages (planes) of the first page's size and samples; 1: no stack */
    int64_t n_chain;   /* pages of the chain that are neither smaller copies nor masks */
    int samples, bits; /* of a pixel of the first page */
    int64_t h, w;      /* of the first page */
    int64_t c, z, t;   /* what the description says; 0: nothing */
    const char *says;  /* "OME-XML", "ImageJ metadata", "tifffile metadata"; NULL: nothing does */
    char axes[8];      /* as said, the longer ones: "CYX", "TZCYX"; "": not known */
    bool in_one;       /* n planes behind one another in one directory */
    bool reordered;    /* OME's TiffData name channels in another order than the pages' */
    int n_names;       /* of channels, that are known */
    int numbers[RFX_IMAGE_MAX_BANDS]; /* of the pages; of in_one planes: 0, 1, ... */
    char names[RFX_STACK_NAMES][RFX_STACK_NAME_BYTES];
};

/* Planes that the description names; 0: it names none. */
int64_t rfx_tiff_stack_planes(const struct rfx_tiff_stack *stack);

/* Whether the pages are channels, by what the description says, or by their sizes where it says
 * nothing. */
bool rfx_tiff_stack_is_bands(const struct rfx_tiff_stack *stack);

/* The stack in words, such as "3 pages, axes CYX, C 3, by OME-XML". */
void rfx_tiff_stack_words(const struct rfx_tiff_stack *stack, char *text, size_t size);

/* Reads the file's directories. A chain that breaks off is read as far as it goes. Statuses of
 * rfx_image_open, the text with the file's name. */
RFX_NODISCARD enum rfx_status rfx_tiff_stack_read(struct rfx_memory *mem, const char *path,
                                                  struct rfx_tiff_stack *out,
                                                  struct rfx_error *err);
#endif
