#include "defect_truth.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "marks.h"

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
