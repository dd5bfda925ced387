/* The input with an output over it on a page: the small copy that tools/overlay has drawn. */
#include <math.h>

#include "rfexec/output/image_write.h"
#include "tools/page/page_sections.h"

enum { SHOWN_SIDE = 640 };

static enum rfx_status put_rows(const struct rfx_small_copy *copy, struct rfx_png_writer *png,
                                struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int64_t y = 0; y < copy->rows && status == RFX_OK; ++y)
        status = rfx_png_write_row(png, copy->rgb + 3 * y * copy->cols, err);
    return status == RFX_OK ? rfx_png_write_commit(png, err) : status;
}

void rfx_page_overlay(struct rfx_run_page *page) {
    if (page->overlay == NULL) return;
    const struct rfx_small_copy *copy = &page->overlay->small;
    struct rfx_html *html = &page->html;
    struct rfx_png_writer *png = NULL;
    struct rfx_error err = {{0}};
    char text[RFX_OVERLAY_TEXT];
    double scale = (double)SHOWN_SIDE / (double)(copy->rows > copy->cols ? copy->rows : copy->cols);
    rfx_html_format(html,
                    "<h2>Over the picture</h2>\n<figure><img class=\"overlay\" alt=\"the input "
                    "with an output over it\" width=\"%.0f\" height=\"%.0f\" "
                    "src=\"data:image/png;base64,",
                    ceil(scale * (double)copy->cols), ceil(scale * (double)copy->rows));
    enum rfx_status status = rfx_png_write_open_to(page->mem, "overlay", rfx_html_base64_part, html,
                                                   copy->rows, copy->cols, 3, 8, &png, &err);
    if (status == RFX_OK) status = put_rows(copy, png, &err);
    rfx_png_write_free(png);
    rfx_html_fail(html, status, &err);
    rfx_html_base64_end(html);
    rfx_html_raw(html, "\"/><figcaption>");
    rfx_overlay_describe(page->overlay, text);
    rfx_html_text(html, text);
    rfx_html_format(
        html,
        "</figcaption></figure>\n<p class=\"note\">%lldx%lld of %lldx%lld pixels; red: no "
        "finite value, or no label. --overlay writes all of them, --overlay-of and "
        "--overlay-output say what is shown.</p>\n",
        (long long)copy->rows, (long long)copy->cols, (long long)copy->h, (long long)copy->w);
}
