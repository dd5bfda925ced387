/* Costs of sections on every rank, the slowest of each, and the shortest way through them. */
#include "tools/mpi/exchange_choice.h"

#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "rf_analysis/part_cuts.h"
#include "tiler/cost/cost.h"
#include "tiler/plan/splits.h"
#include "tools/cli/command.h"
#include "tools/cli/job.h"

enum way { WAY_NEVER, WAY_NAMED, WAY_AUTO };

enum { MOST_NAMES = 4096 };

/* What rank 0's options say. */
struct asked {
    int way;
    double link_bytes; /* a second */
    char names[MOST_NAMES];
};

/* Section (i, j): from what there is, 0, or cut i - 1, to cut j - 1 or what is made, n + 1. */
struct choice {
    struct rfx_ranks *ranks;
    const struct rfx_exchange_network *network;
    const struct asked *asked;
    struct rfx_memory *mem;
    struct rfx_cost_model model;
    int *all, n_all;                          /* cuts */
    int cuts[RFX_EXCHANGE_MOST_CUTS], n;      /* candidates among them */
    double again[RFX_EXCHANGE_MOST_CUTS + 1]; /* nanoseconds from each to the last, on this rank */
    uint64_t *costs; /* (n + 2) x (n + 2), nanoseconds of the slowest rank */
    double *sums;    /* picoseconds of the nodes before each */
};

struct rfx_part_section rfx_exchange_section(const struct rfx_exchange *exchange, int s) {
    return (struct rfx_part_section){s == 0 ? exchange->ends.from : exchange->cuts[s - 1],
                                     s == exchange->n ? exchange->ends.to : exchange->cuts[s]};
}

uint64_t rfx_exchange_macs(const struct rfx_graph *part) {
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

/* All cuts of the network. */
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

/* Of many cuts every second, third, ..., and the last. */
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

/* Nanoseconds that this rank takes to get `need` of a cut's map and to read it. */
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
    double read = (double)rfx_range_size(need) * row * RFX_EXCHANGE_FILE_BYTE_NS;
    return bytes / c->asked->link_bytes * 1e9 + messages * RFX_EXCHANGE_MESSAGE_NS + read;
}

/* Picoseconds of the nodes before each. */
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

/* Sections that end at j, made by this rank. */
static void cost_sections(struct choice *c, const struct rfx_graph *graph, int j) {
    int last = j <= c->n ? node_of(c, j) : graph->n_nodes - 1;
    double written = 0.0;
    add_up(c, graph);
    if (j <= c->n) {
        const struct rfx_node *node = &graph->nodes[last];
        written = (double)rfx_tensor_pixel_bytes(&node->out, rfx_rect_area(node->wanted)) *
                  RFX_EXCHANGE_FILE_BYTE_NS;
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

/* This rank's costs, then those of the slowest of all on rank 0. */
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

/* The shortest way from what there is, 0, to what is made. */
static void find_way(const struct choice *c, struct rfx_exchange *out) {
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

/* The cut that a name means: of a module the last of its maps. -1: there is none. */
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

/* TENSOR,TENSOR,... in the network's order: those between what there is and what is made. */
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
    *asked = (struct asked){.way = WAY_AUTO, .link_bytes = RFX_EXCHANGE_LINK_BYTES};
    if (never || (!named && rfx_cli_plan_is_asked(&options->run))) asked->way = WAY_NEVER;
    if (named) asked->way = WAY_NAMED;
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

/* All ranks know what is asked for and all cuts; rank 0 chooses by the costs that all find. */
static int choose(struct choice *c, struct rfx_exchange *out) {
    struct rfx_error err = {{0}};
    int way = c->asked->way;
    enum rfx_status status = list_cuts(c, &err);
    out->asked = way == WAY_NAMED;
    if (status == RFX_OK && way == WAY_AUTO) choose_candidates(c);
    if (status == RFX_OK && way == WAY_NAMED) status = take_names(c, out, &err);
    if (status == RFX_OK && way == WAY_AUTO && c->n > 0) status = find_costs(c, &err);
    int code = agree(c, status, &err);
    if (code != RFX_EXIT_DONE || way == WAY_NAMED || c->n == 0) return code;
    status = rfx_ranks_most(c->ranks, c->costs, (c->n + 2) * (c->n + 2), &err);
    if (status == RFX_OK && c->ranks->rank == 0) find_way(c, out);
    if (status == RFX_OK) status = rfx_ranks_spread(c->ranks, out, sizeof *out, &err);
    return agree(c, status, &err);
}

int rfx_exchange_choose(struct rfx_ranks *ranks, const struct rfx_exchange_network *network,
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
    if (asked.way == WAY_NEVER) return RFX_EXIT_DONE;
    int code = choose(&c, out);
    rfx_cost_release(&c.model);
    rfx_memory_release(c.mem, c.sums);
    rfx_memory_release(c.mem, c.costs);
    rfx_memory_release(c.mem, c.all);
    return code;
}
