/* Sections planned, run and joined; see rank_sections.h. */
#include "tools/mpi/rank_sections.h"

#include <stdio.h>

#include "layers/core/checked.h"
#include "layers/core/temp_file.h"
#include "tools/cli/command.h"
#include "tools/cli/progress.h"
#include "tools/cli/run_once.h"
#include "tools/mpi/rank_picture.h"
#include "tools/mpi/row_exchange.h"

static const struct rfx_tensor *map_of(const struct rfx_rank_sections *s, int cut) {
    return &s->job->graph->nodes[s->exchange.cuts[cut]].out;
}

static enum rfx_status graph_of(const struct rfx_rank_sections *s, struct rfx_part_section ends,
                                struct rfx_graph **out, struct rfx_error *err) {
    return rfx_part_graph_section(s->job->graph, ends, s->before->known, s->before->states.n,
                                  s->ranks->rank, s->ranks->size, out, err);
}

static enum rfx_status make_graphs(struct rfx_rank_sections *s, struct rfx_error *err) {
    const struct rfx_part_section all = {RFX_PART_OUTER, s->exchange.ends.to};
    struct rfx_graph *again = NULL;
    enum rfx_status status = RFX_OK;
    int64_t macs = 0;
    for (int i = 0; i <= s->exchange.n && status == RFX_OK; i++) {
        status = graph_of(s, rfx_exchange_section(&s->exchange, i), &s->graphs[i], err);
        macs += (int64_t)rfx_exchange_macs(s->graphs[i]);
    }
    if (s->exchange.n == 0 && s->from == RFX_PART_OUTER) return status;
    if (status == RFX_OK) status = graph_of(s, all, &again, err);
    s->macs_saved += (int64_t)rfx_exchange_macs(again) - macs;
    rfx_graph_free(again);
    return status;
}

/* A cut's map as a source, beside what else is held. */
static struct rfx_source_traits traits_of(const struct rfx_rank_sections *s, int cut,
                                          int64_t window_rows) {
    const struct rfx_tensor *map = &s->job->graph->nodes[cut].out;
    const struct rfx_source_traits *image = &s->job->request.source;
    return (struct rfx_source_traits){
        .h = map->h,
        .w = map->w,
        .c = map->c,
        .random_access = true,
        .fixed_bytes = image->fixed_bytes + (size_t)window_rows * image->window_row_bytes +
                       2 * rfx_row_store_bytes(map)}; /* twice while it grows */
}

static void see_window(struct rfx_rank_sections *s, const struct rfx_plan *plan) {
    if (s->from == RFX_PART_OUTER && plan != NULL)
        s->window_rows = rfx_max_i64(s->window_rows, plan->window_rows);
}

/* Rows that the image holds when section i begins. */
static int64_t window_at(const struct rfx_rank_sections *s, int i) {
    bool first = i > 0 && s->from == RFX_PART_OUTER && s->plans[0] != NULL;
    return first ? rfx_max_i64(s->window_rows, s->plans[0]->window_rows) : s->window_rows;
}

static bool reads_image(const struct rfx_rank_sections *s, int i) {
    return rfx_exchange_section(&s->exchange, i).from == RFX_PART_OUTER;
}

/* Bytes of the sums of what section i reads of the image. */
static size_t sums_bytes(const struct rfx_rank_sections *s, int i) {
    if (s->ranks->size == 1 || s->graphs[i] == NULL || !reads_image(s, i)) return 0;
    return rfx_row_sums_bytes(rfx_rect_rows(rfx_part_graph_image(s->graphs[i])));
}

/* Asks for section i: what it reads and what is held beside it. `held`: by graphs and plans of the
 * others. */
static void ask(struct rfx_rank_sections *s, int i, size_t held) {
    struct rfx_source_traits *source = &s->job->request.source;
    int from = rfx_exchange_section(&s->exchange, i).from;
    if (from != RFX_PART_OUTER) *source = traits_of(s, from, window_at(s, i));
    source->fixed_bytes += held + sums_bytes(s, i);
    if (i == s->exchange.n) {
        source->fixed_bytes += s->outputs_bytes;
        return;
    }
    source->fixed_bytes +=
        rfx_row_store_bytes(map_of(s, i)) + rfx_row_exchange_bytes(s->ranks, map_of(s, i));
    s->job->request.emit_outputs = true;
}

/* Whether there is another way if this one does not fit the budget. */
static bool may_fall_back(const struct rfx_rank_sections *s) {
    return !s->exchange.asked && (s->exchange.n > 0 || s->exchange.ends.from != RFX_PART_OUTER);
}

/* Without a word where there is another way. */
static int tell(struct rfx_rank_sections *s, enum rfx_status status, const struct rfx_error *err) {
    if (status == RFX_STATUS_BUDGET_IMPOSSIBLE && may_fall_back(s)) {
        s->refused = *err;
        return RFX_EXIT_BUDGET;
    }
    return status == RFX_OK ? RFX_EXIT_DONE : rfx_cli_fail(status, err);
}

static int plan_asked(struct rfx_rank_sections *s) {
    struct rfx_error err = {{0}};
    if (!may_fall_back(s)) return rfx_cli_job_plan(s->job, s->options, "run");
    return tell(s, rfx_plan_create(s->job->graph, &s->job->request, &s->job->plan, &err), &err);
}

/* The round that the last section is. */
static int plan_round(struct rfx_rank_sections *s, size_t held) {
    struct rfx_error err = {{0}};
    struct rfx_part_source source = {.from =
                                         rfx_exchange_section(&s->exchange, s->exchange.n).from};
    bool cut = source.from != RFX_PART_OUTER;
    s->states = (struct rfx_part_states){.mem = s->job->mem,
                                         .round = s->before->states.round + 1,
                                         .index = s->ranks->rank + 1,
                                         .count = s->ranks->size};
    if (cut) source.traits = traits_of(s, source.from, window_at(s, s->exchange.n));
    source.traits.fixed_bytes += held;
    enum rfx_status status = rfx_part_round_plan(s->job, RFX_PART_ALL, s->before,
                                                 cut ? &source : NULL, &s->states, &s->round, &err);
    (void)snprintf(s->what, sizeof s->what, "its share of round %d of %d of states",
                   s->states.round, s->before->states.round + s->before->rounds.rounds);
    s->round.what = s->what;
    return tell(s, status, &err);
}

static int plan_section(struct rfx_rank_sections *s, int i, size_t held) {
    struct rfx_cli_job *job = s->job;
    struct rfx_graph *whole = job->graph;
    struct rfx_plan_request request = job->request;
    if (s->graphs[i] == NULL || rfx_exchange_section(&s->exchange, i).to == RFX_PART_STATES)
        return RFX_EXIT_DONE; /* states are planned where they are made */
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
    if (s->exchange.n > 0 || s->from != RFX_PART_OUTER)
        held = 2 * (rfx_memory_current_bytes(s->job->mem) - before);
    for (int i = 0; i <= s->exchange.n && code == RFX_EXIT_DONE; i++)
        code = plan_section(s, i, held);
    if (s->exchange.ends.to == RFX_PART_STATES && code == RFX_EXIT_DONE) code = plan_round(s, held);
    return rfx_ranks_agree(s->ranks, code);
}

static void drop_sections(struct rfx_rank_sections *s) {
    for (int i = 0; i <= s->exchange.n; i++) drop_section(s, i);
    rfx_part_round_release(&s->round);
}

static void let_go(struct rfx_rank_sections *s) {
    rfx_image_free(s->picture);
    rfx_row_store_free(s->store);
    s->picture = NULL;
    s->store = NULL;
}

int rfx_rank_sections_plan(struct rfx_rank_sections *sections, const struct rfx_part_before *before,
                           int to) {
    struct rfx_rank_sections *s = sections;
    const struct rfx_part_rounds *rounds = &before->rounds;
    int rounds_left = rounds->rounds - 1 + rounds->reads_image;
    const struct rfx_exchange_network network = {
        .whole = s->job->graph,
        .known = before->known,
        .n_known = before->states.n,
        .ends = {s->from, to},
        .limit = to == RFX_PART_STATES ? rounds->first : s->job->graph->n_nodes,
        .rounds = to == RFX_PART_STATES ? rounds_left : 0,
        .threads = s->job->request.threads,
        .caches = s->job->request.caches};
    drop_sections(s);
    s->before = before;
    int64_t saved = s->macs_saved;
    int code = rfx_exchange_choose(s->ranks, &network, s->options, &s->exchange);
    if (code != RFX_EXIT_DONE) return code;
    code = plan_all(s);
    if (code != RFX_EXIT_BUDGET || !may_fall_back(s)) return code;
    drop_sections(s);
    let_go(s);
    rfx_part_states_release(&s->states);
    s->from = s->exchange.ends.from = RFX_PART_OUTER;
    s->exchange.n = 0;
    s->macs_saved = saved;
    code = plan_all(s);
    if (code == RFX_EXIT_BUDGET && s->refused.text[0] != '\0')
        rfx_cli_message("with rows exchanged it %s", s->refused.text);
    s->refused.text[0] = '\0';
    return code;
}

static enum rfx_status take_rows(void *user, const struct rfx_end *end, struct rfx_rect rect,
                                 const struct rfx_view *view, struct rfx_error *err) {
    (void)end;
    return rfx_row_store_put(user, rect, view, err);
}

struct rfx_image *rfx_rank_sections_image(const struct rfx_rank_sections *sections) {
    return sections->picture != NULL ? sections->picture : sections->job->image;
}

enum rfx_status rfx_rank_sections_begin_sums(struct rfx_rank_sections *sections, int i,
                                             struct rfx_error *err) {
    struct rfx_rank_sections *s = sections;
    s->sums_rect = (struct rfx_rect){0};
    if (sums_bytes(s, i) == 0) return RFX_OK;
    s->sums_rect = rfx_part_graph_image(s->graphs[i]);
    enum rfx_status status = rfx_row_sums_create(s->job->mem, s->sums_rect, &s->sums, err);
    rfx_image_set_row_sums(s->job->image, s->sums);
    return status;
}

static void drop_sums(struct rfx_rank_sections *s) {
    if (s->sums != NULL) rfx_image_set_row_sums(s->job->image, NULL);
    rfx_row_sums_free(s->sums);
    s->sums = NULL;
}

void rfx_rank_sections_compare_sums(struct rfx_rank_sections *sections) {
    if (sections->ranks->size > 1)
        rfx_rank_picture_compare(sections->ranks, sections->sums, sections->sums_rect);
    drop_sums(sections);
}

/* Makes this rank's rows of the next cut. */
static enum rfx_status make_rows(struct rfx_rank_sections *s, int i, struct rfx_row_store *next,
                                 struct rfx_error *err) {
    const struct rfx_output_sink sink = {.write = take_rows, .user = next};
    const struct rfx_cli_run run = {.graph = s->graphs[i],
                                    .plan = s->plans[i],
                                    .image = rfx_rank_sections_image(s),
                                    .sink = &sink,
                                    .spill = s->options->spill,
                                    .what = "its share of rows to exchange"};
    struct rfx_run_report report = {0};
    enum rfx_status status = rfx_cli_run_once(&run, &report, err);
    if (status != RFX_OK && s->store != NULL) rfx_row_store_explain(s->store, err);
    s->macs += report.macs;
    s->seconds += report.seconds;
    return status;
}

/* A store for what this rank makes of a cut's map and what it reads of it, as one range. */
static enum rfx_status open_store(const struct rfx_rank_sections *s, int cut, struct rfx_range need,
                                  struct rfx_row_store **out, struct rfx_error *err) {
    struct rfx_range rows =
        rfx_rect_row_range(rfx_part_map_rows(s->job->graph, cut, s->ranks->rank, s->ranks->size));
    rows = rfx_range_union(rows, need);
    if (rows.lo >= rows.hi) rows = (struct rfx_range){0, 1}; /* nothing: but it is a picture */
    return rfx_row_store_open(s->job->mem, rfx_temp_folder(s->options->spill),
                              &s->job->graph->nodes[cut].out, rows, out, err);
}

/* Rows of the cut that section i reads. */
static struct rfx_range need_of(const struct rfx_rank_sections *s, int i) {
    struct rfx_range none = {0, 0};
    return s->graphs[i] != NULL ? rfx_rect_row_range(rfx_part_graph_image(s->graphs[i])) : none;
}

/* Gets from others what is needed beyond this rank's rows, which are in `store`; from there the
 * network goes on. */
static enum rfx_status go_on_from(struct rfx_rank_sections *s, int cut, struct rfx_row_store *store,
                                  struct rfx_range need, struct rfx_error *err) {
    uint64_t received = 0;
    let_go(s);
    s->store = store;
    s->from = cut;
    enum rfx_status status =
        rfx_row_exchange(s->ranks, s->job->mem, s->job->graph, cut, need, store, &received, err);
    s->received += received;
    return status == RFX_OK ? rfx_row_store_image(store, &s->picture, err) : status;
}

/* What a new way reads of the cut may be more than what the way to it did. */
static enum rfx_status read_more(struct rfx_rank_sections *s, struct rfx_error *err) {
    struct rfx_range need = need_of(s, 0), own;
    struct rfx_row_store *store = NULL;
    own = rfx_rect_row_range(
        rfx_part_map_rows(s->job->graph, s->from, s->ranks->rank, s->ranks->size));
    enum rfx_status status = open_store(s, s->from, need, &store, err);
    if (status == RFX_OK) status = rfx_row_store_copy(store, s->store, own, err);
    if (status == RFX_OK) return go_on_from(s, s->from, store, need, err);
    rfx_row_store_free(store);
    return status;
}

static enum rfx_status run_section(struct rfx_rank_sections *s, int i, struct rfx_error *err) {
    struct rfx_row_store *next = NULL;
    int cut = s->exchange.cuts[i];
    bool image = reads_image(s, i);
    enum rfx_status status = open_store(s, cut, need_of(s, i + 1), &next, err);
    if (status == RFX_OK) status = rfx_rank_sections_begin_sums(s, i, err);
    if (status == RFX_OK && s->graphs[i] != NULL) status = make_rows(s, i, next, err);
    if (status == RFX_OK && image) rfx_rank_sections_compare_sums(s);
    see_window(s, s->plans[i]);
    drop_section(s, i);
    if (s->n_cuts < RFX_EXCHANGE_MOST_CUTS) s->cuts[s->n_cuts++] = cut;
    if (status == RFX_OK) return go_on_from(s, cut, next, need_of(s, i + 1), err);
    rfx_row_store_free(next);
    return status;
}

enum rfx_status rfx_rank_sections_run(struct rfx_rank_sections *sections, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    if (sections->from != RFX_PART_OUTER) status = read_more(sections, err);
    for (int i = 0; i < sections->exchange.n && status == RFX_OK; i++)
        status = run_section(sections, i, err);
    return status;
}

enum rfx_status rfx_rank_sections_round(struct rfx_rank_sections *sections, struct rfx_error *err) {
    struct rfx_rank_sections *s = sections;
    const struct rfx_part_source source = {.from = s->from, .map = s->picture};
    bool cut = s->from != RFX_PART_OUTER;
    enum rfx_status status =
        rfx_part_round_run(s->job, cut ? &source : NULL, &s->states, &s->round, err);
    if (status != RFX_OK && cut) rfx_row_store_explain(s->store, err);
    if (status == RFX_OK && !cut)
        rfx_rank_picture_compare(s->ranks, s->round.sums, rfx_part_graph_image(s->round.graph));
    see_window(s, s->round.plan);
    s->macs += s->round.report.macs;
    s->seconds += s->round.report.seconds;
    rfx_part_round_release(&s->round);
    return status;
}

void rfx_rank_sections_release(struct rfx_rank_sections *sections) {
    let_go(sections);
    drop_sums(sections);
    drop_sections(sections);
}
