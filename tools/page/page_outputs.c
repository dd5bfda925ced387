/* Outputs on a page: figures, a histogram, pictures of the first channels. */
#include <math.h>

#include "rfexec/output/image_write.h"
#include "tools/cli/report.h"
#include "tools/overlay/colours.h"
#include "tools/page/page_sections.h"

enum { WIDTH = 640, HEIGHT = 170, BASE = 140, SHOWN_SIDE = 320 };

struct range {
    double lo, hi;
};

static struct range range_of(const struct rfx_map_preview *p, int64_t channel) {
    struct range r = {INFINITY, -INFINITY};
    for (int64_t i = 0; i < p->rows * p->cols; ++i) {
        double mean = rfx_map_preview_mean(p, channel, i / p->cols, i % p->cols);
        if (isnan(mean)) continue;
        r.lo = fmin(r.lo, mean);
        r.hi = fmax(r.hi, mean);
    }
    return r;
}

static enum rfx_status put_rows(const struct rfx_map_preview *p, int64_t channel,
                                struct range range, struct rfx_png_writer *png,
                                struct rfx_error *err) {
    unsigned char row[3 * RFX_PREVIEW_SIDE];
    enum rfx_status status = RFX_OK;
    for (int64_t y = 0; y < p->rows && status == RFX_OK; ++y) {
        for (int64_t x = 0; x < p->cols; ++x) {
            double mean = rfx_map_preview_mean(p, channel, y, x);
            double wide = range.hi - range.lo;
            if (isnan(mean))
                for (int k = 0; k < 3; ++k) row[3 * x + k] = rfx_no_value_colour[k];
            else
                rfx_heat_colour(wide > 0 ? (mean - range.lo) / wide : 0.5, row + 3 * x);
        }
        status = rfx_png_write_row(png, row, err);
    }
    return status == RFX_OK ? rfx_png_write_commit(png, err) : status;
}

static void put_picture(struct rfx_run_page *page, const struct rfx_map_preview *p,
                        int64_t channel) {
    struct rfx_html *html = &page->html;
    struct rfx_png_writer *png = NULL;
    struct range range = range_of(p, channel);
    double scale = (double)SHOWN_SIDE / (double)(p->rows > p->cols ? p->rows : p->cols);
    rfx_html_format(html,
                    "<figure><img alt=\"channel %lld\" width=\"%.0f\" height=\"%.0f\" "
                    "src=\"data:image/png;base64,",
                    (long long)channel + 1, ceil(scale * (double)p->cols),
                    ceil(scale * (double)p->rows));
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_png_write_open_to(page->mem, "preview", rfx_html_base64_part, html,
                                                   p->rows, p->cols, 3, 8, &png, &err);
    if (status == RFX_OK) status = put_rows(p, channel, range, png, &err);
    rfx_png_write_free(png);
    rfx_html_fail(html, status, &err);
    rfx_html_base64_end(html);
    if (range.lo <= range.hi)
        rfx_html_format(html,
                        "\"/><figcaption>channel %lld: %.6g dark, %.6g bright</figcaption>"
                        "</figure>\n",
                        (long long)channel + 1, range.lo, range.hi);
    else
        rfx_html_format(html,
                        "\"/><figcaption>channel %lld: no finite value</figcaption>"
                        "</figure>\n",
                        (long long)channel + 1);
}

static void put_histogram(struct rfx_html *html, const struct rfx_value_sketch *s) {
    int n = rfx_value_sketch_used(s);
    uint64_t most = 1;
    for (int i = 0; i < n; ++i) most = s->bins[i] > most ? s->bins[i] : most;
    if (n == 0) return;
    rfx_html_format(html, "<svg viewBox=\"0 0 %d %d\" class=\"histogram\" role=\"img\">\n", WIDTH,
                    HEIGHT);
    double step = (double)WIDTH / n;
    for (int i = 0; i < n; ++i) {
        double h = (double)s->bins[i] / (double)most * (BASE - 10);
        if (s->bins[i] > 0 && h < 1) h = 1; /* what is there can be seen */
        rfx_html_format(html,
                        "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
                        "fill=\"#0072b2\"><title>%.6g to %.6g: %llu</title></rect>\n",
                        step * i, BASE - h, step * 0.92, h, rfx_value_sketch_edge(s, i),
                        rfx_value_sketch_edge(s, i + 1), (unsigned long long)s->bins[i]);
    }
    rfx_html_format(html,
                    "<path d=\"M0 %d H%d\" stroke=\"#888\"/><text x=\"0\" y=\"%d\">%.6g</text>"
                    "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.6g</text></svg>\n",
                    BASE, WIDTH, BASE + 18, rfx_value_sketch_edge(s, 0), WIDTH, BASE + 18,
                    rfx_value_sketch_edge(s, n));
}

void rfx_page_output(struct rfx_run_page *page, const struct rfx_cli_output *output, int k) {
    struct rfx_html *html = &page->html;
    const struct rfx_page_output *own = &page->outputs[k];
    const struct rfx_value_sketch *s = &own->values;
    char shape[96];
    rfx_html_raw(html, "<h3>");
    rfx_html_text(html, output->name);
    rfx_html_raw(html, "</h3>\n<p>");
    rfx_html_text(html, rfx_human_shape(&output->shape, shape));
    rfx_html_format(html, ", hash %s", output->hash);
    if (s->finite > 0)
        rfx_html_format(html, "; values from %.6g to %.6g, mean %.6g", (double)s->min,
                        (double)s->max, s->sum / (double)s->finite);
    rfx_html_format(html, "; %lld finite, %lld NaN, %lld inf, %lld -inf</p>\n",
                    (long long)s->finite, (long long)s->nan, (long long)s->plus_inf,
                    (long long)s->minus_inf);
    put_histogram(html, s);
    for (int64_t c = 0; own->preview.mem != NULL && c < own->preview.channels; ++c)
        put_picture(page, &own->preview, c);
    if (own->preview.mem != NULL)
        rfx_html_format(html,
                        "<p class=\"note\">The first %lld of %lld channels, %lldx%lld pixels shown "
                        "as %lldx%lld means; red: no finite value.</p>\n",
                        (long long)own->preview.channels, (long long)own->preview.c,
                        (long long)own->preview.h, (long long)own->preview.w,
                        (long long)own->preview.rows, (long long)own->preview.cols);
}
