/* Collects the data of a report and writes its sections; see html_report.h. */
#include "tools/report/html_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "layers/core/printable.h"
#include "layers/graph/op.h"
#include "layers/kernels/kernels.h"
#include "rfexec/output/image_write.h"
#include "rfexec/run/model.h"
#include "tiler/plan/mode.h"
#include "tiler/plan/splits.h"
#include "tools/cli/report.h"
#include "tools/report/overlay_drawing.h"
#include "tools/study/machine_speed.h"

/* Number of outputs with preview images. Histograms are made for all outputs. */
enum { REPORT_PREVIEWS = 4 };

/* The plan: where the buffers of each stage lie in the arena. */

enum { PLAN_LEFT = 70, PLAN_WIDTH = 1000, PLAN_TOP = 24, PLAN_HEIGHT = 340, PLAN_BOTTOM = 44 };

static const struct {
    const char *name, *fill;
} kinds[] = {
    [RFX_ARENA_STORED] = {"whole maps", "#e69f00"},
    [RFX_ARENA_LOCAL] = {"rows inside a stage", "#56b4e9"},
    [RFX_ARENA_FRESH] = {"staging rows of a step", "#009e73"},
    [RFX_ARENA_PACKED] = {"weights of the stage", "#cc79a7"},
};
_Static_assert(sizeof kinds / sizeof kinds[0] == RFX_ARENA_COUNT, "a colour per kind");

/* Place of a stage in the drawing: [x, x + width). */
struct slot {
    double x, width;
    int first, steps; /* drawn steps: of the nodes that the stage computes */
};

static struct slot slot_of(const struct rfx_plan *plan, int stage) {
    double width = (double)(PLAN_WIDTH - PLAN_LEFT) / plan->n_stages;
    const struct rfx_stage *s = &plan->stages[stage];
    return (struct slot){PLAN_LEFT + width * stage, width, s->first, s->last - s->first + 1};
}

static double slot_x(const struct slot *slot, int step) {
    int at = step - slot->first;
    at = at < 0 ? 0 : at > slot->steps ? slot->steps : at;
    return slot->x + slot->width * at / slot->steps;
}

static double address_y(size_t address, size_t arena) {
    return PLAN_TOP + PLAN_HEIGHT - (double)PLAN_HEIGHT * (double)address / (double)arena;
}

static void put_box(struct rfx_html_report *page, const struct slot *slot,
                    const struct rfx_arena_box *box, size_t arena) {
    double x = slot_x(slot, box->first), right = slot_x(slot, box->last + 1);
    double y = address_y(box->offset + box->bytes, arena), below = address_y(box->offset, arena);
    char bytes[RFX_HUMAN_CHARS];
    if (right - x < 0.05 || below - y < 0.05) return; /* too small to be seen */
    rfx_html_format(&page->html,
                    "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\" "
                    "stroke=\"#fff\" stroke-width=\"0.4\"><title>",
                    x, y, right - x, below - y, kinds[box->kind].fill);
    rfx_html_text(&page->html, page->job->plan->graph->nodes[box->node].name);
    rfx_html_format(&page->html, ", %s: %s at byte %zu</title></rect>\n", kinds[box->kind].name,
                    rfx_human_bytes(box->bytes, bytes), box->offset);
}

static void put_stage(struct rfx_html_report *page, int stage, size_t arena) {
    const struct rfx_plan *plan = page->job->plan;
    struct slot slot = slot_of(plan, stage);
    rfx_arena_use_stage(page->use, stage);
    for (int i = 0; i < page->use->n_boxes; ++i) put_box(page, &slot, &page->use->boxes[i], arena);
    rfx_html_format(&page->html,
                    "<path d=\"M%.2f %d V%d\" stroke=\"#555\" stroke-dasharray=\"3 3\"/>\n", slot.x,
                    PLAN_TOP, PLAN_TOP + PLAN_HEIGHT);
    if (slot.width < 40) return; /* room for a number */
    rfx_html_format(&page->html, "<text x=\"%.2f\" y=\"%d\">stage %d</text>\n", slot.x + 3,
                    PLAN_TOP + PLAN_HEIGHT + 16, stage + 1);
}

static void put_stage_words(struct rfx_html_report *page, int stage) {
    const struct rfx_plan *plan = page->job->plan;
    const struct rfx_stage *s = &plan->stages[stage];
    char words[RFX_PLAN_TEXT];
    int target = s->spec.n_targets > 0 ? s->targets[s->spec.n_targets - 1] : s->last;
    (void)s->spec.mode->describe(&s->spec, rfx_split_label(plan->graph, target), false, words,
                                 sizeof words);
    rfx_trim_cut_character(words);
    rfx_html_raw(&page->html, "<li>");
    rfx_html_text(&page->html, words);
    rfx_html_raw(&page->html, "</li>\n");
}

static void put_legend(struct rfx_html_report *page) {
    for (int k = 0; k < RFX_ARENA_COUNT; ++k)
        rfx_html_format(&page->html,
                        "<rect x=\"%d\" y=\"6\" width=\"12\" height=\"12\" fill=\"%s\"/>"
                        "<text x=\"%d\" y=\"16\">%s</text>\n",
                        PLAN_LEFT + 200 * k, kinds[k].fill, PLAN_LEFT + 200 * k + 18,
                        kinds[k].name);
}

/* Draws stages from left to right, addresses upwards, and a box for each buffer. */
static void put_plan(struct rfx_html_report *page) {
    const struct rfx_plan *plan = page->job->plan;
    size_t arena = plan->bytes.arena > 0 ? plan->bytes.arena : 1;
    char text[RFX_HUMAN_CHARS];
    rfx_html_raw(&page->html, "<h2>The plan</h2>\n<ol>\n");
    for (int s = 0; s < plan->n_stages; ++s) put_stage_words(page, s);
    rfx_html_format(&page->html, "</ol>\n<svg viewBox=\"0 0 %d %d\" id=\"plan\" role=\"img\">\n",
                    PLAN_WIDTH, PLAN_TOP + PLAN_HEIGHT + PLAN_BOTTOM);
    put_legend(page);
    for (int s = 0; s < plan->n_stages; ++s) put_stage(page, s, arena);
    rfx_html_format(&page->html,
                    "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" "
                    "stroke=\"#555\"/>\n<text x=\"%d\" y=\"%d\" text-anchor=\"end\">0</text>\n"
                    "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n</svg>\n",
                    PLAN_LEFT, PLAN_TOP, PLAN_WIDTH - PLAN_LEFT, PLAN_HEIGHT, PLAN_LEFT - 6,
                    PLAN_TOP + PLAN_HEIGHT, PLAN_LEFT - 6, PLAN_TOP + 10,
                    rfx_human_bytes(plan->bytes.arena, text));
    rfx_html_raw(&page->html,
                 "<p class=\"note\">The arena is one block of memory that all feature maps share. "
                 "Addresses go upwards; the layers of each stage follow each other from left to "
                 "right. Where two boxes overlap, a layer overwrites rows of its input that are no "
                 "longer needed. Hold the pointer over a box to see its layer.</p>\n");
}

/* Memory over the time of the run. */

enum {
    MEMORY_LEFT = 90,
    MEMORY_WIDTH = 1000,
    MEMORY_TOP = 24,
    MEMORY_HEIGHT = 260,
    MEMORY_BOTTOM = 50
};
static const double MIB = 1048576.0;

/* Returns the bytes that the process holds during the whole run, besides the arena. */
static size_t fixed_bytes(const struct rfx_plan *plan) {
    return plan->peak_bytes - plan->bytes.arena;
}

/* Scales of the chart, which convert intervals and bytes to coordinates. */
struct axes {
    size_t most;   /* bytes at the upper edge */
    int intervals; /* intervals from the left edge to the right edge */
};

static double interval_x(const struct axes *axes, double interval) {
    return MEMORY_LEFT + (MEMORY_WIDTH - MEMORY_LEFT) * interval / axes->intervals;
}

static double bytes_y(const struct axes *axes, size_t bytes) {
    return MEMORY_TOP + MEMORY_HEIGHT * (1.0 - (double)bytes / (double)axes->most);
}

/* Draws a horizontal line at a number of bytes, with its name. */
static void put_level(struct rfx_html *html, const struct axes *axes, size_t bytes,
                      const char *colour, const char *id, const char *words) {
    char text[RFX_HUMAN_CHARS];
    double y = bytes_y(axes, bytes);
    rfx_html_format(html,
                    "<path id=\"%s\" data-bytes=\"%zu\" d=\"M%d %.2f H%d\" stroke=\"%s\" "
                    "stroke-width=\"2\" stroke-dasharray=\"7 4\"/>\n"
                    "<text x=\"%d\" y=\"%.2f\" fill=\"%s\">%s %s</text>\n",
                    id, bytes, MEMORY_LEFT, y, MEMORY_WIDTH, colour, MEMORY_LEFT + 6, y - 4, colour,
                    words, rfx_human_bytes(bytes, text));
}

/* Draws the planned bytes of the arena on top of the fixed bytes. */
static void put_planned(struct rfx_html *html, const struct axes *axes,
                        const struct rfx_run_timeline *t, size_t fixed) {
    rfx_html_format(html, "<path id=\"planned\" fill=\"#56b4e9\" d=\"M%d %.2f", MEMORY_LEFT,
                    bytes_y(axes, fixed));
    for (int i = 0; i < t->used; ++i)
        rfx_html_format(html, " V%.2f H%.2f", bytes_y(axes, fixed + t->planned[i]),
                        interval_x(axes, i + 1));
    rfx_html_format(html,
                    " V%.2f Z\"/>\n<rect x=\"%d\" y=\"%.2f\" width=\"%d\" height=\"%.2f\" "
                    "fill=\"#bbb\"/>\n",
                    bytes_y(axes, fixed), MEMORY_LEFT, bytes_y(axes, fixed),
                    MEMORY_WIDTH - MEMORY_LEFT, MEMORY_TOP + MEMORY_HEIGHT - bytes_y(axes, fixed));
}

static void put_resident(struct rfx_html *html, const struct axes *axes,
                         const struct rfx_run_timeline *t) {
    bool any = false;
    rfx_html_raw(html,
                 "<path id=\"resident\" fill=\"none\" stroke=\"#d55e00\" stroke-width=\"2\" d=\"");
    for (int i = 0; i < t->used; ++i) {
        if (t->resident[i] == 0) continue;
        rfx_html_format(html, "%s%.2f %.2f", any ? " L" : "M", interval_x(axes, i + 0.5),
                        bytes_y(axes, t->resident[i]));
        any = true;
    }
    if (!any) rfx_html_format(html, "M%d %d", MEMORY_LEFT, MEMORY_TOP + MEMORY_HEIGHT);
    rfx_html_raw(html, "\"/>\n");
}

static void put_axes(struct rfx_html *html, const struct axes *axes, double seconds) {
    rfx_html_format(html,
                    "<path d=\"M%d %d V%d H%d\" fill=\"none\" stroke=\"#555\"/>\n"
                    "<text x=\"%d\" y=\"%d\">0 s</text><text x=\"%d\" y=\"%d\" "
                    "text-anchor=\"end\">%.3g s</text>\n",
                    MEMORY_LEFT, MEMORY_TOP, MEMORY_TOP + MEMORY_HEIGHT, MEMORY_WIDTH, MEMORY_LEFT,
                    MEMORY_TOP + MEMORY_HEIGHT + 18, MEMORY_WIDTH, MEMORY_TOP + MEMORY_HEIGHT + 18,
                    seconds);
    for (int k = 0; k <= 4; ++k)
        rfx_html_format(html, "<text x=\"%d\" y=\"%.2f\" text-anchor=\"end\">%.4g MiB</text>\n",
                        MEMORY_LEFT - 6, MEMORY_TOP + MEMORY_HEIGHT * (1.0 - k / 4.0) + 4,
                        (double)axes->most / MIB * k / 4.0);
    rfx_html_format(html,
                    "<rect x=\"%d\" y=\"4\" width=\"12\" height=\"12\" fill=\"#56b4e9\"/>"
                    "<text x=\"%d\" y=\"14\">arena in use, as planned</text>"
                    "<rect x=\"%d\" y=\"4\" width=\"12\" height=\"12\" fill=\"#bbb\"/>"
                    "<text x=\"%d\" y=\"14\">weights, scratch, image, files, reserve</text>"
                    "<rect x=\"%d\" y=\"9\" width=\"12\" height=\"3\" fill=\"#d55e00\"/>"
                    "<text x=\"%d\" y=\"14\">the process, as the system counts it</text>\n",
                    MEMORY_LEFT, MEMORY_LEFT + 18, MEMORY_LEFT + 230, MEMORY_LEFT + 248,
                    MEMORY_LEFT + 540, MEMORY_LEFT + 558);
}

/* Draws planned bytes, the resident set and the budget over time. */
static void put_memory_chart(struct rfx_html_report *page, const struct rfx_run_report *report) {
    const struct rfx_run_timeline *t = &page->timeline;
    size_t budget = page->options->plan.memory_bytes, peak = rfx_peak_rss_bytes();
    size_t most = page->job->plan->peak_bytes;
    most = budget > most ? budget : most;
    most = peak > most ? peak : most;
    struct axes axes = {most + most / 16, t->used > 0 ? t->used : 1};
    rfx_html_format(&page->html,
                    "<h2>Memory over time</h2>\n<svg viewBox=\"0 0 %d %d\" id=\"memory\" "
                    "role=\"img\">\n",
                    MEMORY_WIDTH, MEMORY_TOP + MEMORY_HEIGHT + MEMORY_BOTTOM);
    put_planned(&page->html, &axes, t, fixed_bytes(page->job->plan));
    put_resident(&page->html, &axes, t);
    if (budget != 0) put_level(&page->html, &axes, budget, "#b00020", "budget", "budget");
    put_level(&page->html, &axes, peak, "#d55e00", "peak", "measured peak");
    put_axes(&page->html, &axes, report->seconds);
    rfx_html_raw(
        &page->html,
        "</svg>\n<p class=\"note\">The system counts a page of memory once the process has "
        "touched it, and the process keeps the pages of the arena. The process stays "
        "below the planned bytes as long as libraries and stacks fit into the reserve. "
        "The peak is that of the whole process, from its start until this report was "
        "begun.</p>\n");
}

/* The time of each layer in the reported run, counted as by `bench --layers`. */

static const double BAR_EM = 14; /* the longest bar */

static void put_time(struct rfx_html *html, double seconds, double run, double longest) {
    double share = run > 0 ? seconds / run : 0;
    rfx_html_format(html,
                    "<td class=\"n\">%.3f</td><td class=\"n\">%.1f %%</td><td><span class=\"bar\" "
                    "style=\"width:%.2fem\"></span></td></tr>\n",
                    seconds * 1e3, share * 100,
                    longest > 0 && seconds > 0 ? BAR_EM * seconds / longest : 0);
}

static void put_row(struct rfx_html_report *page, const struct rfx_layer_row *row, double longest) {
    const struct rfx_node *node = &page->job->plan->graph->nodes[row->node];
    struct rfx_html *html = &page->html;
    char shape[96], macs[RFX_HUMAN_CHARS];
    rfx_html_raw(html, "<tr><td>");
    rfx_html_text(html, node->name);
    rfx_html_raw(html, "</td><td>");
    rfx_html_text(html, rfx_op_def(node->op)->name);
    rfx_html_raw(html, "</td><td>");
    rfx_html_text(html, rfx_human_shape(&node->out.shape, shape));
    rfx_html_format(html, "</td><td class=\"n\">%lld</td><td class=\"n\">%s</td>",
                    (long long)row->steps, row->macs > 0 ? rfx_human_count(row->macs, macs) : "-");
    put_time(html, row->seconds, page->times->run_seconds, longest);
}

/* Writes the table of times, with a row for each layer and each other kind of work. */
static void put_layers(struct rfx_html_report *page) {
    const struct rfx_layer_times *times = page->times;
    double longest = 0;
    for (int i = 0; i < times->n_rows; ++i)
        longest = times->rows[i].seconds > longest ? times->rows[i].seconds : longest;
    for (int k = 0; k < RFX_REST_COUNT; ++k)
        longest = times->rest[k] > longest ? times->rest[k] : longest;
    rfx_html_raw(&page->html,
                 "<h2>Time per layer</h2>\n<table id=\"layers\">\n<tr><th>layer</th><th>operator"
                 "</th><th>output</th><th class=\"n\">steps</th><th class=\"n\">multiply-adds</th>"
                 "<th class=\"n\">ms</th><th class=\"n\">share</th><th></th></tr>\n");
    for (int i = 0; i < times->n_rows; ++i) put_row(page, &times->rows[i], longest);
    for (int k = 0; k < RFX_REST_COUNT; ++k) {
        if (times->rest[k] <= 0) continue;
        rfx_html_format(&page->html, "<tr><td colspan=\"5\"><i>%s</i></td>",
                        rfx_layer_rest_name((enum rfx_layer_rest)k));
        put_time(&page->html, times->rest[k], times->run_seconds, longest);
    }
    rfx_html_raw(&page->html,
                 "</table>\n<p class=\"note\">A group of layers that are computed together has the "
                 "name of its last layer. Observing a step takes some microseconds, which are "
                 "counted under \"between steps\". 'rfexec bench --layers' shows the median of "
                 "several runs.</p>\n");
}

/* The overlay: the small copy that image_overlay.h has drawn. */

enum { OVERLAY_SHOWN_SIDE = 640 };

/* Returns row y of an image, [cols, 3]. A row that has to be computed is stored in `room`. */
typedef const unsigned char *row_fn(const void *user, int64_t y, unsigned char *room);

/* Completes an <img> element that has been begun. Writes the element's size on the page (`side`
 * pixels for the longer side) and the image as a PNG. */
static void put_image(struct rfx_html_report *page, int side, int64_t rows, int64_t cols,
                      row_fn *row, const void *user) {
    unsigned char room[3 * RFX_PREVIEW_SIDE];
    struct rfx_html *html = &page->html;
    struct rfx_png_writer *png = NULL;
    struct rfx_error err = {{0}};
    double scale = (double)side / (double)(rows > cols ? rows : cols);
    rfx_html_format(html, " width=\"%.0f\" height=\"%.0f\" src=\"data:image/png;base64,",
                    ceil(scale * (double)cols), ceil(scale * (double)rows));
    enum rfx_status status = rfx_png_write_open_to(page->mem, "report", rfx_html_base64, html, rows,
                                                   cols, 3, 8, &png, &err);
    for (int64_t y = 0; y < rows && status == RFX_OK; ++y)
        status = rfx_png_write_row(png, row(user, y, room), &err);
    if (status == RFX_OK) status = rfx_png_write_commit(png, &err);
    rfx_png_write_free(png);
    rfx_html_fail(html, status, &err);
    rfx_html_base64_end(html);
    rfx_html_raw(html, "\"/>");
}

static const unsigned char *overlay_row(const void *user, int64_t y, unsigned char *room) {
    const struct rfx_small_copy *copy = user;
    (void)room;
    return copy->rgb + 3 * y * copy->cols;
}

/* Writes the section of the overlay, if the report has one. */
static void put_overlay(struct rfx_html_report *page) {
    if (page->overlay == NULL) return;
    const struct rfx_small_copy *copy = &page->overlay->small;
    struct rfx_html *html = &page->html;
    char text[RFX_OVERLAY_TEXT];
    rfx_html_raw(html,
                 "<h2>Over the picture</h2>\n<figure><img class=\"overlay\" alt=\"the input with "
                 "an output over it\"");
    put_image(page, OVERLAY_SHOWN_SIDE, copy->rows, copy->cols, overlay_row, copy);
    rfx_html_raw(html, "<figcaption>");
    rfx_overlay_describe(page->overlay, text);
    rfx_html_text(html, text);
    rfx_html_format(
        html,
        "</figcaption></figure>\n<p class=\"note\">%lldx%lld of %lldx%lld pixels; red: no "
        "finite value, or no label. --overlay writes all pixels; --overlay-of and "
        "--overlay-output choose what is shown.</p>\n",
        (long long)copy->rows, (long long)copy->cols, (long long)copy->h, (long long)copy->w);
}

/* The outputs: figures, a histogram, and images of the first channels. */

enum {
    HISTOGRAM_WIDTH = 640,
    HISTOGRAM_HEIGHT = 170,
    HISTOGRAM_BASE = 140,
    PREVIEW_SHOWN_SIDE = 320
};

struct range {
    double lo, hi;
};

/* Returns the smallest and the largest mean of a channel. */
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

/* One channel of a preview. `range`: the values that are drawn dark and bright. */
struct channel {
    const struct rfx_map_preview *preview;
    int64_t number;
    struct range range;
};

static const unsigned char *preview_row(const void *user, int64_t y, unsigned char *room) {
    const struct channel *c = user;
    double wide = c->range.hi - c->range.lo;
    for (int64_t x = 0; x < c->preview->cols; ++x) {
        double mean = rfx_map_preview_mean(c->preview, c->number, y, x);
        if (isnan(mean))
            memcpy(room + 3 * x, rfx_no_value_colour, 3);
        else
            rfx_heat_colour(wide > 0 ? (mean - c->range.lo) / wide : 0.5, room + 3 * x);
    }
    return room;
}

static void put_preview(struct rfx_html_report *page, const struct rfx_map_preview *p,
                        int64_t channel) {
    struct rfx_html *html = &page->html;
    long long number = (long long)channel + 1;
    const struct channel of = {p, channel, range_of(p, channel)};
    rfx_html_format(html, "<figure><img alt=\"channel %lld\"", number);
    put_image(page, PREVIEW_SHOWN_SIDE, p->rows, p->cols, preview_row, &of);
    rfx_html_format(html, "<figcaption>channel %lld: ", number);
    if (of.range.lo <= of.range.hi)
        rfx_html_format(html, "%.6g dark, %.6g bright", of.range.lo, of.range.hi);
    else
        rfx_html_raw(html, "no finite value");
    rfx_html_raw(html, "</figcaption></figure>\n");
}

static void put_histogram(struct rfx_html *html, const struct rfx_value_sketch *s) {
    int n = rfx_value_sketch_used(s);
    uint64_t most = 1;
    for (int i = 0; i < n; ++i) most = s->bins[i] > most ? s->bins[i] : most;
    if (n == 0) return;
    rfx_html_format(html, "<svg viewBox=\"0 0 %d %d\" class=\"histogram\" role=\"img\">\n",
                    HISTOGRAM_WIDTH, HISTOGRAM_HEIGHT);
    double step = (double)HISTOGRAM_WIDTH / n;
    for (int i = 0; i < n; ++i) {
        double h = (double)s->bins[i] / (double)most * (HISTOGRAM_BASE - 10);
        if (s->bins[i] > 0 && h < 1) h = 1; /* so that a bin with few values can be seen */
        rfx_html_format(html,
                        "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
                        "fill=\"#0072b2\"><title>%.6g to %.6g: %llu</title></rect>\n",
                        step * i, HISTOGRAM_BASE - h, step * 0.92, h, rfx_value_sketch_edge(s, i),
                        rfx_value_sketch_edge(s, i + 1), (unsigned long long)s->bins[i]);
    }
    rfx_html_format(html,
                    "<path d=\"M0 %d H%d\" stroke=\"#888\"/><text x=\"0\" y=\"%d\">%.6g</text>"
                    "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.6g</text></svg>\n",
                    HISTOGRAM_BASE, HISTOGRAM_WIDTH, HISTOGRAM_BASE + 18,
                    rfx_value_sketch_edge(s, 0), HISTOGRAM_WIDTH, HISTOGRAM_BASE + 18,
                    rfx_value_sketch_edge(s, n));
}

/* Writes figures, histogram and previews of output k. */
static void put_output(struct rfx_html_report *page, const struct rfx_cli_output *output, int k) {
    struct rfx_html *html = &page->html;
    const struct rfx_report_output *own = &page->outputs[k];
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
        put_preview(page, &own->preview, c);
    if (own->preview.mem != NULL)
        rfx_html_format(html,
                        "<p class=\"note\">The first %lld of %lld channels, %lldx%lld pixels shown "
                        "as %lldx%lld means; red: no finite value.</p>\n",
                        (long long)own->preview.channels, (long long)own->preview.c,
                        (long long)own->preview.h, (long long)own->preview.w,
                        (long long)own->preview.rows, (long long)own->preview.cols);
}

/* Memory of the PNG encoder (image_write.h), of the file's buffer and of a chunk of values. */
static const size_t WRITING_BYTES = (size_t)512 << 10;

static const struct rfx_tensor *tensor_of(const struct rfx_graph *graph, int k) {
    return &graph->nodes[graph->outputs[k].node].out;
}

size_t rfx_html_report_bytes(const struct rfx_graph *graph) {
    size_t layer = sizeof(struct rfx_layer_row) * 2 + sizeof(int) + sizeof(double) * 2;
    size_t bytes = WRITING_BYTES + rfx_arena_use_bytes(graph) +
                   layer * ((size_t)graph->n_nodes + RFX_REST_COUNT + 1) +
                   (size_t)graph->n_outputs * sizeof(struct rfx_report_output);
    for (int k = 0; k < graph->n_outputs && k < REPORT_PREVIEWS; ++k)
        if (rfx_map_preview_suits(tensor_of(graph, k)))
            bytes += rfx_map_preview_bytes(tensor_of(graph, k));
    return bytes;
}

static enum rfx_status make_outputs(struct rfx_html_report *page, struct rfx_error *err) {
    const struct rfx_graph *graph = page->job->graph;
    size_t n = (size_t)graph->n_outputs;
    page->outputs = rfx_memory_calloc(page->mem, n, sizeof *page->outputs);
    if (page->outputs == NULL)
        return rfx_memory_fail(page->mem, "report", n * sizeof *page->outputs, err);
    page->n_outputs = graph->n_outputs;
    enum rfx_status status = RFX_OK;
    for (int k = 0; status == RFX_OK && k < graph->n_outputs && k < REPORT_PREVIEWS; ++k)
        if (rfx_map_preview_suits(tensor_of(graph, k)))
            status = rfx_map_preview_create(page->mem, tensor_of(graph, k),
                                            &page->outputs[k].preview, err);
    return status;
}

enum rfx_status rfx_html_report_open(struct rfx_html_report *page,
                                     const struct rfx_cli_run_options *options,
                                     const struct rfx_cli_job *job, struct rfx_error *err) {
    *page = (struct rfx_html_report){.mem = job->mem, .options = options, .job = job};
    enum rfx_status status = rfx_output_file_open(job->mem, options->report.page, &page->file, err);
    if (status == RFX_OK) status = rfx_arena_use_create(job->mem, job->plan, &page->use, err);
    if (status == RFX_OK)
        status = rfx_layer_times_create(job->mem, job->plan, 1, &page->times, err);
    if (status == RFX_OK) status = make_outputs(page, err);
    page->html.file = page->file;
    return status;
}

void rfx_html_report_free(struct rfx_html_report *page) {
    rfx_run_timeline_end(&page->timeline);
    for (int k = 0; k < page->n_outputs; ++k) rfx_map_preview_free(&page->outputs[k].preview);
    if (page->mem != NULL) rfx_memory_release(page->mem, page->outputs);
    rfx_layer_times_free(page->times);
    rfx_arena_use_free(page->use);
    rfx_output_file_free(page->file);
    *page = (struct rfx_html_report){0};
}

static enum rfx_status receive(void *user, const struct rfx_end *end, struct rfx_rect rect,
                               const struct rfx_view *view, struct rfx_error *err) {
    struct rfx_html_report *page = user;
    struct rfx_report_output *output = &page->outputs[end->output];
    for (int64_t y = rect.y0; y < rect.y1; ++y)
        rfx_value_sketch_add(&output->values, rfx_view_f32_at(view, y, rect.x0),
                             rfx_rect_cols(rect) * view->c);
    if (output->preview.mem != NULL) rfx_map_preview_add(&output->preview, rect, view);
    return page->sink.write(page->sink.user, end, rect, view, err);
}

static void look(void *user, const struct rfx_end *end, struct rfx_rect rect,
                 const struct rfx_view *view) {
    const struct rfx_html_report *page = user;
    rfx_sink_look(&page->sink, end, rect, view);
}

void rfx_html_report_watch(struct rfx_html_report *page, struct rfx_run *run,
                           struct rfx_output_sink *sink) {
    page->sink = *sink;
    sink->look = look;
    sink->write = receive;
    sink->user = page;
    rfx_run_timeline_start(&page->timeline, page->use, &page->times->observer);
    run->observer = &page->timeline.observer;
}

void rfx_html_report_end(struct rfx_html_report *page, const struct rfx_run_report *report) {
    rfx_run_timeline_end(&page->timeline);
    rfx_layer_times_end_run(page->times, report->seconds);
    rfx_layer_times_finish(page->times);
}

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
    "<meta name=\"viewport\" content=\"width=device-width\"/>\n<title>rfexec run</title>\n<style>\n"
    "body{font:15px/1.45 system-ui,sans-serif;color:#1b1f24;max-width:66em;margin:2em auto;"
    "padding:0 1em}\nh1,h2,h3{line-height:1.2}h2{margin-top:2em;border-bottom:1px solid #ddd}\n"
    "table{border-collapse:collapse}td,th{padding:.15em .8em .15em 0;text-align:left;"
    "vertical-align:top;overflow-wrap:anywhere}\n"
    "td.n,th.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\n"
    "svg{width:100%;height:auto;display:block}svg text{font:12px system-ui,sans-serif}\n"
    ".bar{display:inline-block;height:.8em;background:#0072b2}\n"
    "figure{display:inline-block;margin:0 1em 1em 0}figcaption{font-size:13px;color:#555}\n"
    "img{image-rendering:pixelated;border:1px solid #ccc;box-sizing:border-box;max-width:100%;"
    "height:auto}.note{color:#555;font-size:13px}\n"
    "@media(max-width:48em){table{display:block;overflow-x:auto}}\n"
    "</style>\n</head>\n<body>\n";

static void fact(struct rfx_html *html, const char *name, const char *text) {
    rfx_html_raw(html, "<tr><th>");
    rfx_html_text(html, name);
    rfx_html_raw(html, "</th><td>");
    rfx_html_text(html, text);
    rfx_html_raw(html, "</td></tr>\n");
}

static void put_memory_facts(struct rfx_html_report *page, const struct rfx_run_report *report) {
    const struct rfx_plan *plan = page->job->plan;
    char a[RFX_HUMAN_CHARS], b[RFX_HUMAN_CHARS], c[RFX_HUMAN_CHARS], d[RFX_HUMAN_CHARS],
        e[RFX_HUMAN_CHARS], f[RFX_HUMAN_CHARS], text[400];
    if (page->options->plan.memory_bytes != 0)
        fact(&page->html, "budget", rfx_human_bytes(page->options->plan.memory_bytes, a));
    else
        fact(&page->html, "budget", "none was given");
    (void)snprintf(text, sizeof text,
                   "%s: activations %s, weights %s, scratch %s, image and files %s, reserve %s",
                   rfx_human_bytes(plan->peak_bytes, a), rfx_human_bytes(plan->bytes.arena, b),
                   rfx_human_bytes(plan->bytes.weights, c), rfx_human_bytes(plan->bytes.scratch, d),
                   rfx_human_bytes(plan->bytes.source, e), rfx_human_bytes(plan->bytes.reserve, f));
    fact(&page->html, "predicted peak", text);
    (void)snprintf(text, sizeof text, "%s of the process, %s of activations",
                   rfx_human_bytes(rfx_peak_rss_bytes(), a),
                   rfx_human_bytes(report->arena_high_water_bytes, b));
    fact(&page->html, "measured peak", text);
    (void)snprintf(text, sizeof text, "%.3f s; predicted %.3g s", report->seconds,
                   rfx_machine_seconds(plan->cost, plan->threads));
    fact(&page->html, "time", text);
    (void)snprintf(text, sizeof text, "%s, %.3f x those of an untiled run",
                   rfx_human_count(report->macs, a),
                   rfx_report_ratio(plan->macs, plan->macs_untiled));
    fact(&page->html, "multiply-adds", text);
    if (plan->spill.written == 0) return;
    (void)snprintf(text, sizeof text, "%s written to temporary files, %s read, %s at a time",
                   rfx_human_bytes((size_t)plan->spill.written, a),
                   rfx_human_bytes((size_t)plan->spill.read, b),
                   rfx_human_bytes((size_t)plan->spill.most, c));
    fact(&page->html, "spilled maps", text);
}

static void put_facts(struct rfx_html_report *page, const struct rfx_run_report *report) {
    const struct rfx_plan *plan = page->job->plan;
    const struct rfx_graph *graph = page->job->graph;
    char shape[96], text[RFX_PLAN_TEXT + 64], words[RFX_PLAN_TEXT];
    rfx_html_raw(&page->html, "<h1>");
    rfx_html_text(&page->html, page->options->words.shown[0]);
    rfx_html_raw(&page->html, "</h1>\n<table>\n");
    fact(&page->html, "input", page->options->words.shown[1]);
    fact(&page->html, "its shape", rfx_human_shape(&graph->nodes[graph->input].out.shape, shape));
    rfx_plan_describe(plan, words, sizeof words);
    (void)snprintf(text, sizeof text, "%s; %d thread%s", words, plan->threads,
                   plan->threads == 1 ? "" : "s");
    fact(&page->html, "plan", text);
    (void)snprintf(text, sizeof text, "%s, %s kernels",
                   rfx_conv_choice_name(rfx_conv_choice_of(graph)), rfx_kernels()->name);
    fact(&page->html, "convolutions", text);
    put_memory_facts(page, report);
    if (rfx_builtin_exists(page->options->words.args[0]))
        fact(&page->html, "weights",
             "seeded, not trained: times, memory and bits are real, results mean nothing");
    rfx_html_raw(&page->html, "</table>\n");
}

enum rfx_status rfx_html_report_write(struct rfx_html_report *page,
                                      const struct rfx_cli_outputs *outputs,
                                      const struct rfx_run_report *report, struct rfx_error *err) {
    rfx_html_raw(&page->html, head);
    put_facts(page, report);
    put_plan(page);
    put_memory_chart(page, report);
    put_layers(page);
    put_overlay(page);
    rfx_html_raw(&page->html, "<h2>Outputs</h2>\n");
    for (int k = 0; k < page->n_outputs; ++k) put_output(page, &outputs->items[k], k);
    rfx_html_format(&page->html, "<p class=\"note\">Written by rfexec %s.</p>\n</body>\n</html>\n",
                    rfx_version());
    if (page->html.status != RFX_OK)
        return rfx_fail(err, page->html.status, "%s", page->html.err.text);
    return rfx_output_file_commit(page->file, err);
}
