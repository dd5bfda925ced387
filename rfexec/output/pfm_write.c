/* Writes portable float maps. The file begins with a line with PF (3 channels) or Pf (1), a line
 * with the sizes, and a line with -1.0 for little-endian floats. Then float32 rows follow from the
 * bottom to the top.
 *
 * Source: Paul Debevec, "PFM: Portable FloatMap Image Format" (pauldebevec.com/Research/HDR/PFM).
 * Held against Pillow's reader in tests/oracle/check_output_forms.py. Rows are received from the
 * top, so each row is written at its place before the previous one. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/output/output_file.h"
#include "rfexec/output/output_format.h"

struct pfm_writer {
    struct rfx_memory *mem;
    struct rfx_output_file *file;
    uint64_t header_bytes, row_bytes;
    int64_t h, next_row;
};

static void free_writer(void *writer) {
    struct pfm_writer *pfm = writer;
    if (pfm == NULL) return;
    rfx_output_file_free(pfm->file);
    rfx_memory_release(pfm->mem, pfm);
}

static enum rfx_status begin(struct pfm_writer *pfm, const char *path, const struct rfx_tensor *map,
                             struct rfx_error *err) {
    char header[96];
    int n = snprintf(header, sizeof header, "%s\n%" PRId64 " %" PRId64 "\n-1.0\n",
                     map->c == 3 ? "PF" : "Pf", map->w, map->h);
    pfm->header_bytes = (uint64_t)n;
    pfm->row_bytes = (uint64_t)(map->w * map->c) * sizeof(float);
    enum rfx_status status = rfx_output_file_open(pfm->mem, path, &pfm->file, err);
    if (status == RFX_OK)
        status = rfx_output_file_reserve(
            pfm->file, pfm->header_bytes + (uint64_t)map->h * pfm->row_bytes, err);
    return status == RFX_OK ? rfx_output_file_put(pfm->file, header, (size_t)n, 0, err) : status;
}

static enum rfx_status open_writer(struct rfx_memory *mem, const char *path,
                                   const struct rfx_output_format *format,
                                   const struct rfx_tensor *map, void **writer,
                                   struct rfx_error *err) {
    struct pfm_writer *pfm = rfx_memory_calloc(mem, 1, sizeof *pfm);
    (void)format;
    if (pfm == NULL) return rfx_memory_fail(mem, path, sizeof *pfm, err);
    pfm->mem = mem;
    pfm->h = map->h;
    enum rfx_status status = begin(pfm, path, map, err);
    if (status != RFX_OK) {
        free_writer(pfm);
        return status;
    }
    *writer = pfm;
    return RFX_OK;
}

static enum rfx_status write_row(void *writer, const void *samples, struct rfx_error *err) {
    struct pfm_writer *pfm = writer;
    uint64_t below = (uint64_t)(pfm->h - 1 - pfm->next_row);
    pfm->next_row++;
    return rfx_output_file_put(pfm->file, samples, (size_t)pfm->row_bytes,
                               pfm->header_bytes + below * pfm->row_bytes, err);
}

static enum rfx_status commit(void *writer, struct rfx_error *err) {
    struct pfm_writer *pfm = writer;
    return rfx_output_file_commit(pfm->file, err);
}

static size_t writer_bytes(const struct rfx_output_format *format, const struct rfx_tensor *map) {
    (void)format;
    (void)map;
    return sizeof(struct pfm_writer);
}

const struct rfx_output_kind rfx_output_pfm = {
    .name = "PFM",
    .ends = {".pfm"},
    .samples = 1U << RFX_TYPE_FLOAT32,
    .most_side = INT32_MAX,
    .bytes = writer_bytes,
    .open = open_writer,
    .write_row = write_row,
    .commit = commit,
    .free = free_writer,
};
