/* Writing one HTML page into an output file: text of others escaped, pictures inline.
 *
 * Invariants: 1. text that this program did not write itself (names, paths) goes through
 * rfx_html_text only; 2. what is written is well-formed XML too, so that any parser can hold it to
 * account; 3. the first failure stays, what follows is not written; 4. no memory is allocated. */
#ifndef RFX_TOOLS_REPORT_HTML_H
#define RFX_TOOLS_REPORT_HTML_H

#include "rfexec/output/output_file.h"

struct rfx_html {
    struct rfx_output_file *file; /* borrowed */
    enum rfx_status status;
    struct rfx_error err; /* of the status */
    unsigned char rest[3];
    int n_rest; /* bytes that wait for the third one of a group of base64 */
};

/* Keeps a failure of what writes through it, unless there was one before; of RFX_OK nothing. */
void rfx_html_fail(struct rfx_html *html, enum rfx_status status, const struct rfx_error *err);

/* Markup as it is. */
void rfx_html_raw(struct rfx_html *html, const char *markup);

/* Markup with numbers in it, no texts of others; up to 1,000 characters. */
void rfx_html_format(struct rfx_html *html, const char *format, ...) RFX_PRINTF(2, 3);

/* Text, in an element or in a quoted attribute. */
void rfx_html_text(struct rfx_html *html, const char *text);

/* Bytes in base64; after the last ones rfx_html_base64_end. The second is for encoders
 * (image_write.h), which have the page as `user`. */
void rfx_html_base64(struct rfx_html *html, const void *data, size_t bytes);
enum rfx_status rfx_html_base64_part(void *user, const void *data, size_t bytes,
                                     struct rfx_error *err);
void rfx_html_base64_end(struct rfx_html *html);
#endif
