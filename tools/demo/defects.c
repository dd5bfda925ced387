/* Regions and the truth; see defects.h. */
#include "tools/demo/defects.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/demo/marks.h"

#define REGION_COLUMNS \
    "label,name,pixels,area,perimeter,centroid_x,centroid_y,left,top,right,bottom,"

static int kind_of(const char *name) {
    for (int k = 0; k < DEFECT_KINDS; k++) {
        if (strcmp(name, demo_mark_name((enum mark_kind)k)) == 0) return k;
    }
    return -1;
}

/* A list that is read from the lines of a CSV file, the first of which has the column names. */
struct table {
    const char *path;
    size_t entry_bytes;
    void *entry;
    size_t count, capacity;
};

/* Appends an entry of zeros and returns it. NULL after printing: out of memory. */
static void *append(struct table *table) {
    if (table->count == table->capacity) {
        size_t capacity = table->capacity ? 2 * table->capacity : 256;
        void *grown = realloc(table->entry, capacity * table->entry_bytes);
        if (!grown) {
            fprintf(stderr, "%s: out of memory\n", table->path);
            return NULL;
        }
        table->entry = grown;
        table->capacity = capacity;
    }
    void *entry = (char *)table->entry + table->count++ * table->entry_bytes;
    memset(entry, 0, table->entry_bytes);
    return entry;
}

/* Takes a line of the table; 0, or -1 after printing. */
typedef int take_line(struct table *table, const char *line, size_t number, const void *user);

static int read_table(struct table *table, take_line *take, const void *user) {
    char line[512];
    int status = 0;
    FILE *f = fopen(table->path, "r");
    if (!f) {
        perror(table->path);
        return -1;
    }
    for (size_t number = 1; status == 0 && fgets(line, sizeof line, f); number++)
        status = take(table, line, number, user);
    fclose(f);
    if (status != 0) free(table->entry);
    return status;
}

static int take_region(struct table *table, const char *line, size_t number, const void *user) {
    const int *least_cells = user;
    struct found_region r = {.truth = -1};
    char name[32];
    if (number == 1) {
        if (strncmp(line, REGION_COLUMNS, sizeof REGION_COLUMNS - 1) == 0) return 0;
        fprintf(stderr, "%s: the columns are not '%s...'\n", table->path, REGION_COLUMNS);
        return -1;
    }
    if (sscanf(line, "%*d,\"%31[^\"]\",%" SCNd64 ",%*f,%*f,%*f,%*f,%lf,%lf,%lf,%lf", name, &r.cells,
               &r.left, &r.top, &r.right, &r.bottom) != 6 ||
        (r.kind = kind_of(name)) < 0) {
        fprintf(stderr,
                "%s: line %zu has no region with the name of a kind (--classes "
                "data/defect_kinds.txt)\n",
                table->path, number);
        return -1;
    }
    if (r.cells < least_cells[r.kind]) return 0;
    struct found_region *to = append(table);
    if (to) *to = r;
    return to ? 0 : -1;
}

int demo_regions_read(const char *path, const int least_cells[], struct found_regions *out) {
    struct table table = {.path = path, .entry_bytes = sizeof *out->region};
    memset(out, 0, sizeof *out);
    if (read_table(&table, take_region, least_cells) != 0) return -1;
    *out = (struct found_regions){table.entry, table.count};
    return 0;
}

void demo_regions_free(struct found_regions *regions) {
    free(regions->region);
    memset(regions, 0, sizeof *regions);
}

static int take_defect(struct table *table, const char *line, size_t number, const void *user) {
    struct true_defect d = {0};
    char name[32];
    (void)user;
    if (number == 1) return 0;
    if (sscanf(line, "%31[^,],%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%" SCNd64, name, &d.y0, &d.x0,
               &d.y1, &d.x1) != 5 ||
        (d.kind = kind_of(name)) < 0) {
        fprintf(stderr, "%s: line %zu is not 'kind,y0,x0,y1,x1,...'\n", table->path, number);
        return -1;
    }
    struct true_defect *to = append(table);
    if (to) *to = d;
    return to ? 0 : -1;
}

int demo_truth_read(const char *path, struct truth *out) {
    struct table table = {.path = path, .entry_bytes = sizeof *out->defect};
    memset(out, 0, sizeof *out);
    if (read_table(&table, take_defect, NULL) != 0) return -1;
    *out = (struct truth){table.entry, table.count};
    return 0;
}

void demo_truth_free(struct truth *truth) {
    free(truth->defect);
    memset(truth, 0, sizeof *truth);
}

/* Length of what [a0, a1) and [b0, b1) have in common. */
static double common(double a0, double a1, double b0, double b1) {
    double from = a0 > b0 ? a0 : b0, to = a1 < b1 ? a1 : b1;
    return to > from ? to - from : 0.0;
}

/* Area of the region's box inside the defect's box grown by `more`. */
static double area_inside(const struct true_defect *d, const struct found_region *r, double more) {
    return common(r->top, r->bottom, (double)d->y0 - more, (double)d->y1 + more) *
           common(r->left, r->right, (double)d->x0 - more, (double)d->x1 + more);
}

void demo_truth_match(struct truth *truth, struct found_regions *regions, int64_t cell_px) {
    for (size_t i = 0; i < regions->count; i++) {
        struct found_region *r = &regions->region[i];
        double area = (r->bottom - r->top) * (r->right - r->left), best = 0.0;
        for (size_t t = 0; t < truth->count; t++) {
            if (truth->defect[t].kind != r->kind) continue;
            double inside = area_inside(&truth->defect[t], r, (double)cell_px);
            if (2.0 * inside < area || inside <= best) continue;
            best = inside;
            r->truth = (int)t;
        }
        if (r->truth >= 0) truth->defect[r->truth].found = 1;
    }
}
