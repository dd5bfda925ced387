/* Sections planned, run and joined by exchanged rows; see rank_sections.h. */
#include "tools/mpi/rank_sections.h"

#include <stdio.h>

#include "layers/core/checked.h"
#include "rfexec/image/turn/nameless.h"
#include "tools/cli/command.h"
#include "tools/cli/run_once.h"
#include "tools/commands/run_shard.h"

enum { ROWS = 1024 }; /* of one message */
#define HAS_SUM (UINT64_C(1) << 32)

static uint64_t sum_of(const struct rfx_row_sums *sums, int64_t y) {
    uint32_t sum;
    return sums != NULL && rfx_row_sums_get(sums, y, &sum) ? HAS_SUM | sum : 0;
}

/* The first row from y on that this rank has read differently; `end`: there is none. */
static int64_t find_other(const struct rfx_row_sums *sums, const uint64_t *theirs, int64_t y,
                          int64_t end) {
    for (int64_t i = 0; y + i < end; i++) {
        uint64_t mine = sum_of(sums, y + i);
        if (mine != 0 && theirs[i] != 0 && mine != theirs[i]) return y + i;
    }
    return end;
}

/* Sends the row sums of rank `root` to all. *row: the first one that differs here, or -1. */
static enum rfx_status compare_with(struct rfx_ranks *ranks, int root,
                                    const struct rfx_row_sums *sums, struct rfx_rect rect,
                                    int64_t *row, struct rfx_error *err) {
    uint64_t theirs[ROWS];
    struct rfx_rect of_root = rect;
    enum rfx_status status = rfx_ranks_spread_from(ranks, root, &of_root, sizeof of_root, err);
    bool alike = of_root.x0 == rect.x0 && of_root.x1 == rect.x1;
    for (int64_t y = of_root.y0; y < of_root.y1 && status == RFX_OK; y += ROWS) {
        int64_t end = rfx_min_i64(y + ROWS, of_root.y1);
        for (int64_t i = 0; ranks->rank == root && y + i < end; i++)
            theirs[i] = sum_of(sums, y + i);
        status =
            rfx_ranks_spread_from(ranks, root, theirs, (size_t)(end - y) * sizeof *theirs, err);
        int64_t other = status == RFX_OK && alike ? find_other(sums, theirs, y, end) : end;
        if (other < end && *row < 0) *row = other;
    }
    return status;
}

/* All ranks together, after each has read its rows of the image, in `rect` (sums NULL: none). Ends
 * the job where two ranks have read different values of one row in the same columns. */
static void compare_images(struct rfx_ranks *ranks, const struct rfx_row_sums *sums,
                           struct rfx_rect rect) {
    struct rfx_error err = {{0}};
    enum rfx_status status = RFX_OK, found = RFX_OK;
    int code = RFX_EXIT_DONE;
    ranks->together = true; /* so that rank 0 prints */
    for (int root = 0; root < ranks->size && status == RFX_OK; root++) {
        int64_t row = -1;
        status = compare_with(ranks, root, sums, rect, &row, &err);
        if (status != RFX_OK || row < 0 || found != RFX_OK || root > ranks->rank) continue;
        found = rfx_fail(&err, RFX_STATUS_MALFORMED,
                         "has not read one image with rank %d: row %lld was another one when the "
                         "two read it",
                         root, (long long)row);
        code = rfx_cli_fail(found, &err);
    }
    if (status != RFX_OK) code = rfx_cli_fail(status, &err);
    code = rfx_ranks_agree(ranks, code);
    ranks->together = false;
    if (code == RFX_EXIT_DONE) return;
    if (ranks->rank > 0)
        code = rfx_ranks_agree(ranks, code); /* waits until rank 0 has ended the job */
    rfx_ranks_end_job(ranks, code);
}

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

/* A cut's map as the source of a plan, with everything else that is held beside it. */
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
                       2 * rfx_row_store_bytes(map)}; /* two stores exist while rows are copied */
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

/* Bytes of the row sums of section i. */
static size_t sums_bytes(const struct rfx_rank_sections *s, int i) {
    if (s->ranks->size == 1 || s->graphs[i] == NULL || !reads_image(s, i)) return 0;
    return rfx_row_sums_bytes(rfx_rect_rows(rfx_part_graph_image(s->graphs[i])));
}

/* Sets the plan request for section i. `held`: bytes of the other sections' graphs and plans. */
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

/* Returns the exit code of a status; prints nothing where another way is left to try. */
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

/* Plans the round at the end of the way. */
static int plan_round(struct rfx_rank_sections *s, size_t held) {
    struct rfx_error err = {{0}};
    struct rfx_shard_source source = {.from =
                                          rfx_exchange_section(&s->exchange, s->exchange.n).from};
    bool cut = source.from != RFX_PART_OUTER;
    s->states = (struct rfx_shard_states){.mem = s->job->mem,
                                          .round = s->before->states.round + 1,
                                          .index = s->ranks->rank + 1,
                                          .count = s->ranks->size};
    if (cut) source.traits = traits_of(s, source.from, window_at(s, s->exchange.n));
    source.traits.fixed_bytes += held;
    enum rfx_status status =
        rfx_shard_round_plan(s->job->graph, &s->job->request, RFX_PART_ALL, s->before,
                             cut ? &source : NULL, &s->states, &s->round, &err);
    (void)snprintf(s->what, sizeof s->what, "its share of round %d of %d of states",
                   s->states.round, s->before->states.round + s->before->rounds.rounds);
    return tell(s, status, &err);
}

static int plan_section(struct rfx_rank_sections *s, int i, size_t held) {
    struct rfx_cli_job *job = s->job;
    struct rfx_graph *whole = job->graph;
    struct rfx_plan_request request = job->request;
    if (s->graphs[i] == NULL || rfx_exchange_section(&s->exchange, i).to == RFX_PART_STATES)
        return RFX_EXIT_DONE; /* states are planned by plan_round */
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
    rfx_shard_round_release(&s->round);
}

static void let_go(struct rfx_rank_sections *s) {
    rfx_image_free(s->map_image);
    rfx_row_store_free(s->store);
    s->map_image = NULL;
    s->store = NULL;
}

int rfx_rank_sections_plan(struct rfx_rank_sections *sections,
                           const struct rfx_shard_before *before, int to) {
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
    rfx_shard_states_release(&s->states);
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
    return sections->map_image != NULL ? sections->map_image : sections->job->image;
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
        compare_images(sections->ranks, sections->sums, sections->sums_rect);
    drop_sums(sections);
}

/* Computes this rank's rows of the next cut. */
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

/* Opens a store for this rank's rows of a cut and those that it needs beyond them. */
static enum rfx_status open_store(const struct rfx_rank_sections *s, int cut, struct rfx_range need,
                                  struct rfx_row_store **out, struct rfx_error *err) {
    struct rfx_range rows =
        rfx_rect_row_range(rfx_part_map_rows(s->job->graph, cut, s->ranks->rank, s->ranks->size));
    rows = rfx_range_union(rows, need);
    if (rows.lo >= rows.hi) rows = (struct rfx_range){0, 1}; /* an image has at least one row */
    return rfx_row_store_open(s->job->mem, rfx_nameless_folder(s->options->spill),
                              &s->job->graph->nodes[cut].out, rows, out, err);
}

/* Rows of the cut that section i reads. */
static struct rfx_range need_of(const struct rfx_rank_sections *s, int i) {
    struct rfx_range none = {0, 0};
    return s->graphs[i] != NULL ? rfx_rect_row_range(rfx_part_graph_image(s->graphs[i])) : none;
}

/* Receives the rows that are needed beyond this rank's own, which are in `store`. From there the
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
    return status == RFX_OK ? rfx_row_store_image(store, &s->map_image, err) : status;
}

/* A new way may read more rows of the current cut than the way to it did. */
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
    const struct rfx_shard_source source = {.from = s->from, .map = s->map_image};
    bool cut = s->from != RFX_PART_OUTER;
    struct rfx_run_report report = {0};
    enum rfx_status status = rfx_cli_run_round(s->job, cut ? &source : NULL, s->what, &s->states,
                                               &s->round, &report, err);
    if (status != RFX_OK && cut) rfx_row_store_explain(s->store, err);
    if (status == RFX_OK && !cut)
        compare_images(s->ranks, s->round.sums, rfx_part_graph_image(s->round.graph));
    see_window(s, s->round.plan);
    s->macs += report.macs;
    s->seconds += report.seconds;
    rfx_shard_round_release(&s->round);
    return status;
}

void rfx_rank_sections_release(struct rfx_rank_sections *sections) {
    let_go(sections);
    drop_sums(sections);
    drop_sections(sections);
}
