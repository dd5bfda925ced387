/* rfexec merge of states: the network is loaded as the parts' JSON says, the states of all parts of
 * a round are added up, and either written for the next round, or, where what is left of the
 * network does not read the image, it is run and the output written. */
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/image/image_source.h"
#include "rfexec/output/fingerprint.h"
#include "rfexec/output/output_stream.h"
#include "rfexec/session/session.h"
#include "tools/cli/command.h"
#include "tools/cli/outputs.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/parts/files/part_picture.h"
#include "tools/parts/files/states_network.h"
#include "tools/parts/merge_parts.h"
#include "tools/parts/part_states.h"

struct merge {
    const struct rfx_merge_options *options;
    struct rfx_memory *mem;
    struct rfx_graph *graph, *rest;
    struct rfx_part_states all;
    struct rfx_part_known *known;
    int k; /* the output */
    struct rfx_part_rounds rounds;
    bool *seen;       /* count: which parts there are */
    json_t *pictures; /* of all parts: what they have read of the image */
    struct rfx_image *image;
    struct rfx_plan *plan;
    struct rfx_session *session;
    struct rfx_output_stream *stream;
    struct rfx_fingerprint fingerprint;
};

static enum rfx_status load(struct merge *m, struct rfx_error *err) {
    return rfx_part_states_load_network(m->mem, &m->all, m->options->words.args[0],
                                        m->options->memory_bytes, &m->graph, &m->k, err);
}

/* Rows that two parts have read must be the same in both. */
static enum rfx_status check_picture(struct merge *m, int i, const struct rfx_part_states *part,
                                     struct rfx_error *err) {
    int64_t row;
    for (int k = 0; k < i; k++)
        if (!rfx_part_picture_agrees(json_array_get(m->pictures, (size_t)k), part->picture, &row))
            return rfx_fail(err, RFX_STATUS_MALFORMED,
                            "states '%.120s' and '%.120s' are not of one image: row %lld was "
                            "another one when they read it",
                            m->options->words.args[k], m->options->words.args[i], (long long)row);
    json_t *picture = part->picture != NULL ? json_incref(part->picture) : json_null();
    return json_array_append_new(m->pictures, picture) == 0
               ? RFX_OK
               : rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "out of memory");
}

static enum rfx_status add_part(struct merge *m, int i, struct rfx_error *err) {
    const char *path = m->options->words.args[i];
    struct rfx_part_states part;
    enum rfx_status status = rfx_part_states_read(path, m->graph, &part, err);
    if (status != RFX_OK) return status;
    if (!json_equal(part.run, m->all.run) || strcmp(part.output, m->all.output) != 0)
        status = rfx_fail(err, RFX_STATUS_MALFORMED,
                          "states '%.120s' and '%.120s' are not of one run and output",
                          m->options->words.args[0], path);
    else if (part.count == 0 || part.count != m->all.count)
        status = rfx_fail(err, RFX_STATUS_MALFORMED,
                          "states '%.200s' are part %lld of %lld, others are of %lld parts", path,
                          (long long)part.index, (long long)part.count, (long long)m->all.count);
    else if (m->seen[part.index - 1])
        status =
            rfx_fail(err, RFX_STATUS_MALFORMED, "states '%.200s': part %lld of %lld is there twice",
                     path, (long long)part.index, (long long)part.count);
    if (status == RFX_OK) m->seen[part.index - 1] = true;
    if (status == RFX_OK) status = check_picture(m, i, &part, err);
    if (status == RFX_OK && i > 0) {
        status = rfx_part_states_merge(&m->all, m->graph, &part, err);
        if (status == RFX_STATUS_MALFORMED)
            status = rfx_fail_within(err, status, "states '%.120s' and '%.120s'", path,
                                     m->options->words.args[0]);
    }
    rfx_part_states_release(&part);
    return status;
}

/* More parts than a run would have: their number comes from a file. */
#define MOST_PARTS 1000000000

static enum rfx_status add_parts(struct merge *m, struct rfx_error *err) {
    int64_t missing = 0, first = 0;
    if (m->all.count < 1 || m->all.count > MOST_PARTS)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "states '%.200s' are merged already",
                        m->options->words.args[0]);
    m->seen = rfx_memory_calloc(m->mem, (size_t)m->all.count, sizeof *m->seen);
    if (m->seen == NULL) return rfx_memory_fail(m->mem, "parts", (size_t)m->all.count, err);
    for (int i = 0; i < m->options->words.n_args; i++) {
        enum rfx_status status = add_part(m, i, err);
        if (status != RFX_OK) return status;
    }
    for (int64_t i = m->all.count; i > 0; i--)
        if (!m->seen[i - 1]) {
            missing++;
            first = i;
        }
    if (missing == 0) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "beside states '%.200s' %lld of %lld parts are missing, the first one %lld",
                    m->options->words.args[0], (long long)missing, (long long)m->all.count,
                    (long long)first);
}

/* Plans what is left, on an image that nobody reads. */
static enum rfx_status plan_rest(struct merge *m, const struct rfx_output_format *format,
                                 struct rfx_error *err) {
    char spec[64];
    const struct rfx_tensor *out = &m->graph->nodes[m->graph->outputs[m->k].node].out;
    const struct rfx_tensor *in = &m->graph->nodes[m->graph->input].out;
    struct rfx_image_options options = rfx_image_default_options();
    (void)snprintf(spec, sizeof spec, "synthetic:%lldx%lld", (long long)in->h, (long long)in->w);
    options.channels = in->c;
    enum rfx_status status = rfx_part_graph_after(m->graph, m->k, m->known, m->all.n,
                                                  rfx_rect_full(out->h, out->w), &m->rest, err);
    if (status == RFX_OK) status = rfx_image_open(m->mem, spec, &options, &m->image, err);
    if (status != RFX_OK) return status;
    struct rfx_plan_request request = {.source = rfx_image_traits(m->image),
                                       .threads = 1,
                                       .memory_bytes = m->options->memory_bytes};
    request.source.fixed_bytes += rfx_output_stream_bytes(format, out);
    return rfx_plan_create(m->rest, &request, &m->plan, err);
}

static enum rfx_status receive(void *user, const struct rfx_end *end, struct rfx_rect rect,
                               const struct rfx_view *view, struct rfx_error *err) {
    struct merge *m = user;
    rfx_fingerprint_add_end(&m->fingerprint, end, rect, view);
    return rfx_output_stream_write_end(m->stream, end, rect, view, err);
}

static enum rfx_status run_rest(struct merge *m, struct rfx_error *err) {
    struct rfx_output_format format;
    struct rfx_stored stored = m->graph->outputs[m->k].stored;
    if (stored.reshaped) stored.shape = rfx_output_shape(m->graph, m->k);
    const struct rfx_tensor *out = &m->graph->nodes[m->graph->outputs[m->k].node].out;
    enum rfx_status status = rfx_merge_format(m->options, out, &stored, &format, err);
    if (status == RFX_OK && format.kind != &rfx_output_npy)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "-o '%.200s': this output is written as .npy", m->options->output.file);
    if (status == RFX_OK) status = plan_rest(m, &format, err);
    if (status == RFX_OK) status = rfx_session_create(m->rest, m->plan, &m->session, err);
    if (status == RFX_OK)
        status =
            rfx_output_stream_open(m->mem, m->options->output.file, &format, out, &m->stream, err);
    if (status != RFX_OK) return status;
    const struct rfx_output_sink sink = {.write = receive, .user = m};
    rfx_session_set_sink(m->session, &sink);
    status = rfx_session_run(m->session, m->image, NULL, NULL, NULL, err);
    rfx_session_set_sink(m->session, NULL);
    return status == RFX_OK ? rfx_output_stream_commit(m->stream, NULL, NULL, err) : status;
}

static enum rfx_status write_states(const struct merge *m, struct rfx_error *err) {
    if (rfx_cli_options_of_files(&m->options->output))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "-o '%.200s': states are written, to which --bits, --range and options of "
                        "TIFF and Zarr do not apply",
                        m->options->output.file);
    return rfx_part_states_write(m->options->output.file, m->graph, &m->all, err);
}

static int print_result(const struct merge *m, bool made) {
    const struct rfx_shape output = rfx_output_shape(m->graph, m->k);
    char hash[RFX_FINGERPRINT_CHARS], shape[96], peak[RFX_HUMAN_CHARS];
    rfx_fingerprint_hex(&m->fingerprint, hash);
    if (m->options->json) {
        json_t *document =
            json_pack("{s:i, s:s, s:i, s:O, s:i, s:i}", "schema", RFX_JSON_SCHEMA, "command",
                      "merge", "parts", m->options->words.n_args, "run", m->all.run, "round",
                      m->all.round, "rounds_left", m->rounds.rounds);
        if (made)
            (void)json_object_set_new(document, "output",
                                      json_pack("{s:s, s:o, s:s}", "name", m->all.output, "shape",
                                                rfx_report_shape(&output), "hash", hash));
        return rfx_report_print(document);
    }
    printf("parts      %d of one run, states of round %d\n", m->options->words.n_args,
           m->all.round);
    printf("measured   %s peak RSS\n", rfx_human_bytes(rfx_peak_rss_bytes(), peak));
    if (made)
        printf("output     %s %s, hash %s\n", m->all.output, rfx_human_shape(&output, shape), hash);
    else
        printf("states     %d round%s more: run --part I/N --states %s makes %s\n",
               m->rounds.rounds, m->rounds.rounds == 1 ? "" : "s", m->options->output.file,
               m->rounds.rounds == 0 ? "the parts of the output" : "those of the next round");
    return RFX_EXIT_DONE;
}

static void release(struct merge *m) {
    rfx_output_stream_free(m->stream);
    rfx_session_free(m->session);
    rfx_plan_free(m->plan);
    rfx_image_free(m->image);
    rfx_graph_free(m->rest);
    rfx_part_states_release_known(m->mem, m->known, m->all.n);
    rfx_part_states_release(&m->all);
    rfx_memory_release(m->mem, m->seen);
    json_decref(m->pictures);
    rfx_graph_free(m->graph);
}

int rfx_part_merge_states(const struct rfx_merge_options *options, struct rfx_memory *mem) {
    struct merge m = {.options = options, .mem = mem, .all.mem = mem, .pictures = json_array()};
    struct rfx_error err = {{0}};
    bool made = false;
    enum rfx_status status = rfx_part_states_peek(mem, options->words.args[0], &m.all, &err);
    if (status == RFX_OK) status = load(&m, &err);
    if (status == RFX_OK) {
        rfx_part_states_release(&m.all);
        status = rfx_part_states_read(options->words.args[0], m.graph, &m.all, &err);
    }
    if (status == RFX_OK) status = add_parts(&m, &err);
    if (status == RFX_OK) status = rfx_part_states_finish(&m.all, m.graph, &m.known, &err);
    if (status == RFX_OK)
        status = rfx_part_graph_rounds(m.graph, m.k, m.known, m.all.n, &m.rounds, &err);
    if (status == RFX_OK) {
        made = m.rounds.rounds == 0 && !m.rounds.reads_image;
        m.all.index = m.all.count = 0;
        json_decref(m.all.picture); /* of the first part alone */
        m.all.picture = NULL;
        status = made ? run_rest(&m, &err) : write_states(&m, &err);
    }
    int code = status == RFX_OK ? print_result(&m, made) : rfx_cli_fail(status, &err);
    release(&m);
    return code;
}
