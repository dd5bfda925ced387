/* Private: the relation between the pages of a TIFF: channels, slices, times, or unknown.
 *
 * It is read from the first page's description (OME-XML 2016-06, ImageJ's "key=value" lines,
 * tifffile's JSON) and from the pages' sizes. ImageJ writes stacks above 4 GiB with one directory,
 * whose planes follow each other from the first strip on; such planes are numbered like pages. */
#ifndef RFX_RFEXEC_IMAGE_TIFF_TIFF_STACK_H
#define RFX_RFEXEC_IMAGE_TIFF_TIFF_STACK_H

#include "layers/core/memory.h"
#include "rfexec/image/image_source.h"

enum { RFX_STACK_NAMES = 64, RFX_STACK_NAME_BYTES = 64 };

struct rfx_tiff_stack {
    int64_t n; /* number of pages (planes) of the first page's size and samples; 1: no stack */
    int64_t n_chain;   /* number of pages of the chain that are neither smaller copies nor masks */
    int samples, bits; /* samples of a pixel and bits of a sample of the first page */
    int64_t h, w;      /* size of the first page */
    int64_t c, z, t;   /* numbers of channels, slices and times in the description; 0: not given */
    const char *says; /* kind of the description: "OME-XML", "ImageJ metadata", "tifffile metadata";
                         NULL: none */
    char axes[8];     /* axes longer than 1 in the description: "CYX", "TZCYX"; "": not known */
    bool in_one;      /* n planes follow each other in one directory */
    bool reordered;   /* OME's TiffData give channels another order than the pages' */
    int n_names;      /* number of channels whose names are known */
    int numbers[RFX_IMAGE_MAX_BANDS]; /* page numbers; with in_one the planes 0, 1, ... */
    char names[RFX_STACK_NAMES][RFX_STACK_NAME_BYTES];
};

/* Returns the number of planes in the description; 0: not given. */
int64_t rfx_tiff_stack_planes(const struct rfx_tiff_stack *stack);

/* Returns whether the pages are channels: according to the description, or if there is none
 * according to their sizes. */
bool rfx_tiff_stack_is_bands(const struct rfx_tiff_stack *stack);

/* Describes the stack in words, such as "3 pages, axes CYX, C 3, by OME-XML". */
void rfx_tiff_stack_words(const struct rfx_tiff_stack *stack, char *text, size_t size);

/* Reads the file's directories. A broken chain is read as far as it goes. Fails with the statuses
 * of rfx_image_open; the text has the file's name. */
RFX_NODISCARD enum rfx_status rfx_tiff_stack_read(struct rfx_memory *mem, const char *path,
                                                  struct rfx_tiff_stack *out,
                                                  struct rfx_error *err);
#endif
