/* Time per layer, as `bench --layers` counts it, of the one run that is reported. */
#include "layers/graph/op.h"
#include "tools/cli/report.h"
#include "tools/page/page_sections.h"

static const double BAR_EM = 14; /* the longest bar */

static void put_time(struct rfx_html *html, double seconds, double run, double longest) {
    double share = run > 0 ? seconds / run : 0;
    rfx_html_format(html,
                    "<td class=\"n\">%.3f</td><td class=\"n\">%.1f %%</td><td><span class=\"bar\" "
                    "style=\"width:%.2fem\"></span></td></tr>\n",
                    seconds * 1e3, share * 100,
                    longest > 0 && seconds > 0 ? BAR_EM * seconds / longest : 0);
}

static void put_row(struct rfx_run_page *page, const struct rfx_layer_row *row, double longest) {
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

void rfx_page_layers(struct rfx_run_page *page) {
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
                 "</table>\n<p class=\"note\">A group of layers that are computed together goes by "
                 "the name of its last one. Watching the steps takes some microseconds each, which "
                 "are under \"between steps\". 'rfexec bench --layers' takes the median of several "
                 "runs.</p>\n");
}
