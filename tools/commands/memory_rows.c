/* See memory_rows.h. */
#include "tools/commands/memory_rows.h"

#include <stdio.h>

#include "tools/study/row_run.h"

enum rfx_status rfx_memory_rows_fill(struct rfx_memory *mem, const struct rfx_graph *graph,
                                     const int *nodes, int n, struct rfx_memory_rows *rows,
                                     struct rfx_error *err) {
    struct rfx_row_run *run = NULL;
    struct rfx_tiles_problem *tiles = NULL;
    bool *upwards = NULL;
    size_t *offsets = NULL;
    enum rfx_status status = rfx_row_run_create(mem, graph, nodes, n, &run, err);
    if (status != RFX_OK) return status;
    upwards = rfx_memory_calloc(mem, (size_t)run->n_slides, sizeof *upwards);
    offsets = rfx_memory_calloc(mem, (size_t)n, sizeof *offsets);
    if (upwards == NULL || offsets == NULL)
        status = rfx_memory_fail(mem, "offsets", (size_t)n * sizeof *offsets, err);
    if (status == RFX_OK) status = rfx_row_run_place(run, offsets, upwards, &rows->slides, err);
    if (status == RFX_OK) status = rfx_row_run_bound(run, &rows->bound, err);
    if (status == RFX_OK) status = rfx_row_run_tiles(run, NULL, &tiles, err);
    for (int k = 0; k < RFX_TILES_COUNT && status == RFX_OK; k++)
        status = rfx_tiles_place(tiles, (enum rfx_tiles_order)k, offsets, &rows->tiles[k], err);
    rfx_tiles_problem_free(tiles);
    rfx_memory_release(mem, offsets);
    rfx_memory_release(mem, upwards);
    rfx_row_run_free(run);
    return status;
}

void rfx_memory_rows_json(const struct rfx_memory_rows *rows, json_t *document) {
    json_t *bytes = json_pack("{s:I}", "slides", (json_int_t)rows->slides);
    for (int k = 0; k < RFX_TILES_COUNT; k++)
        (void)json_object_set_new(bytes, rfx_tiles_order_name((enum rfx_tiles_order)k),
                                  json_integer((json_int_t)rows->tiles[k]));
    (void)json_object_set_new(document, "row_by_row_bytes", bytes);
    (void)json_object_set_new(document, "row_by_row_lower_bound_bytes",
                              json_integer((json_int_t)rows->bound));
}

static void print_row(const char *name, size_t bytes, char mark, const char *known_as) {
    printf("%-16s%14s  %10.3f %c  %s\n", name, "-", (double)bytes / (1024.0 * 1024.0), mark,
           known_as);
}

void rfx_memory_rows_print(const struct rfx_memory_rows *rows) {
    static const char *const known_as[] = {"TensorAllocate (Kvochko et al.), larger first",
                                           "TensorAllocate, longer lifetime first",
                                           "TensorAllocate, more peers first"};
    _Static_assert(sizeof known_as / sizeof known_as[0] == RFX_TILES_COUNT, "one per order");
    size_t smallest = rows->slides;
    for (int k = 0; k < RFX_TILES_COUNT; k++)
        if (rows->tiles[k] < smallest) smallest = rows->tiles[k];
    puts("\nrow by row (tile-aware): a tensor may lie over rows of its inputs that are dead");
    print_row("slides", rows->slides, rows->slides == smallest ? '*' : ' ',
              "what a run row by row uses");
    for (int k = 0; k < RFX_TILES_COUNT; k++)
        print_row(rfx_tiles_order_name((enum rfx_tiles_order)k), rows->tiles[k],
                  rows->tiles[k] == smallest ? '*' : ' ', known_as[k]);
    print_row("lower bound", rows->bound, ' ', "most bytes of rows alive at once");
}
