/* Memory over the time of a run. */
#include <math.h>

#include "tools/cli/report.h"
#include "tools/page/page_sections.h"

enum { LEFT = 90, WIDTH = 1000, TOP = 24, HEIGHT = 260, BOTTOM = 50 };
static const double MIB = 1048576.0;

size_t rfx_page_fixed_bytes(const struct rfx_plan *plan) {
    return plan->peak_bytes - plan->bytes.arena;
}

/* From bytes and interval to the picture. */
struct axes {
    size_t most;
    int intervals;
};

static double x_of(const struct axes *axes, double interval) {
    return LEFT + (WIDTH - LEFT) * interval / axes->intervals;
}

static double y_of(const struct axes *axes, size_t bytes) {
    return TOP + HEIGHT * (1.0 - (double)bytes / (double)axes->most);
}

/* A level line across, with what it is. */
static void put_level(struct rfx_html *html, const struct axes *axes, size_t bytes,
                      const char *colour, const char *id, const char *words) {
    char text[RFX_HUMAN_CHARS];
    double y = y_of(axes, bytes);
    rfx_html_format(html,
                    "<path id=\"%s\" data-bytes=\"%zu\" d=\"M%d %.2f H%d\" stroke=\"%s\" "
                    "stroke-width=\"2\" stroke-dasharray=\"7 4\"/>\n"
                    "<text x=\"%d\" y=\"%.2f\" fill=\"%s\">%s %s</text>\n",
                    id, bytes, LEFT, y, WIDTH, colour, LEFT + 6, y - 4, colour, words,
                    rfx_human_bytes(bytes, text));
}

/* The planned bytes as an area of steps, upon what is there all the time. */
static void put_planned(struct rfx_html *html, const struct axes *axes,
                        const struct rfx_run_timeline *t, size_t fixed) {
    rfx_html_format(html, "<path id=\"planned\" fill=\"#56b4e9\" d=\"M%d %.2f", LEFT,
                    y_of(axes, fixed));
    for (int i = 0; i < t->used; ++i)
        rfx_html_format(html, " V%.2f H%.2f", y_of(axes, fixed + t->planned[i]), x_of(axes, i + 1));
    rfx_html_format(html,
                    " V%.2f Z\"/>\n<rect x=\"%d\" y=\"%.2f\" width=\"%d\" height=\"%.2f\" "
                    "fill=\"#bbb\"/>\n",
                    y_of(axes, fixed), LEFT, y_of(axes, fixed), WIDTH - LEFT,
                    TOP + HEIGHT - y_of(axes, fixed));
}

static void put_resident(struct rfx_html *html, const struct axes *axes,
                         const struct rfx_run_timeline *t) {
    bool any = false;
    rfx_html_raw(html,
                 "<path id=\"resident\" fill=\"none\" stroke=\"#d55e00\" stroke-width=\"2\" d=\"");
    for (int i = 0; i < t->used; ++i) {
        if (t->resident[i] == 0) continue;
        rfx_html_format(html, "%s%.2f %.2f", any ? " L" : "M", x_of(axes, i + 0.5),
                        y_of(axes, t->resident[i]));
        any = true;
    }
    if (!any) rfx_html_format(html, "M%d %d", LEFT, TOP + HEIGHT);
    rfx_html_raw(html, "\"/>\n");
}

static void put_axes(struct rfx_html *html, const struct axes *axes, double seconds) {
    rfx_html_format(html,
                    "<path d=\"M%d %d V%d H%d\" fill=\"none\" stroke=\"#555\"/>\n"
                    "<text x=\"%d\" y=\"%d\">0 s</text><text x=\"%d\" y=\"%d\" "
                    "text-anchor=\"end\">%.3g s</text>\n",
                    LEFT, TOP, TOP + HEIGHT, WIDTH, LEFT, TOP + HEIGHT + 18, WIDTH,
                    TOP + HEIGHT + 18, seconds);
    for (int k = 0; k <= 4; ++k)
        rfx_html_format(html, "<text x=\"%d\" y=\"%.2f\" text-anchor=\"end\">%.4g MiB</text>\n",
                        LEFT - 6, TOP + HEIGHT * (1.0 - k / 4.0) + 4,
                        (double)axes->most / MIB * k / 4.0);
    rfx_html_format(html,
                    "<rect x=\"%d\" y=\"4\" width=\"12\" height=\"12\" fill=\"#56b4e9\"/>"
                    "<text x=\"%d\" y=\"14\">arena in use, as planned</text>"
                    "<rect x=\"%d\" y=\"4\" width=\"12\" height=\"12\" fill=\"#bbb\"/>"
                    "<text x=\"%d\" y=\"14\">weights, scratch, image, files, reserve</text>"
                    "<rect x=\"%d\" y=\"9\" width=\"12\" height=\"3\" fill=\"#d55e00\"/>"
                    "<text x=\"%d\" y=\"14\">the process, as the system counts it</text>\n",
                    LEFT, LEFT + 18, LEFT + 230, LEFT + 248, LEFT + 540, LEFT + 558);
}

void rfx_page_memory_chart(struct rfx_run_page *page, const struct rfx_run_report *report) {
    const struct rfx_run_timeline *t = &page->timeline;
    size_t budget = page->options->plan.memory_bytes, peak = rfx_peak_rss_bytes();
    size_t most = page->job->plan->peak_bytes;
    most = budget > most ? budget : most;
    most = peak > most ? peak : most;
    struct axes axes = {most + most / 16, t->used > 0 ? t->used : 1};
    rfx_html_format(&page->html,
                    "<h2>Memory over time</h2>\n<svg viewBox=\"0 0 %d %d\" id=\"memory\" "
                    "role=\"img\">\n",
                    WIDTH, TOP + HEIGHT + BOTTOM);
    put_planned(&page->html, &axes, t, rfx_page_fixed_bytes(page->job->plan));
    put_resident(&page->html, &axes, t);
    if (budget != 0) put_level(&page->html, &axes, budget, "#b00020", "budget", "budget");
    put_level(&page->html, &axes, peak, "#d55e00", "peak", "measured peak");
    put_axes(&page->html, &axes, report->seconds);
    rfx_html_raw(&page->html,
                 "</svg>\n<p class=\"note\">The system counts pages once they have been touched: "
                 "the process keeps those of the arena, and is below what is planned as long as "
                 "the reserve for libraries and stacks is not used up. The peak is that of the "
                 "whole process from its start until this page was begun.</p>\n");
}
