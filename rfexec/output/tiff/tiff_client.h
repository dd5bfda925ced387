/* libtiff's input and output on top of an output file.
 *
 * libtiff writes strips or tiles one after the other, then the directory. Then it goes back once to
 * the header or to the previous directory, which it reads first. So each write is either at the
 * end, or replaces bytes before the end. */
#ifndef RFX_RFEXEC_OUTPUT_TIFF_TIFF_CLIENT_H
#define RFX_RFEXEC_OUTPUT_TIFF_TIFF_CLIENT_H

#include "rfexec/image/tiff/tiff_library.h"
#include "rfexec/output/output_file.h"

struct rfx_tiff_client {
    struct rfx_output_file *file;
    uint64_t at, end;          /* libtiff's position; bytes appended so far */
    enum rfx_status io_status; /* status of the output file; after a failure nothing is written */
    struct rfx_error io_error;
    char words[200]; /* libtiff's first message */
};

/* Opens a new TIFF in client->file, as BigTIFF if `big`. Returns NULL on failure; client->words may
 * have the reason. The client must not move while the TIFF is open. */
TIFF *rfx_tiff_client_open(struct rfx_tiff_client *client, const struct rfx_tiff_library *lib,
                           const char *path, bool big);

/* Returns the status of a failure to write row `row` of `h`, and writes its text: the output file's
 * failure, else libtiff's message. */
enum rfx_status rfx_tiff_client_failed(const struct rfx_tiff_client *client, const char *path,
                                       int64_t row, int64_t h, struct rfx_error *err);
#endif
