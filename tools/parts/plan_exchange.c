/* What parts would tell each other where rows are exchanged, as JSON. */
#include "rf_analysis/part_exchange.h"
#include "tools/parts/part_plans.h"

static void add_part(json_t *list, const struct rfx_part_exchange *exchange) {
    (void)json_array_append_new(
        list, json_pack("{s:I, s:I, s:i, s:i}", "macs", (json_int_t)exchange->macs, "bytes",
                        (json_int_t)exchange->bytes, "maps", exchange->maps, "messages",
                        exchange->messages));
}

/* Of a map: all parts' halos, and the largest one. */
struct map_halos {
    size_t bytes, most_bytes;
    int64_t most_rows;
};

static void add_halo(struct map_halos *sum, const struct rfx_part_halo *halo) {
    sum->bytes += halo->bytes;
    if (halo->bytes > sum->most_bytes) sum->most_bytes = halo->bytes;
    if (halo->rows > sum->most_rows) sum->most_rows = halo->rows;
}

static json_t *halos_json(const struct rfx_graph *graph, const struct map_halos *sums) {
    json_t *list = json_array();
    for (int i = 0; i < graph->n_nodes; i++)
        if (sums[i].bytes > 0)
            (void)json_array_append_new(
                list,
                json_pack("{s:s, s:I, s:I, s:I, s:I}", "map", graph->nodes[i].name, "map_rows",
                          (json_int_t)graph->nodes[i].out.h, "rows", (json_int_t)sums[i].most_rows,
                          "part_bytes", (json_int_t)sums[i].most_bytes, "bytes",
                          (json_int_t)sums[i].bytes));
    return list;
}

enum rfx_status rfx_part_plans_exchange(const struct rfx_part_plans *p, json_t *document,
                                        struct rfx_error *err) {
    const struct rfx_graph *graph = p->job.graph;
    struct rfx_memory *mem = p->job.mem;
    size_t n = (size_t)graph->n_nodes;
    struct rfx_part_exchange exchange;
    struct rfx_part_halo *halos = rfx_memory_calloc(mem, n, sizeof *halos);
    struct map_halos *sums = rfx_memory_calloc(mem, n, sizeof *sums);
    enum rfx_status status = RFX_OK;
    if (halos == NULL || sums == NULL)
        status = rfx_memory_fail(mem, "halos", n * sizeof *sums, err);
    json_t *list = json_array();
    for (int64_t i = 0; i < p->options->part.parts && status == RFX_OK; i++) {
        status = rfx_part_exchange_of(graph, p->output, i, p->options->part.parts, halos, &exchange,
                                      err);
        if (status != RFX_OK) break;
        add_part(list, &exchange);
        for (size_t j = 0; j < n; j++) add_halo(&sums[j], &halos[j]);
    }
    if (status == RFX_OK)
        (void)json_object_update_new(
            document, json_pack("{s:O, s:o}", "exchange", list, "halos", halos_json(graph, sums)));
    json_decref(list);
    rfx_memory_release(mem, sums);
    rfx_memory_release(mem, halos);
    return status;
}
