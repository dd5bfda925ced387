/* Private: sets the tags of a directory that is about to be written. */
#ifndef RFX_RFEXEC_OUTPUT_TIFF_TIFF_FIELDS_H
#define RFX_RFEXEC_OUTPUT_TIFF_TIFF_FIELDS_H

#include "rfexec/output/tiff/tiff_client.h"
#include "rfexec/output/tiff_write.h"

struct rfx_tiff_directory {
    const struct rfx_tiff_picture *picture; /* the picture; its channels lie side by side */
    int64_t strip_rows;                     /* rows per strip if there are no tiles */
    bool reduced;                           /* a smaller copy of another directory's picture */
    int n_below; /* number of directories written next that are SubIFDs of this one */
};

/* Sets the tags. UNSUPPORTED: this libtiff lacks the compression; OUT_OF_MEMORY; IO: the file
 * cannot be written (tiff_client.h). */
RFX_NODISCARD enum rfx_status rfx_tiff_fields_set(struct rfx_memory *mem, const char *path,
                                                  const struct rfx_tiff_client *client,
                                                  const struct rfx_tiff_library *lib, TIFF *tiff,
                                                  const struct rfx_tiff_directory *directory,
                                                  struct rfx_error *err);
#endif
