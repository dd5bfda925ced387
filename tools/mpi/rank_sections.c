/* Choosing cuts, then planning, running and joining sections; see rank_sections.h. */
#include "tools/mpi/rank_sections.h"

#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/temp_file.h"
#include "layers/graph/op.h"
#include "rf_analysis/part_ends.h"
#include "tiler/cost/cost.h"
#include "tiler/plan/splits.h"
#include "tools/cli/command.h"
#include "tools/cli/run_once.h"
#include "tools/commands/run_shard.h"

/* Bandwidth of the link without --link-bandwidth; delay of a message; time to write or read one
 * byte of rows that wait in a file, which the system keeps in memory (0.1 to 0.5 ns were measured).
 */
#define LINK_BYTES 1e9
#define MESSAGE_NS 50e3
#define FILE_BYTE_NS 0.5

/* What the ranks make next: the next round's states or, when no round is left, the outputs. */
struct rfx_exchange_network {
    const struct rfx_graph *whole;
    const struct rfx_part_known *known; /* results of global operations so far */
    int n_known;
    struct rfx_part_section ends; /* from the map that they have rows of */
    int limit;                    /* cuts must come before this node: the next global operation */
    int rounds; /* that begin where this one ends: of states, and the one of outputs */
    int threads;
    struct rfx_caches caches;
};

enum mode { NEVER, NAMED, AUTO };

enum { MOST_NAMES = 4096 };

/* What rank 0's options ask for. */
struct asked {
    int mode;
    double link_bytes; /* per second */
    char names[MOST_NAMES];
};

/* Costs between points: 0 is what the ranks have, i is cut i - 1, n + 1 is what they make. */
struct choice {
    struct rfx_ranks *ranks;
    const struct rfx_exchange_network *network;
    const struct asked *asked;
    struct rfx_memory *mem;
    struct rfx_cost_model model;
    int *all, n_all;                     /* all cuts of the network */
    int cuts[RFX_EXCHANGE_MOST_CUTS], n; /* those that are considered */
    /* Nanoseconds from each cut to the last one, on this rank. */
    double again[RFX_EXCHANGE_MOST_CUTS + 1];
    uint64_t *costs; /* [n + 2, n + 2] nanoseconds of the slowest rank */
    double *sums;    /* [nodes + 1] picoseconds of the nodes before each */
};

/* Section s of the chain, 0 to n. */
static struct rfx_part_section exchange_section(const struct rfx_exchange *exchange, int s) {
    return (struct rfx_part_section){s == 0 ? exchange->ends.from : exchange->cuts[s - 1],
                                     s == exchange->n ? exchange->ends.to : exchange->cuts[s]};
}

/* Multiply-accumulates of a shard's graph; 0 of NULL. */
static uint64_t exchange_macs(const struct rfx_graph *part) {
    uint64_t macs = 0;
    for (int i = 0; part != NULL && i < part->n_nodes; i++)
        macs += rfx_op_macs(part, &part->nodes[i], part->nodes[i].wanted);
    return macs;
}

static enum rfx_status section_of(const struct choice *c, struct rfx_part_section ends,
                                  int64_t index, int64_t count, struct rfx_graph **out,
                                  struct rfx_error *err) {
    const struct rfx_exchange_network *n = c->network;
    return rfx_part_graph_section(n->whole, ends, n->known, n->n_known, index, count, out, err);
}

/* Lists all cuts of the network. */
static enum rfx_status list_cuts(struct choice *c, struct rfx_error *err) {
    const struct rfx_part_section whole = {RFX_PART_OUTER, RFX_PART_OUTER};
    struct rfx_graph *graph = NULL;
    size_t nodes = (size_t)c->network->whole->n_nodes;
    c->all = rfx_memory_calloc(c->mem, nodes, sizeof *c->all);
    if (c->all == NULL) return rfx_memory_fail(c->mem, "cuts", nodes * sizeof *c->all, err);
    enum rfx_status status = section_of(c, whole, 0, 1, &graph, err);
    if (status != RFX_OK) return status;
    c->n_all = rfx_part_cuts_list(graph, c->all);
    rfx_graph_free(graph);
    return RFX_OK;
}

static bool is_between(const struct choice *c, int cut) {
    return cut > c->network->ends.from && cut < c->network->limit;
}

/* Chooses the cuts to consider: of many every second, third, ..., and always the last. */
static void choose_candidates(struct choice *c) {
    int n = 0, k = 0;
    for (int i = 0; i < c->n_all; i++) n += is_between(c, c->all[i]);
    int step = (n + RFX_EXCHANGE_MOST_CUTS - 1) / RFX_EXCHANGE_MOST_CUTS;
    for (int i = 0; i < c->n_all; i++)
        if (is_between(c, c->all[i]) && ++k % step == n % step) c->cuts[c->n++] = c->all[i];
}

static uint64_t *cost_at(const struct choice *c, int i, int j) {
    return &c->costs[i * (c->n + 2) + j];
}

/* Nanoseconds that this rank takes to receive `need` rows of a cut's map and to read them. */
static double fetch_ns(const struct choice *c, int cut, struct rfx_range need) {
    const struct rfx_tensor *map = &c->network->whole->nodes[cut].out;
    double row = (double)rfx_tensor_pixel_bytes(map, map->w), bytes = 0.0, messages = 0.0;
    for (int r = 0; r < c->ranks->size; r++) {
        struct rfx_rect theirs = rfx_part_map_rows(c->network->whole, cut, r, c->ranks->size);
        int64_t rows = rfx_min_i64(theirs.y1, need.hi) - rfx_max_i64(theirs.y0, need.lo);
        if (rows <= 0 || r == c->ranks->rank) continue;
        bytes += (double)rows * row;
        messages += 1.0;
    }
    double read = (double)rfx_range_size(need) * row * FILE_BYTE_NS;
    return bytes / c->asked->link_bytes * 1e9 + messages * MESSAGE_NS + read;
}

/* Adds up the picoseconds of the nodes before each node. */
static void add_up(const struct choice *c, const struct rfx_graph *graph) {
    c->sums[0] = 0.0;
    for (int v = 0; v < graph->n_nodes; v++) {
        const struct rfx_node *node = &graph->nodes[v];
        bool made = node->op != RFX_OP_INNER && !rfx_node_is_constant(node);
        double area = made ? (double)rfx_rect_area(node->wanted) : 0.0;
        c->sums[v + 1] = c->sums[v] + c->model.nodes[v].least * area;
    }
}

static int node_of(const struct choice *c, int i) {
    return i == 0 ? c->network->ends.from : c->cuts[i - 1];
}

/* Sets this rank's cost of every section that ends at point j. */
static void cost_sections(struct choice *c, const struct rfx_graph *graph, int j) {
    int last = j <= c->n ? node_of(c, j) : graph->n_nodes - 1;
    double written = 0.0;
    add_up(c, graph);
    if (j <= c->n) {
        const struct rfx_node *node = &graph->nodes[last];
        written =
            (double)rfx_tensor_pixel_bytes(&node->out, rfx_rect_area(node->wanted)) * FILE_BYTE_NS;
    }
    for (int i = 0; i < j; i++) {
        int from = node_of(c, i);
        double ns = (c->sums[last + 1] - c->sums[from + 1]) * 1e-3 + written;
        if (from != RFX_PART_OUTER)
            ns += fetch_ns(c, from, rfx_rect_row_range(graph->nodes[from].wanted));
        if (j == c->n) c->again[i] = ns;
        if (j > c->n) ns += c->again[i] * (double)c->network->rounds;
        *cost_at(c, i, j) = (uint64_t)ns;
    }
}

/* Computes this rank's costs; rank 0 gets the largest over all ranks. */
static enum rfx_status find_costs(struct choice *c, struct rfx_error *err) {
    const struct rfx_exchange_network *n = c->network;
    size_t places = (size_t)(c->n + 2) * (size_t)(c->n + 2), nodes = (size_t)n->whole->n_nodes + 1;
    c->costs = rfx_memory_calloc(c->mem, places, sizeof *c->costs);
    c->sums = rfx_memory_calloc(c->mem, nodes, sizeof *c->sums);
    if (c->costs == NULL || c->sums == NULL)
        return rfx_memory_fail(c->mem, "cuts", places * sizeof *c->costs, err);
    enum rfx_status status = rfx_cost_init(&c->model, n->whole, &n->caches, n->threads, err);
    for (int j = 1; j <= c->n + 1 && status == RFX_OK; j++) {
        struct rfx_part_section ends = {n->ends.from, j <= c->n ? node_of(c, j) : n->ends.to};
        struct rfx_graph *graph = NULL;
        status = section_of(c, ends, c->ranks->rank, c->ranks->size, &graph, err);
        if (status == RFX_OK && graph != NULL) cost_sections(c, graph, j);
        rfx_graph_free(graph);
    }
    return status;
}

/* Finds the shortest chain from point 0 to point n + 1. */
static void find_chain(const struct choice *c, struct rfx_exchange *out) {
    uint64_t best[RFX_EXCHANGE_MOST_CUTS + 2] = {0};
    int from[RFX_EXCHANGE_MOST_CUTS + 2] = {0};
    for (int j = 1; j <= c->n + 1; j++) {
        best[j] = UINT64_MAX;
        for (int i = 0; i < j; i++) {
            uint64_t sum = best[i] + *cost_at(c, i, j);
            if (sum >= best[j]) continue;
            best[j] = sum;
            from[j] = i;
        }
    }
    out->n = 0;
    for (int j = from[c->n + 1]; j > 0; j = from[j]) out->n++;
    for (int j = from[c->n + 1], k = out->n; j > 0; j = from[j]) out->cuts[--k] = c->cuts[j - 1];
}

/* The cut that a name means; the last cut below it where it names a module. -1: there is none. */
static int find_cut(const struct choice *c, const char *name) {
    const struct rfx_graph *whole = c->network->whole;
    int node = rfx_graph_find(whole, name);
    for (int i = c->n_all - 1; i >= 0; i--) {
        const struct rfx_node *cut = &whole->nodes[c->all[i]];
        if (c->all[i] == node) return node;
        if (node < 0 && (rfx_name_is_below(cut->name, name) || rfx_name_is_below(cut->alias, name)))
            return c->all[i];
    }
    return -1;
}

static enum rfx_status refuse_name(const struct choice *c, const char *name,
                                   struct rfx_error *err) {
    const struct rfx_graph *whole = c->network->whole;
    if (c->n_all == 0)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "--exchange '%.100s': in this network no single map lies between image and "
                        "outputs",
                        name);
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "--exchange '%.100s': %s; such maps run from '%s' to '%s'", name,
                    rfx_graph_find(whole, name) < 0
                        ? "there is no such map"
                        : "not all that the outputs read of the image goes through it",
                    rfx_split_label(whole, c->all[0]),
                    rfx_split_label(whole, c->all[c->n_all - 1]));
}

/* Takes the cuts named in TENSOR,TENSOR,..., which must be in the network's order. */
static enum rfx_status take_names(const struct choice *c, struct rfx_exchange *out,
                                  struct rfx_error *err) {
    int last = RFX_PART_OUTER;
    if (strlen(c->asked->names) + 1 == MOST_NAMES)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "--exchange: more than %d bytes",
                        MOST_NAMES - 2);
    for (const char *names = c->asked->names; *names != '\0';) {
        char name[MOST_NAMES];
        size_t length = strcspn(names, ",");
        memcpy(name, names, length);
        name[length] = '\0';
        names += length + (names[length] == ',');
        int cut = find_cut(c, name);
        if (cut < 0 || out->n == RFX_EXCHANGE_MOST_CUTS) return refuse_name(c, name, err);
        if (cut <= last)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                            "--exchange '%.100s': it does not come after the one before it", name);
        if (is_between(c, cut)) out->cuts[out->n++] = cut;
        last = cut;
    }
    return RFX_OK;
}

static void read_options(const struct rfx_mpi_options *options, struct asked *asked) {
    const char *text = options->exchange != NULL ? options->exchange : "auto";
    bool never = strcmp(text, "never") == 0, named = !never && strcmp(text, "auto") != 0;
    *asked = (struct asked){.mode = AUTO, .link_bytes = LINK_BYTES};
    if (never || (!named && rfx_cli_plan_is_asked(&options->run))) asked->mode = NEVER;
    if (named) asked->mode = NAMED;
    if (options->link_bytes != 0) asked->link_bytes = (double)options->link_bytes;
    (void)snprintf(asked->names, sizeof asked->names, "%s", text);
}

static int agree(const struct choice *c, enum rfx_status status, const struct rfx_error *err) {
    int code = RFX_EXIT_DONE;
    if (status == RFX_STATUS_INVALID_ARGUMENT) {
        rfx_cli_message("%s", err->text);
        code = RFX_EXIT_USAGE;
    } else if (status != RFX_OK) {
        code = rfx_cli_fail(status, err);
    }
    return rfx_ranks_agree(c->ranks, code);
}

/* Finds the cuts on all ranks, which agree on the result. */
static int choose(struct choice *c, struct rfx_exchange *out) {
    struct rfx_error err = {{0}};
    int mode = c->asked->mode;
    enum rfx_status status = list_cuts(c, &err);
    out->asked = mode == NAMED;
    if (status == RFX_OK && mode == AUTO) choose_candidates(c);
    if (status == RFX_OK && mode == NAMED) status = take_names(c, out, &err);
    if (status == RFX_OK && mode == AUTO && c->n > 0) status = find_costs(c, &err);
    int code = agree(c, status, &err);
    if (code != RFX_EXIT_DONE || mode == NAMED || c->n == 0) return code;
    status = rfx_ranks_most(c->ranks, c->costs, (c->n + 2) * (c->n + 2), &err);
    if (status == RFX_OK && c->ranks->rank == 0) find_chain(c, out);
    if (status == RFX_OK) status = rfx_ranks_spread(c->ranks, out, sizeof *out, &err);
    return agree(c, status, &err);
}

/* All ranks together; rank 0's options count. Returns the same exit code on all ranks, after a
 * message; USAGE: --exchange names something that is not a cut. */
static int exchange_choose(struct rfx_ranks *ranks, const struct rfx_exchange_network *network,
                           const struct rfx_mpi_options *options, struct rfx_exchange *out) {
    static struct asked asked;
    struct rfx_error err = {{0}};
    struct choice c = {
        .ranks = ranks, .network = network, .asked = &asked, .mem = network->whole->mem};
    *out = (struct rfx_exchange){.ends = network->ends};
    if (ranks->size == 1) return RFX_EXIT_DONE;
    read_options(options, &asked);
    enum rfx_status status = rfx_ranks_spread(ranks, &asked, sizeof asked, &err);
    if (status != RFX_OK) return rfx_cli_fail(status, &err);
    if (asked.mode == NEVER) return RFX_EXIT_DONE;
    int code = choose(&c, out);
    rfx_cost_release(&c.model);
    rfx_memory_release(c.mem, c.sums);
    rfx_memory_release(c.mem, c.costs);
    rfx_memory_release(c.mem, c.all);
    return code;
}

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
        status = graph_of(s, exchange_section(&s->exchange, i), &s->graphs[i], err);
        macs += (int64_t)exchange_macs(s->graphs[i]);
    }
    if (s->exchange.n == 0 && s->from == RFX_PART_OUTER) return status;
    if (status == RFX_OK) status = graph_of(s, all, &again, err);
    s->macs_saved += (int64_t)exchange_macs(again) - macs;
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
    return exchange_section(&s->exchange, i).from == RFX_PART_OUTER;
}

/* Bytes of the row sums of section i. */
static size_t sums_bytes(const struct rfx_rank_sections *s, int i) {
    if (s->ranks->size == 1 || s->graphs[i] == NULL || !reads_image(s, i)) return 0;
    return rfx_row_sums_bytes(rfx_rect_rows(rfx_part_graph_image(s->graphs[i])));
}

/* Sets the plan request for section i. `held`: bytes of the other sections' graphs and plans. */
static void ask(struct rfx_rank_sections *s, int i, size_t held) {
    struct rfx_source_traits *source = &s->job->request.source;
    int from = exchange_section(&s->exchange, i).from;
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
    if (!may_fall_back(s)) return rfx_cli_job_plan(s->job, &s->options->run, "run");
    return tell(s, rfx_plan_create(s->job->graph, &s->job->request, &s->job->plan, &err), &err);
}

/* Plans the round at the end of the way. */
static int plan_round(struct rfx_rank_sections *s, size_t held) {
    struct rfx_error err = {{0}};
    struct rfx_shard_source source = {.from = exchange_section(&s->exchange, s->exchange.n).from};
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
    if (s->graphs[i] == NULL || exchange_section(&s->exchange, i).to == RFX_PART_STATES)
        return RFX_EXIT_DONE; /* states are planned by plan_round */
    ask(s, i, held);
    job->graph = s->graphs[i];
    int code = plan_asked(s);
    s->plans[i] = job->plan;
    job->plan = NULL;
    job->graph = whole;
    request.cache = job->request.cache;
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
    int code = exchange_choose(s->ranks, &network, s->options, &s->exchange);
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
                                    .spill = s->options->run.plan.spill,
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
    return rfx_row_store_open(s->job->mem, rfx_temp_folder(s->options->run.plan.spill),
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
