/* Sections planned, run and joined; see rank_sections.h. */
#include "tools/mpi/rank_sections.h"

#include "rfexec/image/turn/nameless.h"
#include "tools/cli/command.h"
#include "tools/cli/progress.h"
#include "tools/mpi/row_exchange.h"

static const struct rfx_tensor *map_of(const struct rfx_rank_sections *s, int cut) {
    return &s->job->graph->nodes[s->exchange.cuts[cut]].out;
}

static enum rfx_status make_graphs(struct rfx_rank_sections *s, struct rfx_error *err) {
    const struct rfx_part_section all = {RFX_PART_OUTER, RFX_PART_OUTER};
    struct rfx_graph *again = NULL;
    enum rfx_status status = RFX_OK;
    uint64_t macs = 0;
    for (int i = 0; i <= s->exchange.n && status == RFX_OK; i++) {
        status =
            rfx_part_graph_section(s->job->graph, rfx_exchange_section(&s->exchange, i), s->known,
                                   s->n_known, s->ranks->rank, s->ranks->size, &s->graphs[i], err);
        macs += rfx_exchange_macs(s->graphs[i]);
    }
    if (status == RFX_OK && s->exchange.n > 0)
        status = rfx_part_graph_section(s->job->graph, all, s->known, s->n_known, s->ranks->rank,
                                        s->ranks->size, &again, err);
    s->macs_saved = s->exchange.n > 0 ? (int64_t)(rfx_exchange_macs(again) - macs) : 0;
    rfx_graph_free(again);
    return status;
}

/* Asks for section i: what it reads and what is held beside it. `held`: by graphs and plans of the
 * others. */
static void ask(struct rfx_rank_sections *s, int i, size_t held) {
    struct rfx_source_traits *source = &s->job->request.source;
    if (i > 0) {
        const struct rfx_tensor *map = map_of(s, i - 1);
        size_t window = s->plans[0] != NULL ? (size_t)s->plans[0]->window_rows : 0;
        *source = (struct rfx_source_traits){
            .h = map->h,
            .w = map->w,
            .c = map->c,
            .random_access = true,
            .fixed_bytes =
                source->fixed_bytes + window * source->window_row_bytes + rfx_row_store_bytes(map)};
    }
    source->fixed_bytes += held;
    if (i == s->exchange.n) {
        source->fixed_bytes += s->outputs_bytes;
        return;
    }
    source->fixed_bytes +=
        rfx_row_store_bytes(map_of(s, i)) + rfx_row_exchange_bytes(s->ranks, map_of(s, i));
    s->job->request.emit_outputs = true;
}

/* Without a word where there is another way if it does not fit. */
static int plan_asked(struct rfx_rank_sections *s) {
    struct rfx_error err = {{0}};
    if (s->exchange.n == 0 || s->exchange.asked) return rfx_cli_job_plan(s->job, s->options, "run");
    enum rfx_status status = rfx_plan_create(s->job->graph, &s->job->request, &s->job->plan, &err);
    if (status == RFX_STATUS_BUDGET_IMPOSSIBLE) return RFX_EXIT_BUDGET;
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
}

static int plan_section(struct rfx_rank_sections *s, int i, size_t held) {
    struct rfx_cli_job *job = s->job;
    struct rfx_graph *whole = job->graph;
    struct rfx_plan_request request = job->request;
    if (s->graphs[i] == NULL) return RFX_EXIT_DONE;
    ask(s, i, held);
    job->graph = s->graphs[i];
    int code = plan_asked(s);
    s->plans[i] = job->plan;
    job->plan = NULL;
    job->graph = whole;
    request.notes = job->request.notes;
    job->request = request;
    return code;
}

static void drop_section(struct rfx_rank_sections *s, int i) {
    rfx_plan_free(s->plans[i]);
    rfx_graph_free(s->graphs[i]);
    s->plans[i] = NULL;
    s->graphs[i] = NULL;
}

static int plan_all(struct rfx_rank_sections *s) {
    struct rfx_error err = {{0}};
    size_t before = rfx_memory_current_bytes(s->job->mem), held = 0;
    enum rfx_status status = make_graphs(s, &err);
    int code = status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, &err);
    if (s->exchange.n > 0) held = 2 * (rfx_memory_current_bytes(s->job->mem) - before);
    for (int i = 0; i <= s->exchange.n && code == RFX_EXIT_DONE; i++)
        code = plan_section(s, i, held);
    return rfx_ranks_agree(s->ranks, code);
}

int rfx_rank_sections_plan(struct rfx_rank_sections *sections) {
    struct rfx_rank_sections *s = sections;
    const struct rfx_exchange_network network = {.whole = s->job->graph,
                                                 .known = s->known,
                                                 .n_known = s->n_known,
                                                 .threads = s->job->request.threads,
                                                 .caches = s->job->request.caches};
    int code = rfx_exchange_choose(s->ranks, &network, s->options, &s->exchange);
    if (code != RFX_EXIT_DONE) return code;
    code = plan_all(s);
    if (code != RFX_EXIT_BUDGET || s->exchange.n == 0 || s->exchange.asked) return code;
    for (int i = 0; i <= s->exchange.n; i++) drop_section(s, i);
    s->exchange.n = 0;
    return plan_all(s);
}

static enum rfx_status take_rows(void *user, const struct rfx_end *end, struct rfx_rect rect,
                                 const struct rfx_view *view, struct rfx_error *err) {
    (void)end;
    return rfx_row_store_put(user, rect, view, err);
}

struct rfx_image *rfx_rank_sections_image(const struct rfx_rank_sections *sections) {
    return sections->picture != NULL ? sections->picture : sections->job->image;
}

/* Makes this rank's rows of the next cut. */
static enum rfx_status make_rows(struct rfx_rank_sections *s, int i, struct rfx_row_store *next,
                                 struct rfx_error *err) {
    struct rfx_output_sink sink = {.write = take_rows, .user = next, .any_order = true};
    struct rfx_cli_progress progress;
    struct rfx_session *session = NULL;
    struct rfx_run_report report = {0};
    enum rfx_status status = rfx_session_create(s->graphs[i], s->plans[i], &session, err);
    if (status != RFX_OK) return status;
    rfx_session_set_sink(session, &sink);
    rfx_session_set_spill_folder(session, s->options->spill);
    rfx_cli_progress_start(&progress, "rows");
    status = rfx_session_run(session, rfx_rank_sections_image(s), rfx_cli_progress_step, &progress,
                             &report, err);
    rfx_cli_progress_end(&progress);
    if (status != RFX_OK && s->store != NULL) rfx_row_store_explain(s->store, err);
    if (status == RFX_OK && rfx_session_output_is_stored(session, 0)) {
        struct rfx_view view = rfx_session_end_view(session, &s->graphs[i]->ends[0]);
        status = rfx_row_store_put(next, s->graphs[i]->outputs[0].part, &view, err);
    }
    if (status == RFX_OK && rfx_cli_progress_cancelled())
        status = rfx_fail(err, RFX_STATUS_CANCELLED, "stopped by a signal");
    s->macs += report.macs;
    s->seconds += report.seconds;
    rfx_session_free(session);
    return status;
}

/* What this rank has of a cut's map and what it reads of it, as one range. */
static enum rfx_status open_store(const struct rfx_rank_sections *s, int i, struct rfx_range need,
                                  struct rfx_row_store **out, struct rfx_error *err) {
    struct rfx_range rows = need;
    if (s->graphs[i] != NULL)
        rows = rfx_range_union(rows, rfx_rect_row_range(s->graphs[i]->outputs[0].part));
    if (s->graphs[i] == NULL && s->graphs[i + 1] == NULL) return RFX_OK;
    if (rows.lo >= rows.hi) rows = (struct rfx_range){0, 1}; /* of constants alone */
    return rfx_row_store_open(s->job->mem, rfx_nameless_folder(s->options->spill), map_of(s, i),
                              rows, out, err);
}

static void let_go(struct rfx_rank_sections *s) {
    rfx_image_free(s->picture);
    rfx_row_store_free(s->store);
    s->picture = NULL;
    s->store = NULL;
}

static enum rfx_status run_section(struct rfx_rank_sections *s, int i, struct rfx_error *err) {
    struct rfx_row_store *next = NULL;
    struct rfx_range need = {0, 0};
    uint64_t received = 0;
    if (s->graphs[i + 1] != NULL) need = rfx_rect_row_range(rfx_part_graph_image(s->graphs[i + 1]));
    enum rfx_status status = open_store(s, i, need, &next, err);
    if (status == RFX_OK && s->graphs[i] != NULL) status = make_rows(s, i, next, err);
    drop_section(s, i);
    let_go(s);
    s->store = next;
    if (status == RFX_OK)
        status = rfx_row_exchange(s->ranks, s->job->mem, s->job->graph, s->exchange.cuts[i], need,
                                  next, &received, err);
    s->received += received;
    if (status == RFX_OK && next != NULL) status = rfx_row_store_image(next, &s->picture, err);
    return status;
}

enum rfx_status rfx_rank_sections_run(struct rfx_rank_sections *sections, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < sections->exchange.n && status == RFX_OK; i++)
        status = run_section(sections, i, err);
    return status;
}

void rfx_rank_sections_release(struct rfx_rank_sections *sections) {
    let_go(sections);
    for (int i = 0; i <= sections->exchange.n; i++) drop_section(sections, i);
}
