/* Maps, spots and the truth; see defects.h. */
#include "tools/demo/defects.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rfexec/image/decode/npy_format.h"
#include "tools/demo/marks.h"

#define MAX_CELLS (INT64_C(1) << 32)

/* Checks the header and sets h and w. */
static int check_header(const char *path, const struct rfx_npy_header *header,
                        struct defect_map *out) {
    int lead = header->shape.rank - 3;
    const int64_t *dims = header->shape.dims + (lead == 1 ? 1 : 0);
    if (lead < 0 || lead > 1 || (lead == 1 && header->shape.dims[0] != 1) ||
        dims[0] != DEFECT_KINDS || dims[1] < 1 || dims[2] < 1 || dims[1] > MAX_CELLS / dims[2]) {
        fprintf(stderr, "%s: the shape is not 1 x %d x rows x columns\n", path, DEFECT_KINDS);
        return -1;
    }
    if (strcmp(header->descr, "<f4") != 0 || header->fortran_order) {
        fprintf(stderr, "%s: not float32 in C order\n", path);
        return -1;
    }
    out->h = dims[1];
    out->w = dims[2];
    return 0;
}

static int read_values(FILE *f, const char *path, struct defect_map *out) {
    unsigned char head[RFX_NPY_MAX_HEADER_BYTES];
    struct rfx_npy_header header;
    struct rfx_error err;
    size_t got = fread(head, 1, sizeof head, f);
    if (rfx_npy_parse(head, got, &header, &err) != RFX_OK) {
        fprintf(stderr, "%s: %s\n", path, err.text);
        return -1;
    }
    if (check_header(path, &header, out) != 0) return -1;
    size_t count = (size_t)(DEFECT_KINDS * out->h * out->w);
    out->value = malloc(count * sizeof *out->value);
    if (!out->value) {
        fprintf(stderr, "%s: out of memory\n", path);
        return -1;
    }
    if (fseek(f, (long)header.data_offset, SEEK_SET) != 0 ||
        fread(out->value, sizeof *out->value, count, f) != count) {
        fprintf(stderr, "%s: breaks off before %zu values\n", path, count);
        return -1;
    }
    return 0;
}

int demo_map_read(const char *path, struct defect_map *out) {
    memset(out, 0, sizeof *out);
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return -1;
    }
    int status = read_values(f, path, out);
    fclose(f);
    if (status != 0) demo_map_free(out);
    return status;
}

void demo_map_free(struct defect_map *map) {
    free(map->value);
    memset(map, 0, sizeof *map);
}

/* Flood fill from `start`: takes the cells out of `open` and appends them to spots->cell, which is
 * its own queue. */
static struct defect_spot fill_spot(const struct defect_map *map, int kind, int64_t start,
                                    uint8_t *open, int64_t *cell, size_t first) {
    const float *value = map->value + kind * map->h * map->w;
    struct defect_spot s = {kind, map->h, 0, map->w, 0, first, 0, 0.0f, -1};
    cell[first] = start;
    open[start] = 0;
    size_t end = first + 1;
    for (size_t i = first; i < end; i++) {
        int64_t y = cell[i] / map->w, x = cell[i] % map->w;
        if (y < s.y0) s.y0 = y;
        if (y >= s.y1) s.y1 = y + 1;
        if (x < s.x0) s.x0 = x;
        if (x >= s.x1) s.x1 = x + 1;
        if (value[cell[i]] > s.peak) s.peak = value[cell[i]];
        for (int k = 0; k < 9; k++) {
            int64_t ny = y + k / 3 - 1, nx = x + k % 3 - 1;
            if (ny < 0 || nx < 0 || ny >= map->h || nx >= map->w || !open[ny * map->w + nx]) {
                continue;
            }
            open[ny * map->w + nx] = 0;
            cell[end++] = ny * map->w + nx;
        }
    }
    s.count = end - first;
    return s;
}

int demo_spots_find(const struct defect_map *map, float threshold, const int least_cells[],
                    struct defect_spots *out) {
    int64_t cells = map->h * map->w;
    size_t above = 0, used = 0;
    memset(out, 0, sizeof *out);
    for (int64_t i = 0; i < DEFECT_KINDS * cells; i++) above += map->value[i] > threshold;
    uint8_t *open = malloc((size_t)cells);
    out->spot = calloc(above + 1, sizeof *out->spot);
    out->cell = calloc(above + 1, sizeof *out->cell);
    if (!open || !out->spot || !out->cell) {
        fprintf(stderr, "out of memory for %zu cells\n", above);
        free(open);
        demo_spots_free(out);
        return -1;
    }
    for (int kind = 0; kind < DEFECT_KINDS; kind++) {
        const float *value = map->value + kind * cells;
        for (int64_t i = 0; i < cells; i++) open[i] = value[i] > threshold;
        for (int64_t i = 0; i < cells; i++) {
            if (!open[i]) continue;
            struct defect_spot s = fill_spot(map, kind, i, open, out->cell, used);
            if (s.count < (size_t)least_cells[kind]) continue; /* its cells are overwritten */
            used += s.count;
            out->spot[out->count++] = s;
        }
    }
    free(open);
    return 0;
}

void demo_spots_free(struct defect_spots *spots) {
    free(spots->spot);
    free(spots->cell);
    memset(spots, 0, sizeof *spots);
}

static int kind_of(const char *name) {
    for (int k = 0; k < DEFECT_KINDS; k++) {
        if (strcmp(name, demo_mark_name((enum mark_kind)k)) == 0) return k;
    }
    return -1;
}

static int read_lines(FILE *f, const char *path, struct truth *out) {
    char line[256], name[32];
    size_t capacity = 0;
    for (size_t number = 1; fgets(line, sizeof line, f); number++) {
        if (number == 1) continue; /* the column names */
        if (out->count == capacity) {
            capacity = capacity ? 2 * capacity : 256;
            struct true_defect *grown = realloc(out->defect, capacity * sizeof *grown);
            if (!grown) {
                fprintf(stderr, "%s: out of memory\n", path);
                return -1;
            }
            out->defect = grown;
        }
        struct true_defect d = {0};
        if (sscanf(line, "%31[^,],%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%" SCNd64, name, &d.y0, &d.x0,
                   &d.y1, &d.x1) != 5 ||
            (d.kind = kind_of(name)) < 0) {
            fprintf(stderr, "%s: line %zu is not 'kind,y0,x0,y1,x1,...'\n", path, number);
            return -1;
        }
        out->defect[out->count++] = d;
    }
    return 0;
}

int demo_truth_read(const char *path, struct truth *out) {
    memset(out, 0, sizeof *out);
    FILE *f = fopen(path, "r");
    if (!f) {
        perror(path);
        return -1;
    }
    int status = read_lines(f, path, out);
    fclose(f);
    if (status != 0) demo_truth_free(out);
    return status;
}

void demo_truth_free(struct truth *truth) {
    free(truth->defect);
    memset(truth, 0, sizeof *truth);
}

static size_t cells_inside(const struct true_defect *d, const struct defect_spot *s,
                           const int64_t *cell, int64_t map_w, int64_t cell_px) {
    size_t inside = 0;
    for (size_t i = s->first; i < s->first + s->count; i++) {
        int64_t y = cell[i] / map_w * cell_px + cell_px / 2;
        int64_t x = cell[i] % map_w * cell_px + cell_px / 2;
        inside += y >= d->y0 - cell_px && y < d->y1 + cell_px && x >= d->x0 - cell_px &&
                  x < d->x1 + cell_px;
    }
    return inside;
}

void demo_truth_match(struct truth *truth, struct defect_spots *spots, const struct defect_map *map,
                      int64_t cell_px) {
    for (size_t i = 0; i < spots->count; i++) {
        struct defect_spot *s = &spots->spot[i];
        size_t best = 0;
        for (size_t t = 0; t < truth->count; t++) {
            if (truth->defect[t].kind != s->kind) continue;
            size_t inside = cells_inside(&truth->defect[t], s, spots->cell, map->w, cell_px);
            if (2 * inside < s->count || inside <= best) continue;
            best = inside;
            s->truth = (int)t;
        }
        if (s->truth >= 0) truth->defect[s->truth].found = 1;
    }
}
