/* The run of a part: the graph of the part is planned and run as any other, inside the budget, and
 * its rectangle written to an .npy. */
#include "tools/parts/part_run.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "layers/core/checked.h"
#include "rf_analysis/part_graph.h"
#include "rfexec/output/fingerprint.h"
#include "rfexec/output/georeferenced.h"
#include "rfexec/output/output_stream.h"
#include "rfexec/session/session.h"
#include "tools/cli/job.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/parts/files/part_file.h"
#include "tools/parts/files/part_geo.h"
#include "tools/parts/files/part_identity.h"
#include "tools/parts/files/part_json.h"
#include "tools/parts/files/part_picture.h"
#include "tools/parts/files/part_words.h"
#include "tools/parts/part_choice.h"
#include "tools/parts/part_rows.h"
#include "tools/parts/part_states.h"

struct part_run {
    struct rfx_cli_job job; /* its graph: of the part */
    struct rfx_graph *whole;
    const struct rfx_cli_run_options *options;
    int output;           /* of the whole graph */
    int64_t index, count; /* of cells: share `index`, from 0 */
    struct rfx_part_file part;
    struct rfx_part_before before;
    struct rfx_session *session;
    struct rfx_output_stream *stream;
    struct rfx_fingerprint fingerprint;
    struct rfx_row_sums *sums; /* of the image rows that it reads */
    struct rfx_run_report report;
};

static const struct rfx_output_format npy = {.kind = &rfx_output_npy};

static enum rfx_status put(void *user, struct rfx_rect rect, const struct rfx_view *view,
                           struct rfx_error *err) {
    struct part_run *run = user;
    return rfx_output_stream_write(run->stream, rect, view, err);
}

/* Rows of one of the maps that the output is joined of: end i of the part's graph. */
static enum rfx_status receive_cells(struct part_run *run, int i, struct rfx_rect rect,
                                     const struct rfx_view *view, struct rfx_error *err) {
    struct rfx_end end = rfx_part_share_end(run->whole, run->output, run->index, run->count, i);
    struct rfx_end inside =
        rfx_part_cells_end(&run->part.cells, &end, &run->whole->nodes[end.node],
                           rfx_part_end_rows(run->whole, &end, run->index, run->count));
    rfx_fingerprint_add_end(&run->fingerprint, &end, rect, view);
    return rfx_output_stream_write_end(run->stream, &inside, rect, view, err);
}

static enum rfx_status receive(void *user, const struct rfx_end *end, struct rfx_rect rect,
                               const struct rfx_view *view, struct rfx_error *err) {
    struct part_run *run = user;
    if (run->part.cells.of > 0) return receive_cells(run, end->output, rect, view, err);
    struct rfx_end whole = rfx_part_file_end(&run->part);
    rfx_fingerprint_add_end(&run->fingerprint, &whole, rect, view);
    return rfx_part_put_rows(run->part.rect, rect, view, put, run, err);
}

static enum rfx_status execute(struct part_run *run, struct rfx_error *err) {
    struct rfx_cli_job *job = &run->job;
    struct rfx_cli_progress progress;
    struct rfx_tensor tensor = rfx_part_file_tensor(&run->part);
    struct rfx_output_sink sink = {.write = receive, .user = run};
    enum rfx_status status = rfx_session_create(job->graph, job->plan, &run->session, err);
    if (status == RFX_OK)
        status = rfx_output_stream_open(job->mem, run->options->output.file, &npy, &tensor,
                                        &run->stream, err);
    if (status != RFX_OK) return status;
    rfx_session_set_sink(run->session, &sink);
    rfx_image_set_row_sums(job->image, run->sums);
    rfx_session_set_spill_folder(run->session, run->options->plan.spill);
    rfx_cli_progress_start(&progress, "part");
    status = rfx_session_run(run->session, job->image, rfx_cli_progress_step, &progress,
                             &run->report, err);
    rfx_cli_progress_end(&progress);
    if (status == RFX_OK && rfx_cli_progress_cancelled())
        status = rfx_fail(err, RFX_STATUS_CANCELLED, "stopped by a signal");
    rfx_image_set_row_sums(job->image, NULL);
    rfx_fingerprint_hex(&run->fingerprint, run->part.fingerprint);
    run->part.picture = rfx_part_picture_json(run->options->words.args[1],
                                              rfx_part_graph_image(job->graph), run->sums);
    rfx_memory_set_stop(job->mem, NULL, NULL); /* from here on files become complete */
    /* first what the part is of: a part that is there is complete */
    if (status == RFX_OK)
        status = rfx_part_file_write(job->mem, run->options->output.file, &run->part, err);
    return status == RFX_OK ? rfx_output_stream_commit(run->stream, NULL, NULL, err) : status;
}

/* Why a part that is there is no part of this run, at this place; NULL: it is. */
static const char *find_other(const struct part_run *run, const struct rfx_part_file *found,
                              char why[400]) {
    if (!rfx_part_file_same_run(&run->part, found, why, 400)) return why;
    if (!rfx_rect_equal(run->part.rect, found->rect)) {
        (void)snprintf(why, 400, "it is another part, rows %lld to %lld and columns %lld to %lld",
                       (long long)found->rect.y0, (long long)found->rect.y1,
                       (long long)found->rect.x0, (long long)found->rect.x1);
        return why;
    }
    if (!rfx_part_cells_equal(&run->part.cells, &found->cells)) {
        char cells[RFX_PART_CELLS_CHARS];
        (void)snprintf(why, 400, "it is another part, cells %s",
                       rfx_part_cells_text(&found->cells, cells));
        return why;
    }
    return NULL;
}

/* Whether the file is there already: *there. A part of another run is refused, as it may be wanted.
 * One that is damaged, or of a large picture that was written since, is made again. */
static int look_for_file(struct part_run *run, bool *there) {
    const char *path = run->options->output.file;
    struct rfx_part_file found = {.run = NULL};
    struct rfx_error err = {{0}};
    char why[400], name[RFX_PART_PATH_CHARS];
    *there = false;
    if (access(path, F_OK) != 0) return RFX_EXIT_DONE;
    enum rfx_status status = rfx_part_json_name(path, name, sizeof name, &err);
    if (status == RFX_OK && access(name, F_OK) != 0) {
        rfx_cli_message("'%s' is there and stays as it is: it is no part, as there is no '%s'",
                        path, name);
        return RFX_EXIT_REFUSED;
    }
    if (status == RFX_OK) status = rfx_part_file_read(path, &found, &err);
    if (status == RFX_OK && find_other(run, &found, why) != NULL) {
        rfx_cli_message("'%s' is there and is no such part: %s", path, why);
        rfx_part_file_release(&found);
        return RFX_EXIT_REFUSED;
    }
    if (status == RFX_OK) status = rfx_part_file_check(run->job.mem, path, &found, &err);
    bool known = rfx_part_hashes_all(run->options);
    if (status == RFX_OK && !known &&
        !rfx_part_picture_same_file(found.picture, run->options->words.args[1]))
        status = rfx_fail(&err, RFX_STATUS_MALFORMED,
                          "'%.200s' may have changed: its size, time or inode is another one",
                          run->options->words.args[1]);
    rfx_part_file_release(&found);
    *there = status == RFX_OK;
    if (status != RFX_OK && status != RFX_STATUS_MALFORMED) return rfx_cli_fail(status, &err);
    if (status != RFX_OK) rfx_cli_message("part '%s' is made again: %s", path, err.text);
    return RFX_EXIT_DONE;
}

static json_t *about_json(const struct part_run *run) {
    struct rfx_rect image = rfx_part_graph_image(run->job.graph);
    char text[RFX_PLAN_TEXT];
    rfx_plan_describe(run->job.plan, text, sizeof text);
    json_t *about =
        json_pack("{s:s, s:s, s:[I,I], s:[I,I], s:s, s:I, s:I}", "model",
                  run->options->words.shown[0], "input", run->options->words.shown[1], "image_rows",
                  (json_int_t)image.y0, (json_int_t)image.y1, "image_columns", (json_int_t)image.x0,
                  (json_int_t)image.x1, "plan", text, "macs", (json_int_t)run->job.plan->macs,
                  "macs_untiled", (json_int_t)run->job.plan->macs_untiled);
    int64_t index, count;
    if (about != NULL && run->options->part.part != NULL &&
        rfx_part_parse_share(run->options->part.part, &index, &count))
        (void)json_object_set_new(about, "part",
                                  json_pack("[I,I]", (json_int_t)index, (json_int_t)count));
    json_t *geo = rfx_part_geo_json(&run->job.geo.geo); /* the image's own: which it is of */
    if (geo != NULL && about != NULL) (void)json_object_set_new(about, "image_geo", geo);
    rfx_part_words_add(about, run->options);
    return about;
}

/* Which cells of the output, or which rows and columns of its map. */
static json_t *place_json(const struct rfx_part_file *part) {
    if (part->cells.of > 0)
        return json_pack("{s:o}", "cells", rfx_part_cells_ranges_json(&part->cells));
    return json_pack("{s:[I,I], s:[I,I]}", "rows", (json_int_t)part->rect.y0,
                     (json_int_t)part->rect.y1, "columns", (json_int_t)part->rect.x0,
                     (json_int_t)part->rect.x1);
}

static void print_place(const struct rfx_part_file *part) {
    char cells[RFX_PART_CELLS_CHARS];
    if (part->cells.of > 0)
        printf("part       %s cells %s of %lld, hash %s\n", part->output,
               rfx_part_cells_text(&part->cells, cells), (long long)part->cells.of,
               part->fingerprint);
    else
        printf("part       %s rows %lld to %lld, columns %lld to %lld, hash %s\n", part->output,
               (long long)part->rect.y0, (long long)part->rect.y1, (long long)part->rect.x0,
               (long long)part->rect.x1, part->fingerprint);
}

static const struct rfx_shape *whole_shape(const struct part_run *run) {
    const struct rfx_part_file *part = &run->part;
    return part->stored.reshaped ? &part->stored.shape : &part->shape;
}

static int print_result(const struct part_run *run) {
    struct rfx_rect image = rfx_part_graph_image(run->job.graph);
    if (run->options->json) {
        json_t *document = rfx_report_document("run", run->options->words.shown[0]);
        rfx_report_conv(document, run->job.graph);
        (void)json_object_update_new(
            document,
            json_pack("{s:s, s:o, s:o, s:{s:s, s:o, s:[I,I], s:[I,I], s:s}}", "input",
                      run->options->words.shown[1], "plan", rfx_report_plan(run->job.plan),
                      "measured", rfx_report_measured(&run->report), "part", "output",
                      run->part.output, "shape", rfx_report_shape(whole_shape(run)), "image_rows",
                      (json_int_t)image.y0, (json_int_t)image.y1, "image_columns",
                      (json_int_t)image.x0, (json_int_t)image.x1, "hash", run->part.fingerprint));
        (void)json_object_update_new(json_object_get(document, "part"), place_json(&run->part));
        return rfx_report_print(document);
    }
    char a[RFX_HUMAN_CHARS], b[RFX_HUMAN_CHARS];
    rfx_report_plan_text(run->job.plan);
    printf("measured   %s peak RSS, %s of activations, %.3f s\n",
           rfx_human_bytes(rfx_peak_rss_bytes(), a),
           rfx_human_bytes(run->report.arena_high_water_bytes, b), run->report.seconds);
    printf("image      rows %lld to %lld, columns %lld to %lld\n", (long long)image.y0,
           (long long)image.y1, (long long)image.x0, (long long)image.x1);
    print_place(&run->part);
    return RFX_EXIT_DONE;
}

static int check_name(const struct rfx_cli_run_options *o) {
    const char *end = strrchr(o->output.file, '.');
    if (end != NULL && strcasecmp(end, ".npy") == 0) return RFX_EXIT_DONE;
    rfx_cli_message("-o '%s': a part of an output is written as -o PART.npy", o->output.file);
    return RFX_EXIT_USAGE;
}

/* Which output, of which run, and what is known of it. */
static int look_at_run(struct part_run *run) {
    struct rfx_error err = {{0}};
    int code = rfx_part_choose_output(run->job.graph, run->options, &run->output);
    if (code != RFX_EXIT_DONE) return code;
    enum rfx_status status = rfx_part_identity(&run->job, run->options, &run->part.run, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    return rfx_part_look_before(&run->job, run->options, run->output, run->part.run, &run->before);
}

/* Settles which part of the output it is. */
static int describe_part(struct part_run *run) {
    const struct rfx_graph *graph = run->job.graph;
    const struct rfx_output *output = &graph->outputs[run->output];
    const struct rfx_tensor *out = &graph->nodes[output->node].out;
    bool cells = rfx_part_cells_of(graph, run->output, &run->part.cells);
    if (!cells && out->layout != RFX_LAYOUT_NHWC) {
        rfx_cli_message("output '%s' is no map of rows and columns: it has no parts", output->name);
        return RFX_EXIT_REFUSED;
    }
    (void)snprintf(run->part.output, sizeof run->part.output, "%s", output->name);
    run->part.shape = out->shape;
    run->part.stored = output->stored;
    if (run->part.stored.reshaped) run->part.stored.shape = rfx_output_shape(graph, run->output);
    if (run->before.states.n > 0) { /* what the part is computed from */
        char hash[33];
        rfx_part_states_hash(&run->before.states, hash);
        (void)json_object_set_new(run->part.run, "states", json_string(hash));
    }
    if (cells)
        return rfx_part_choose_cells(graph, run->options, run->output, &run->index, &run->count,
                                     &run->part.cells);
    return rfx_part_choose_rect(graph, run->options, run->output, &run->part.rect);
}

/* Where the whole output lies, for whoever merges its parts. */
static enum rfx_status find_georeference(struct part_run *run, struct rfx_error *err) {
    struct rfx_georeference geo;
    char words[RFX_GEOREFERENCED_WORDS];
    struct rfx_cli_job *job = &run->job;
    enum rfx_status status = rfx_georeferenced(job->mem, job->graph, run->output, &job->geo,
                                               run->options->input.no_orient, &geo, words, err);
    if (status != RFX_OK) return status;
    if (words[0] != '\0') rfx_cli_message("%s", words);
    run->part.geo = rfx_part_geo_json(&geo);
    rfx_georeference_release(&geo);
    return RFX_OK;
}

/* From here on the job is that of the part. */
static int take_part(struct part_run *run) {
    struct rfx_error err = {{0}};
    struct rfx_graph *part;
    struct rfx_tensor tensor = rfx_part_file_tensor(&run->part);
    enum rfx_status status = RFX_OK;
    if (run->part.cells.of > 0)
        status = rfx_part_graph_share(run->job.graph, run->output, run->before.known,
                                      run->before.states.n, run->index, run->count, &part, &err);
    else
        status = find_georeference(run, &err);
    if (status == RFX_OK && run->part.cells.of == 0)
        status = rfx_part_graph_after(run->job.graph, run->output, run->before.known,
                                      run->before.states.n, run->part.rect, &part, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    run->whole = run->job.graph;
    run->job.graph = part;
    run->job.request.emit_outputs = true;
    struct rfx_rect image = rfx_part_graph_image(part);
    run->job.request.source.fixed_bytes +=
        rfx_output_stream_bytes(&npy, &tensor) + rfx_row_sums_bytes(rfx_rect_rows(image));
    status = rfx_row_sums_create(run->job.mem, image, &run->sums, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    int code = rfx_cli_job_plan(&run->job, run->options, "run");
    if (code == RFX_EXIT_DONE) run->part.about = about_json(run);
    return code;
}

/* A part of the output, or nothing where it is there. */
static int make_part(struct part_run *run) {
    struct rfx_error err = {{0}};
    bool there = false;
    int code = check_name(run->options);
    if (code == RFX_EXIT_DONE) code = describe_part(run);
    if (code == RFX_EXIT_DONE) code = look_for_file(run, &there);
    if (code != RFX_EXIT_DONE) return code;
    if (there) {
        rfx_cli_message("part '%s' is there already, of the same run: nothing is done",
                        run->options->output.file);
        return RFX_EXIT_DONE;
    }
    code = take_part(run);
    if (code != RFX_EXIT_DONE) return code;
    enum rfx_status status = execute(run, &err);
    return status == RFX_OK ? print_result(run) : rfx_cli_fail(status, &err);
}

int rfx_part_run(const struct rfx_cli_run_options *options) {
    struct part_run run = {.options = options};
    int code = rfx_cli_job_open(&run.job, options, options->words.args[1]);
    if (code == RFX_EXIT_DONE) code = look_at_run(&run);
    if (code == RFX_EXIT_DONE && run.before.rounds.rounds > 0)
        code = rfx_part_make_states(&run.job, options, run.output, run.part.run, &run.before);
    else if (code == RFX_EXIT_DONE)
        code = make_part(&run);
    rfx_output_stream_free(run.stream);
    rfx_session_free(run.session);
    rfx_row_sums_free(run.sums);
    rfx_part_file_release(&run.part);
    rfx_plan_free(run.job.plan);
    run.job.plan = NULL;
    if (run.whole != NULL) rfx_graph_free(run.job.graph);
    if (run.whole != NULL) run.job.graph = run.whole;
    rfx_part_before_release(&run.before);
    rfx_cli_job_free(&run.job);
    return code;
}
