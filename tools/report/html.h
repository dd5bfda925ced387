/* Writes one HTML page into an output file, with images inline.
 *
 * Invariants: 1. text that does not come from this program (names, paths) is written by
 * rfx_html_text, which escapes it; 2. the page is well-formed XML too, so that tests can parse it;
 * 3. the first failure is kept and nothing is written after it; 4. no memory is allocated. */
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

/* Keeps a failure, unless there was one before. RFX_OK changes nothing. */
void rfx_html_fail(struct rfx_html *html, enum rfx_status status, const struct rfx_error *err);

/* Writes markup as it is. */
void rfx_html_raw(struct rfx_html *html, const char *markup);

/* Writes markup with numbers in it, up to 1,000 characters; no text from outside. */
void rfx_html_format(struct rfx_html *html, const char *format, ...) RFX_PRINTF(2, 3);

/* Writes text into an element or a quoted attribute. */
void rfx_html_text(struct rfx_html *html, const char *text);

/* Writes bytes in base64. user: struct rfx_html, as encoders pass it (image_write.h). The caller
 * calls rfx_html_base64_end after the last bytes. */
RFX_NODISCARD enum rfx_status rfx_html_base64(void *user, const void *data, size_t bytes,
                                              struct rfx_error *err);
void rfx_html_base64_end(struct rfx_html *html);
#endif
