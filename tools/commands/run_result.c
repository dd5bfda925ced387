/* Prints the result of a run as text and JSON. */
#include "tools/commands/run_result.h"

#include <stdio.h>

#include "rfexec/run/model.h"
#include "tiler/plan/splits.h"
#include "tools/cli/command.h"
#include "tools/cli/report.h"

/* Prints a message when the number of labels differs from the number of classes. That is not an
 * error: a list may name only the first classes, or one more for the background. */
static void tell_label_count(const struct rfx_run_result *run) {
    int64_t classes = run->outputs->items[0].tensor->elems, names = run->classes->n_labels;
    if (run->classes->labels == NULL || names == classes) return;
    rfx_cli_message("labels '%s': %lld names for %lld classes", run->options->report.labels,
                    (long long)names, (long long)classes);
}

/* Returns the JSON object "exchange": {"tensors", "bytes", "macs_saved"}. */
static json_t *exchange_json(const struct rfx_run_result *run) {
    const struct rfx_run_ranks *ranks = run->ranks;
    json_t *tensors = json_array();
    for (int i = 0; i < ranks->n_cuts; ++i)
        (void)json_array_append_new(tensors,
                                    json_string(rfx_split_label(run->graph, ranks->cuts[i])));
    return json_pack("{s:o, s:I, s:I}", "tensors", tensors, "bytes", (json_int_t)ranks->moved_bytes,
                     "macs_saved", (json_int_t)ranks->macs_saved);
}

/* Returns the JSON object about the ranks: {"count", "rounds", "macs", "macs_ratio",
 * "peak_rss_bytes", "seconds", "exchange"}. */
static json_t *ranks_json(const struct rfx_run_result *run) {
    const struct rfx_run_ranks *ranks = run->ranks;
    return json_pack("{s:i, s:i, s:I, s:f, s:I, s:f, s:o}", "count", ranks->count, "rounds",
                     ranks->rounds, "macs", (json_int_t)ranks->macs, "macs_ratio",
                     rfx_report_ratio(ranks->macs, run->plan->macs_untiled), "peak_rss_bytes",
                     (json_int_t)ranks->peak_rss_bytes, "seconds", ranks->seconds, "exchange",
                     exchange_json(run));
}

static json_t *top_json(const struct rfx_cli_classes *classes) {
    json_t *top = json_array();
    for (int i = 0; i < classes->count; ++i) {
        const struct rfx_cli_class *c = &classes->items[i];
        (void)json_array_append_new(
            top, json_pack("{s:I, s:s?, s:o}", "class", (json_int_t)c->index, "label", c->label,
                           "value", rfx_report_number((double)c->value)));
    }
    return top;
}

/* Adds the member "regions", "boxes" ... of a file of answers: {"file", "count"}, with "head" of
 * boxes. Adds nothing for other files. */
static void add_found(json_t *object, const struct rfx_output_stream *stream,
                      const struct rfx_found *found) {
    if (found->what == NULL) return;
    rfx_cli_answers_notice(found);
    (void)json_object_set_new(object, found->what,
                              json_pack("{s:s, s:I, s:s*}", "file", rfx_output_stream_path(stream),
                                        "count", (json_int_t)found->count, "head", found->head));
}

/* Prints what a file of answers has; nothing of other files. */
static void print_found(const struct rfx_output_stream *stream, const struct rfx_found *found) {
    if (found->what == NULL) return;
    const char *unit = found->unit;
    printf("%-10s %lld%s%s, in %s", found->what, (long long)found->count, unit != NULL ? " " : "",
           unit != NULL ? unit : "", rfx_output_stream_path(stream));
    if (found->head != NULL) printf(" (%s)", found->head);
    printf("\n");
    rfx_cli_answers_notice(found);
}

json_t *rfx_run_outputs_json(const struct rfx_cli_outputs *of) {
    json_t *outputs = json_array();
    for (int k = 0; k < of->count; ++k) {
        const struct rfx_cli_output *output = &of->items[k];
        json_t *item = json_pack("{s:s, s:o, s:s, s:s}", "name", output->name, "shape",
                                 rfx_report_shape(&output->shape), "type",
                                 rfx_type_name(output->type), "hash", output->hash);
        add_found(item, output->stream, &output->found);
        (void)json_array_append_new(outputs, item);
    }
    return outputs;
}

void rfx_run_answers_add(json_t *document, const struct rfx_cli_outputs *outputs) {
    for (int i = 0; i < RFX_CLI_ANSWERS; ++i) {
        const struct rfx_cli_answer *item = &outputs->answers.items[i];
        add_found(document, item->stream, &item->found);
    }
}

static int print_json(const struct rfx_run_result *run) {
    const struct rfx_cli_run_options *options = run->options;
    json_t *document = rfx_report_document("run", options->words.shown[0]);
    rfx_report_conv(document, run->graph);
    json_t *outputs = rfx_run_outputs_json(run->outputs);
    (void)json_object_set_new(document, "input", json_string(options->words.shown[1]));
    if (run->outputs->images > 1)
        (void)json_object_set_new(document, "images", json_integer(run->outputs->images));
    (void)json_object_set_new(document, "plan", rfx_report_plan(run->plan));
    (void)json_object_set_new(document, "measured", rfx_report_measured(run->report));
    if (run->ranks != NULL) (void)json_object_set_new(document, "ranks", ranks_json(run));
    (void)json_object_set(document, "output", json_array_get(outputs, 0));
    (void)json_object_set_new(document, "outputs", outputs);
    rfx_run_answers_add(document, run->outputs);
    if (run->overlay != NULL) {
        char text[RFX_OVERLAY_TEXT];
        rfx_overlay_describe(run->overlay, text);
        if (options->report.overlay != NULL)
            (void)json_object_set_new(
                document, "overlay",
                json_pack("{s:s, s:s}", "file", options->report.overlay, "shows", text));
        if (options->report.viewer != NULL)
            (void)json_object_set_new(
                document, "viewer",
                json_pack("{s:s, s:s}", "folder", options->report.viewer, "shows", text));
    }
    if (run->classes->count > 0) (void)json_object_set_new(document, "top", top_json(run->classes));
    return rfx_report_print(document);
}

enum { NAMED_CUTS = 4 }; /* of more cuts only the first and the last are named; --json has all */

static void print_exchange(const struct rfx_run_result *run) {
    const struct rfx_run_ranks *ranks = run->ranks;
    char bytes[RFX_HUMAN_CHARS], macs[RFX_HUMAN_CHARS];
    bool more = ranks->macs_saved < 0;
    if (ranks->count == 1) return;
    if (ranks->n_cuts == 0) {
        printf("exchange   none: halos are made again\n");
        return;
    }
    printf("exchange   rows of");
    if (ranks->n_cuts > NAMED_CUTS)
        printf(" %d maps, from %s to %s", ranks->n_cuts,
               rfx_split_label(run->graph, ranks->cuts[0]),
               rfx_split_label(run->graph, ranks->cuts[ranks->n_cuts - 1]));
    for (int i = 0; i < ranks->n_cuts && ranks->n_cuts <= NAMED_CUTS; ++i)
        printf("%s %s", i > 0 ? "," : "", rfx_split_label(run->graph, ranks->cuts[i]));
    uint64_t saved = (uint64_t)(more ? -ranks->macs_saved : ranks->macs_saved);
    printf(": %s between ranks, %s MACs %s than with halos made again\n",
           rfx_human_bytes(ranks->moved_bytes, bytes), rfx_human_count(saved, macs),
           more ? "more" : "fewer");
}

static void print_ranks(const struct rfx_run_result *run) {
    const struct rfx_run_ranks *ranks = run->ranks;
    char macs[RFX_HUMAN_CHARS], peak[RFX_HUMAN_CHARS];
    printf(
        "ranks      %d, %d round%s of states; %s MACs in all, %.3f x untiled; the largest peak "
        "RSS %s\n",
        ranks->count, ranks->rounds, ranks->rounds == 1 ? "" : "s",
        rfx_human_count(ranks->macs, macs), rfx_report_ratio(ranks->macs, run->plan->macs_untiled),
        rfx_human_bytes(ranks->peak_rss_bytes, peak));
}

void rfx_run_outputs_print(const struct rfx_cli_outputs *outputs) {
    char shape[96];
    for (int k = 0; k < outputs->count; ++k) {
        const struct rfx_cli_output *output = &outputs->items[k];
        bool floats = output->type == RFX_TYPE_FLOAT32;
        printf("output     %s %s%s%s, hash %s\n", output->name,
               rfx_human_shape(&output->shape, shape), floats ? "" : " ",
               floats ? "" : rfx_type_name(output->type), output->hash);
    }
    for (int k = 0; k < outputs->count; ++k)
        print_found(outputs->items[k].stream, &outputs->items[k].found);
    for (int i = 0; i < RFX_CLI_ANSWERS; ++i)
        print_found(outputs->answers.items[i].stream, &outputs->answers.items[i].found);
}

static int print_text(const struct rfx_run_result *run) {
    char a[RFX_HUMAN_CHARS], b[RFX_HUMAN_CHARS];
    rfx_report_plan_text(run->plan);
    printf("measured   %s peak RSS, %s of activations, %.3f s\n",
           rfx_human_bytes(rfx_peak_rss_bytes(), a),
           rfx_human_bytes(run->report->arena_high_water_bytes, b), run->report->seconds);
    if (run->ranks != NULL) {
        print_ranks(run);
        print_exchange(run);
    }
    if (run->outputs->images > 1)
        printf("images     %lld, one after the other\n", (long long)run->outputs->images);
    rfx_run_outputs_print(run->outputs);
    if (run->overlay != NULL) {
        char text[RFX_OVERLAY_TEXT];
        rfx_overlay_describe(run->overlay, text);
        if (run->options->report.overlay != NULL) printf("overlay    %s\n", text);
        if (run->options->report.viewer != NULL) printf("viewer     %s\n", text);
    }
    if (rfx_builtin_exists(run->options->words.args[0]))
        printf(
            "weights    seeded (--seed %llu), not trained: times, memory and bits are real, "
            "classes "
            "are not\n",
            (unsigned long long)run->options->model.seed);
    for (int i = 0; i < run->classes->count; ++i) {
        const struct rfx_cli_class *c = &run->classes->items[i];
        printf("%-10s %6lld  %12.6g  %s\n", i == 0 ? "top" : "", (long long)c->index,
               (double)c->value, c->label != NULL ? c->label : "");
    }
    return RFX_EXIT_DONE;
}

int rfx_run_result_print(const struct rfx_run_result *result) {
    int code = result->options->json ? print_json(result) : print_text(result);
    if (code == RFX_EXIT_DONE) tell_label_count(result);
    return code;
}
