/* rfexec merge of parts of cut tensors: loads the network, whose cut tensors are filled from the
 * parts, and runs its late nodes. */
#include <inttypes.h>
#include <stdio.h>

#include "layers/core/byte_text.h"
#include "layers/core/checked.h"
#include "rfexec/shards/shard_json.h"
#include "rfexec/shards/shard_network.h"
#include "tiler/plan/plan.h"
#include "tools/cli/command.h"
#include "tools/cli/late_results.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/commands/command_forms.h"
#include "tools/commands/run_result.h"

struct late_merge {
    struct rfx_shards *shards;
    struct rfx_graph *graph;            /* its outputs are the cut tensors */
    struct rfx_cli_run_options options; /* of a run that writes the same files */
    struct rfx_geo_source source;
    struct rfx_late_results results;
    struct rfx_cli_outputs outputs;
};

static enum rfx_status load(struct late_merge *m, struct rfx_error *err) {
    const struct rfx_shard_file *first = &m->shards->files[0];
    const struct rfx_shard_network of = {"parts", m->shards->paths[0], first->run, first->about,
                                         m->options.plan.memory_bytes};
    bool boxes = rfx_cli_answers_join(&m->options);
    enum rfx_status status =
        rfx_shard_network_load_late(m->shards->mem, &of, boxes, &m->graph, err);
    if (status != RFX_OK) return status;
    status = rfx_shard_source_parse(m->shards->mem, json_object_get(first->about, "image_geo"),
                                    json_object_get(first->about, "image_place"), &m->source, err);
    if (status != RFX_OK) return rfx_fail_within(err, status, "part '%.200s'", of.path);
    int64_t elems = 0;
    for (int k = 0; k < m->graph->late->n_cuts; ++k)
        elems += m->graph->nodes[m->graph->outputs[k].node].out.elems;
    if (first->cells.channels == 1 && first->cells.of == elems && !first->cells.last) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "part '%.200s' is of %" PRId64
                    " elements, the model's cut tensors have "
                    "%" PRId64,
                    of.path, first->cells.of, elems);
}

/* Checks that the merge fits into the budget: what is loaded, the cut tensors, the late nodes and
 * the files. */
static enum rfx_status check_budget(const struct late_merge *m, struct rfx_error *err) {
    size_t budget = m->options.plan.memory_bytes;
    size_t loaded = rfx_plan_reserve_bytes(1) + rfx_memory_taken_bytes(m->shards->mem);
    size_t late = rfx_cli_late_bytes(m->graph, &m->options, &m->source), sum;
    char needs[RFX_BYTE_TEXT], has[RFX_BYTE_TEXT];
    if (!rfx_checked_add_size(loaded, late, &sum)) sum = SIZE_MAX;
    if (budget == 0 || sum <= budget) return RFX_OK;
    rfx_byte_texts(sum, budget, needs, has);
    return rfx_fail(err, RFX_STATUS_BUDGET_IMPOSSIBLE,
                    "needs at least %zu bytes (%s), the budget is %s: cut tensors %zu, late nodes "
                    "and files %zu, network, parts and process %zu (--answer-memory limits the "
                    "late nodes)",
                    sum, needs, has, rfx_late_cut_bytes(m->graph),
                    late - rfx_late_cut_bytes(m->graph), loaded);
}

/* Passes a row of elements, counted over all cut tensors, on to the cut tensors that have them. */
static enum rfx_status receive(void *user, const struct rfx_end *end, struct rfx_rect rect,
                               const struct rfx_view *view, struct rfx_error *err) {
    struct late_merge *m = user;
    const struct rfx_output_sink sink = rfx_late_results_sink(&m->results);
    int64_t lo = end->at.first, hi = lo + rfx_rect_cols(rect), first = 0, next;
    enum rfx_status status = RFX_OK;
    for (int k = 0; k < m->graph->late->n_cuts && status == RFX_OK; ++k, first = next) {
        next = first + m->graph->nodes[m->graph->outputs[k].node].out.elems;
        int64_t from = rfx_max_i64(lo, first), to = rfx_min_i64(hi, next);
        if (from >= to) continue;
        struct rfx_end piece = {.output = k, .channels = 1, .at = {from - first, to - from, 1, 1}};
        struct rfx_rect row = rfx_rect_make(0, 1, 0, to - from);
        struct rfx_view part =
            rfx_view_dense(rfx_view_f32_at(view, rect.y0, rect.x0 + from - lo), row, 1);
        status = sink.write(sink.user, &piece, row, &part, err);
    }
    return status;
}

static enum rfx_status merge(struct late_merge *m, struct rfx_error *err) {
    struct rfx_cli_progress progress;
    enum rfx_status status =
        rfx_late_results_open(&m->results, m->graph, &m->options, &m->source, err);
    if (status != RFX_OK) return status;
    rfx_cli_progress_start(&progress, "merge");
    status = rfx_shards_take(m->shards, (struct rfx_output_sink){.write = receive, .user = m},
                             rfx_cli_progress_step, &progress, err);
    rfx_cli_progress_end(&progress);
    if (status == RFX_OK)
        status = rfx_late_results_write(&m->results, &m->options, &m->source, &m->outputs, err);
    return status == RFX_OK ? rfx_cli_outputs_finish(&m->outputs, err) : status;
}

static int print(const struct late_merge *m) {
    char peak[RFX_HUMAN_CHARS];
    if (m->options.json) {
        json_t *document =
            json_pack("{s:i, s:s, s:i, s:O, s:o, s:{s:I}}", "schema", RFX_JSON_SCHEMA, "command",
                      "merge", "parts", m->shards->n, "run", m->shards->files[0].run, "outputs",
                      rfx_run_outputs_json(&m->outputs), "measured", "peak_rss_bytes",
                      (json_int_t)rfx_peak_rss_bytes());
        rfx_run_answers_add(document, &m->outputs);
        return rfx_report_print(document);
    }
    printf("parts      %d of one run, without gap or overlap\n", m->shards->n);
    printf("measured   %s peak RSS\n", rfx_human_bytes(rfx_peak_rss_bytes(), peak));
    rfx_run_outputs_print(&m->outputs);
    return RFX_EXIT_DONE;
}

/* Makes the file of -o that of --boxes if it is one of answers: no maps are there for others. */
static void settle(struct rfx_cli_output_options *output) {
    const struct rfx_output_kind *kind = rfx_output_kind_of(output->file);
    if (kind == NULL || kind->found == NULL) return;
    output->answer.boxes = output->file;
    output->file = NULL;
}

int rfx_merge_late(const struct rfx_merge_options *options, struct rfx_shards *shards) {
    struct late_merge m = {
        .shards = shards,
        .options = {.output = options->output, .json = options->json, .images = 1},
    };
    struct rfx_error err = {{0}};
    m.options.plan.memory_bytes = options->memory_bytes;
    settle(&m.options.output);
    enum rfx_status status = load(&m, &err);
    int code = RFX_EXIT_DONE;
    if (status == RFX_OK) code = rfx_cli_outputs_check(m.graph, &m.options);
    if (status == RFX_OK && code == RFX_EXIT_DONE) status = check_budget(&m, &err);
    if (status == RFX_OK && code == RFX_EXIT_DONE) status = merge(&m, &err);
    if (status != RFX_OK) code = rfx_cli_fail(status, &err);
    if (code == RFX_EXIT_DONE) code = print(&m);
    rfx_cli_outputs_free(&m.outputs);
    rfx_late_results_free(&m.results);
    rfx_georeference_release(&m.source.geo);
    rfx_graph_free(m.graph);
    return code;
}
