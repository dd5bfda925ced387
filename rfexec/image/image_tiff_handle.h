/* Private: one open TIFF of libtiff's on a picture file, and what libtiff has to say about it.
 *
 * libtiff reads through positions of the handle's own, so several handles share one file. Nothing
 * is ever printed: the first complaint is kept. */
#ifndef RFX_RFEXEC_IMAGE_IMAGE_TIFF_HANDLE_H
#define RFX_RFEXEC_IMAGE_IMAGE_TIFF_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "rfexec/image/image_file.h"
#include "rfexec/image/tiff_library.h"

struct rfx_tiff_log {
    bool in_header;  /* a directory is being read: most warnings are of no account */
    bool complained; /* since the last clear */
    bool no_memory;  /* an allocation had failed when the first complaint came */
    char words[200]; /* the first complaint; empty: none */
};

struct rfx_tiff_handle {
    struct rfx_image_file *file;
    int64_t at;
    TIFF *tif; /* NULL: closed */
};

/* Before a call of libtiff: nothing has been said, and no allocation has failed (errno). */
void rfx_tiff_log_clear(struct rfx_tiff_log *log);

/* Right after a call that failed: whether for want of memory, which libtiff has no word for. */
bool rfx_tiff_log_has_no_memory(const struct rfx_tiff_log *log);

/* Opens the first directory of `file`, or no directory yet for `pages` (pages/tiff_pages.h); file
 * and log are borrowed until close, and the handle must not move. False when it cannot be read,
 * with the reason in the log (empty: no memory, or the file could not be read). */
bool rfx_tiff_handle_open(struct rfx_tiff_handle *handle, const struct rfx_tiff_library *lib,
                          struct rfx_image_file *file, bool pages, struct rfx_tiff_log *log);

/* Closes; a closed handle is fine. */
void rfx_tiff_handle_close(struct rfx_tiff_handle *handle, const struct rfx_tiff_library *lib);
#endif
