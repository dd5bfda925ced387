/* Reads a map of the phases; see phase_map.h. */
#include "tools/demo/phase_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rfexec/image/decode/npy_format.h"
#include "tools/demo/micrograph.h"

#define MAX_CELLS (INT64_C(1) << 32)

/* Checks the header and sets h and w. */
static int check_header(const char *path, const struct rfx_npy_header *header,
                        struct phase_map *out) {
    int lead = header->shape.rank - 3;
    const int64_t *dims = header->shape.dims + (lead == 1 ? 1 : 0);
    if (lead < 0 || lead > 1 || (lead == 1 && header->shape.dims[0] != 1) || dims[0] != PHASES ||
        dims[1] < 1 || dims[2] < 1 || dims[1] > MAX_CELLS / dims[2]) {
        fprintf(stderr, "%s: the shape is not 1 x %d x rows x columns\n", path, PHASES);
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

static int read_values(FILE *f, const char *path, struct phase_map *out) {
    unsigned char head[RFX_NPY_MAX_HEADER_BYTES];
    struct rfx_npy_header header;
    struct rfx_error err;
    size_t got = fread(head, 1, sizeof head, f);
    if (rfx_npy_parse(head, got, &header, &err) != RFX_OK) {
        fprintf(stderr, "%s: %s\n", path, err.text);
        return -1;
    }
    if (check_header(path, &header, out) != 0) return -1;
    size_t count = (size_t)(PHASES * out->h * out->w);
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

int demo_phase_map_read(const char *path, struct phase_map *out) {
    memset(out, 0, sizeof *out);
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return -1;
    }
    int status = read_values(f, path, out);
    fclose(f);
    if (status != 0) demo_phase_map_free(out);
    return status;
}

void demo_phase_map_free(struct phase_map *map) {
    free(map->value);
    memset(map, 0, sizeof *map);
}
