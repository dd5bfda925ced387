/* libtiff's input and output on top of an output file.
 *
 * libtiff writes strips or tiles one after the other, then the directory, then goes back to the
 * header or to the directory before once, which it reads first. So positions are either the end, or
 * before it, where bytes are replaced. */
#ifndef RFX_RFEXEC_OUTPUT_TIFF_TIFF_CLIENT_H
#define RFX_RFEXEC_OUTPUT_TIFF_TIFF_CLIENT_H

#include "rfexec/image/tiff/tiff_library.h"
#include "rfexec/output/output_file.h"

struct rfx_tiff_client {
    struct rfx_output_file *file;
    uint64_t at, end;          /* libtiff's position; bytes appended so far */
    enum rfx_status io_status; /* of the output file; once it is set nothing is written */
    struct rfx_error io_error;
    char words[200]; /* libtiff's first message */
};

/* Opens a new TIFF in client->file, BigTIFF or not; NULL: client->words may say why. The client
 * stays where it is as long as the TIFF. */
TIFF *rfx_tiff_client_open(struct rfx_tiff_client *client, const struct rfx_tiff_library *lib,
                           const char *path, bool big);

/* Why writing row `row` of `h` failed: the output file's failure, else libtiff's words. */
enum rfx_status rfx_tiff_client_failed(const struct rfx_tiff_client *client, const char *path,
                                       int64_t row, int64_t h, struct rfx_error *err);
#endif
