/* What a page collects during a run, and the frame of what it writes; see run_page.h. */
#include "tools/page/run_page.h"

#include <stdio.h>

#include "./rfexec/session/model.h"
#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "layers/kernels/kernels.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/measure/machine_speed.h"
#include "tools/page/page_sections.h"

/* Of the PNG encoder (image_write.h), the file's buffer and a chunk of values. */
static const size_t WRITING_BYTES = (size_t)512 << 10;

static const struct rfx_tensor *tensor_of(const struct rfx_graph *graph, int k) {
    return &graph->nodes[graph->outputs[k].node].out;
}

size_t rfx_run_page_bytes(const struct rfx_graph *graph) {
    size_t layer = sizeof(struct rfx_layer_row) * 2 + sizeof(int) + sizeof(double) * 2;
    size_t bytes = WRITING_BYTES + rfx_arena_use_bytes(graph) +
                   layer * ((size_t)graph->n_nodes + RFX_REST_COUNT + 1) +
                   (size_t)graph->n_outputs * sizeof(struct rfx_page_output);
    for (int k = 0; k < graph->n_outputs && k < RFX_PAGE_PREVIEWS; ++k)
        if (rfx_map_preview_suits(tensor_of(graph, k)))
            bytes += rfx_map_preview_bytes(tensor_of(graph, k));
    return bytes;
}

static enum rfx_status make_outputs(struct rfx_run_page *page, struct rfx_error *err) {
    const struct rfx_graph *graph = page->job->graph;
    size_t n = (size_t)graph->n_outputs;
    page->outputs = rfx_memory_calloc(page->mem, n, sizeof *page->outputs);
    if (page->outputs == NULL)
        return rfx_memory_fail(page->mem, "report", n * sizeof *page->outputs, err);
    page->n_outputs = graph->n_outputs;
    enum rfx_status status = RFX_OK;
    for (int k = 0; status == RFX_OK && k < graph->n_outputs && k < RFX_PAGE_PREVIEWS; ++k)
        if (rfx_map_preview_suits(tensor_of(graph, k)))
            status = rfx_map_preview_create(page->mem, tensor_of(graph, k),
                                            &page->outputs[k].preview, err);
    return status;
}

enum rfx_status rfx_run_page_open(struct rfx_run_page *page,
                                  const struct rfx_cli_run_options *options,
                                  const struct rfx_cli_job *job, struct rfx_error *err) {
    *page = (struct rfx_run_page){.mem = job->mem, .options = options, .job = job};
    enum rfx_status status = rfx_output_file_open(job->mem, options->report.page, &page->file, err);
    if (status == RFX_OK) status = rfx_arena_use_create(job->mem, job->plan, &page->use, err);
    if (status == RFX_OK)
        status = rfx_layer_times_create(job->mem, job->plan, 1, &page->times, err);
    if (status == RFX_OK) status = make_outputs(page, err);
    page->html.file = page->file;
    return status;
}

void rfx_run_page_free(struct rfx_run_page *page) {
    rfx_run_timeline_end(&page->timeline);
    for (int k = 0; k < page->n_outputs; ++k) rfx_map_preview_free(&page->outputs[k].preview);
    if (page->mem != NULL) rfx_memory_release(page->mem, page->outputs);
    rfx_layer_times_free(page->times);
    rfx_arena_use_free(page->use);
    rfx_output_file_free(page->file);
    *page = (struct rfx_run_page){0};
}

static enum rfx_status receive(void *user, const struct rfx_end *end, struct rfx_rect rect,
                               const struct rfx_view *view, struct rfx_error *err) {
    struct rfx_run_page *page = user;
    struct rfx_page_output *output = &page->outputs[end->output];
    for (int64_t y = rect.y0; y < rect.y1; ++y)
        rfx_value_sketch_add(&output->values, rfx_view_at(view, y, rect.x0),
                             rfx_rect_cols(rect) * view->c);
    if (output->preview.mem != NULL) rfx_map_preview_add(&output->preview, rect, view);
    return page->sink.write(page->sink.user, end, rect, view, err);
}

static void look(void *user, const struct rfx_end *end, struct rfx_rect rect,
                 const struct rfx_view *view) {
    const struct rfx_run_page *page = user;
    rfx_sink_look(&page->sink, end, rect, view);
}

void rfx_run_page_watch(struct rfx_run_page *page, struct rfx_session *session,
                        struct rfx_output_sink *sink) {
    page->sink = *sink;
    sink->look = look;
    sink->write = receive;
    sink->user = page;
    rfx_run_timeline_start(&page->timeline, page->use, &page->times->observer);
    rfx_session_set_observer(session, &page->timeline.observer);
}

void rfx_run_page_end(struct rfx_run_page *page, struct rfx_session *session,
                      const struct rfx_run_report *report) {
    rfx_session_set_observer(session, NULL);
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

static void put_memory_facts(struct rfx_run_page *page, const struct rfx_run_report *report) {
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

static void put_facts(struct rfx_run_page *page, const struct rfx_run_report *report) {
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

enum rfx_status rfx_run_page_write(struct rfx_run_page *page, const struct rfx_cli_outputs *outputs,
                                   const struct rfx_run_report *report, struct rfx_error *err) {
    rfx_html_raw(&page->html, head);
    put_facts(page, report);
    rfx_page_plan_picture(page);
    rfx_page_memory_chart(page, report);
    rfx_page_layers(page);
    rfx_page_overlay(page);
    rfx_html_raw(&page->html, "<h2>Outputs</h2>\n");
    for (int k = 0; k < page->n_outputs; ++k) rfx_page_output(page, &outputs->items[k], k);
    rfx_html_format(&page->html, "<p class=\"note\">Written by rfexec %s.</p>\n</body>\n</html>\n",
                    rfx_version());
    if (page->html.status != RFX_OK)
        return rfx_fail(err, page->html.status, "%s", page->html.err.text);
    return rfx_output_file_commit(page->file, err);
}
