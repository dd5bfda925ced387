/* Private: the directories of a TIFF file. Each directory is an image and has a page number: first
 * the directories of the file's chain, 0, 1, ..., then the SubIFDs of the first directory, of the
 * second, ... SubIFDs hold the levels of pyramids.
 *
 * The handle must have been opened with `pages`. libtiff then reads directories one by one, without
 * their tables of strips and tiles, which may be large. */
#ifndef RFX_RFEXEC_IMAGE_TIFF_TIFF_DIRECTORIES_H
#define RFX_RFEXEC_IMAGE_TIFF_TIFF_DIRECTORIES_H

#include "layers/core/memory.h"
#include "rfexec/image/tiff/tiff_library.h"

/* Most directories and SubIFDs that are read; others are ignored. */
#define RFX_TIFF_MAX_DIRECTORIES 65536
#define RFX_TIFF_MAX_SUB_IFDS 4096

/* Called while the directory of page `number` is current. parent: the page of which it is a SubIFD,
 * or -1. If it returns false, the walk ends and the directory stays current. */
typedef bool rfx_tiff_directory_fn(void *user, int number, int parent);

/* Calls fn for all pages. MALFORMED: a directory cannot be read; the text does not have the file's
 * name. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_tiff_directories_walk(
    struct rfx_memory *mem, struct rfx_tiff_handle *handle, const struct rfx_tiff_library *lib,
    struct rfx_tiff_log *log, rfx_tiff_directory_fn *fn, void *user, struct rfx_error *err);

/* Makes the directory of a page current. UNSUPPORTED: the file has no page of that number; the text
 * lists its pages. */
RFX_NODISCARD enum rfx_status rfx_tiff_directory_select(struct rfx_memory *mem,
                                                        struct rfx_tiff_handle *handle,
                                                        const struct rfx_tiff_library *lib,
                                                        struct rfx_tiff_log *log, int64_t page,
                                                        struct rfx_error *err);
#endif
