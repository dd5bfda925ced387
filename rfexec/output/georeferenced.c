/* Converts grids of maps to affine transforms of pictures. */
#include "rfexec/output/georeferenced.h"

#include <stdio.h>
#include <string.h>

#include <rfx_build.h>

#include "rf_analysis/grid.h"
#include "rfexec/image/image_file.h"

/* NULL in builds without TIFF, which read no georeferences. */
static __typeof__(rfx_geo_tiff_read) *const read_geo = RFX_WHEN(RFX_WITH_TIFF, rfx_geo_tiff_read);

enum rfx_status rfx_geo_source_of(struct rfx_memory *mem, const struct rfx_image *image,
                                  const char *spec, int64_t page, int64_t y0, int64_t x0,
                                  struct rfx_geo_source *out, struct rfx_error *err) {
    const struct rfx_image_facts facts = rfx_image_facts(image);
    char room[4096];
    enum rfx_status status = RFX_OK;
    *out = (struct rfx_geo_source){.geo.mem = mem, .orientation = 1, .y0 = y0, .x0 = x0};
    memcpy(out->geo.pixel_um, facts.pixel_um, sizeof facts.pixel_um);
    if (facts.kind == NULL || strcmp(facts.kind, "TIFF") != 0) return RFX_OK;
    const char *file =
        rfx_image_file_of(spec, 0, room, sizeof room); /* of several bands, the first file */
    if (file != NULL && read_geo != NULL) status = read_geo(mem, file, page, out, err);
    out->from_tiff = true;
    out->y0 = y0; /* read_geo has set all members */
    out->x0 = x0;
    return status;
}

/* Returns the position of the first pixel's corner. Grids count from the middles of pixels, affine
 * transforms from their corners. */
static double corner(const struct rfx_grid_axis *axis) {
    return axis->shift + 0.5 - axis->step / 2.0;
}

static void say_spread(const char *name, const struct rfx_grid *grid, char *words) {
    double rows = grid->axis[0].spread_px, cols = grid->axis[1].spread_px;
    if (rows == 0.0 && cols == 0.0) return;
    (void)snprintf(words, RFX_GEOREFERENCED_WORDS,
                   "output '%.100s': branches of the network see its pixels up to %.3g rows and "
                   "%.3g columns apart; its georeference is that of the smallest receptive field",
                   name, rows, cols);
}

/* Returns the transform from the output's pixels to those of the picture. */
static struct rfx_geo_affine cell_of(const struct rfx_grid *grid,
                                     const struct rfx_geo_source *source) {
    const struct rfx_grid_axis *rows = &grid->axis[0], *cols = &grid->axis[1];
    struct rfx_geo_affine cell = {.x = {cols->step, 0.0, corner(cols)},
                                  .y = {0.0, rows->step, corner(rows)}};
    if (source != NULL) {
        cell.x[2] += (double)source->x0;
        cell.y[2] += (double)source->y0;
    }
    return cell;
}

/* Finds the grid of output k, or of the image if k is -1. */
static enum rfx_status find_grid(const struct rfx_graph *graph, int k, struct rfx_grid *grid,
                                 struct rfx_error *err) {
    int node = k >= 0 ? graph->outputs[k].node : graph->input;
    enum rfx_status status = rfx_grid_find(graph, node, grid, err);
    for (int axis = 0; status == RFX_OK && axis < 2; axis++)
        if (rfx_map_covers_image(graph, node) && grid->axis[axis].step == 1.0)
            grid->axis[axis] = (struct rfx_grid_axis){.step = 1.0, .size_px = 1.0};
    return status;
}

enum rfx_status rfx_output_place(const struct rfx_graph *graph, int k,
                                 const struct rfx_geo_source *source, struct rfx_answer_place *out,
                                 struct rfx_error *err) {
    struct rfx_grid grid;
    *out = (struct rfx_answer_place){.known = false};
    enum rfx_status status = find_grid(graph, k, &grid, err);
    if (status != RFX_OK || !grid.known) return status;
    *out = (struct rfx_answer_place){.known = true, .cell = cell_of(&grid, source)};
    return RFX_OK;
}

enum rfx_status rfx_georeferenced(struct rfx_memory *mem, const struct rfx_graph *graph, int k,
                                  const struct rfx_geo_source *source, bool as_stored,
                                  struct rfx_georeference *out, char words[RFX_GEOREFERENCED_WORDS],
                                  struct rfx_error *err) {
    struct rfx_grid grid;
    const char *name = k >= 0 ? graph->outputs[k].name : "picture";
    *out = (struct rfx_georeference){.mem = mem};
    words[0] = '\0';
    if (rfx_georeference_is_empty(&source->geo)) return RFX_OK;
    enum rfx_status status = find_grid(graph, k, &grid, err);
    if (status != RFX_OK) return status;
    if (!grid.known) {
        if (rfx_georeference_is_size(&source->geo)) return RFX_OK;
        (void)snprintf(words, RFX_GEOREFERENCED_WORDS,
                       "output '%.100s': where its pixels lie in the picture is not known: the "
                       "georeference is not kept",
                       name);
        return RFX_OK;
    }
    if (!rfx_georeference_is_size(&source->geo)) say_spread(name, &grid, words);
    struct rfx_geo_affine turn =
        rfx_geo_turn(as_stored ? 1 : source->orientation, source->h, source->w);
    const struct rfx_geo_affine cell = cell_of(&grid, source);
    struct rfx_geo_affine affine = rfx_geo_compose(&turn, &cell);
    status = rfx_georeference_place(&source->geo, &affine, mem, out, err);
    /* The picture's no-data number is one of the picture's samples. Among the output's values it
     * would mark valid data as missing. */
    rfx_memory_release(mem, out->no_data);
    out->no_data = NULL;
    return status;
}
