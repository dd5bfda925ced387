/* Parts of outputs: JSONs, each with a byte of 0xff behind it, then the .npy of the first. What is
 * read is the same when it is written and read again; its array is as long as it says; parts of
 * small maps cover them exactly where counting every element says so. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rfexec/shards/shard_file.h"
#include "rfexec/shards/shard_json.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_parts.h"

#define MEMORY_BYTES ((size_t)4 << 20)
enum { MOST_PARTS = 8, SMALL = 64, AGAIN = 15 };

/* The JSON as this version writes it: with its version and its sum, which no input hits upon. */
static void write_json(int i, const uint8_t *json, size_t length) {
    json_t *document = json_loadb((const char *)json, length, JSON_REJECT_DUPLICATES, NULL);
    json_int_t version = json_integer_value(json_object_get(document, "version"));
    if (version == 1 || version == 2)
        (void)json_object_set_new(document, "version", json_integer(version + 2));
    bool sealed = json_is_object(document) && rfx_shard_json_seal(document);
    char *text = sealed ? json_dumps(document, 0) : NULL;
    fuzz_part_write(i, ".json", text != NULL ? (const void *)text : json,
                    text != NULL ? strlen(text) : length);
    free(text);
    json_decref(document);
}

static void write_and_read(struct rfx_memory *mem, const struct rfx_shard_file *part) {
    struct rfx_shard_file again;
    struct rfx_error err = {""};
    char why[400];
    const char *path = fuzz_part_path(AGAIN);
    if (rfx_shard_file_write(mem, path, part, &err) != RFX_OK ||
        rfx_shard_file_read(path, &again, &err) != RFX_OK)
        fuzz_fail("a part that was read cannot be written and read: %s", err.text);
    if (!rfx_shard_file_same_run(part, &again, why, sizeof why))
        fuzz_fail("another run when read again: %s", why);
    if (!rfx_rect_equal(part->rect, again.rect) ||
        !rfx_shard_cells_equal(&part->cells, &again.cells) ||
        strcmp(part->fingerprint, again.fingerprint) != 0)
        fuzz_fail("another part when read again");
    rfx_shard_file_release(&again);
}

static void read_georeference(struct rfx_memory *mem, const struct rfx_shard_file *part) {
    struct rfx_georeference geo;
    struct rfx_error err = {""};
    enum rfx_status status = rfx_shard_geo_parse(mem, part->geo, &geo, &err);
    fuzz_check_status(status, &err);
    if (status != RFX_OK) return;
    json_t *json = rfx_shard_geo_json(&geo), *again;
    size_t bytes = rfx_georeference_bytes(&geo);
    rfx_georeference_release(&geo);
    status = rfx_shard_geo_parse(mem, json, &geo, &err);
    fuzz_check_status(status, &err);
    if (status == RFX_OK) { /* else no memory */
        again = rfx_shard_geo_json(&geo);
        if (rfx_georeference_bytes(&geo) != bytes ||
            (json != NULL && (again == NULL || !json_equal(json, again))))
            fuzz_fail("another georeference when read again");
        json_decref(again);
        rfx_georeference_release(&geo);
    }
    json_decref(json);
}

static void open_array(const struct rfx_shard_file *part) {
    struct rfx_tensor tensor = rfx_shard_file_tensor(part);
    struct rfx_error err = {""};
    struct stat at;
    int64_t offset = 0;
    int fd = -1;
    enum rfx_status status = rfx_shard_file_open(fuzz_part_path(0), part, &fd, &offset, &err);
    fuzz_check_status(status, &err);
    if (status != RFX_OK) return;
    if (fstat(fd, &at) != 0 || offset < 0 || (at.st_size - offset) / 4 != tensor.elems)
        fuzz_fail("%lld elements behind %lld of %lld bytes", (long long)tensor.elems,
                  (long long)offset, (long long)at.st_size);
    (void)close(fd);
}

/* Runs of cells are all of the part's array, one after the other, and lie in the output. */
static void check_runs(const struct rfx_shard_file *part) {
    const struct rfx_shard_cells *cells = &part->cells;
    int64_t at = 0, elems = cells->of * cells->channels, n = rfx_shard_cells_spans(cells);
    if (cells->of == 0 || n > SMALL * SMALL) return;
    for (int64_t i = 0; i < n; i++) {
        struct rfx_shard_span run = rfx_shard_cells_span(cells, i);
        if (run.from != at || run.count < 1 || run.to < 0 || run.to > elems - run.count)
            fuzz_fail("run %lld: %lld elements from %lld to %lld of %lld", (long long)i,
                      (long long)run.count, (long long)run.from, (long long)run.to,
                      (long long)elems);
        at += run.count;
    }
    if (at != rfx_shard_cells_tensor(cells).elems)
        fuzz_fail("runs have %lld elements", (long long)at);
}

/* Whether every cell belongs to one part. */
static bool count_cells(const struct rfx_shard_file *parts, int n) {
    for (int64_t p = 0; p < parts[0].cells.of; p++) {
        int owners = 0;
        for (int i = 0; i < n; i++)
            for (int r = 0; r < parts[i].cells.n; r++)
                owners += parts[i].cells.ranges[r].lo <= p && p < parts[i].cells.ranges[r].hi;
        if (owners != 1) return false;
    }
    return true;
}

/* Whether every element of the map belongs to one part. */
static bool count_elements(const struct rfx_shard_file *parts, int n) {
    int64_t h = parts[0].shape.dims[2], w = parts[0].shape.dims[3];
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            int owners = 0;
            for (int i = 0; i < n; i++)
                owners += rfx_rect_contains(parts[i].rect, rfx_rect_make(y, y + 1, x, x + 1));
            if (owners != 1) return false;
        }
    return true;
}

/* The first parts that are of one run. */
static void check_cover(const struct rfx_shard_file *parts, int n) {
    const char *paths[MOST_PARTS];
    struct rfx_error err = {""};
    char why[400];
    int same = 1;
    paths[0] = fuzz_part_path(0);
    for (; same < n && rfx_shard_file_same_run(&parts[0], &parts[same], why, sizeof why); same++)
        paths[same] = fuzz_part_path(same);
    enum rfx_status status = rfx_shards_check_cover(parts, paths, same, &err);
    fuzz_check_status(status, &err);
    if (parts[0].cells.of > 0) {
        bool few = parts[0].cells.of <= SMALL * SMALL;
        if (few && count_cells(parts, same) != (status == RFX_OK))
            fuzz_fail("%d parts of cells: '%s'", same, err.text);
        return;
    }
    bool small = parts[0].shape.dims[2] <= SMALL && parts[0].shape.dims[3] <= SMALL;
    if (small && count_elements(parts, same) != (status == RFX_OK))
        fuzz_fail("%d parts: '%s'", same, err.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct rfx_shard_file parts[MOST_PARTS];
    struct rfx_error err = {""};
    int n = 0;
    struct rfx_memory *mem = fuzz_memory(MEMORY_BYTES);
    for (; n < MOST_PARTS && size > 0 && memcmp(data, "\x93", 1) != 0; n++) {
        const uint8_t *json;
        size_t length = fuzz_next_json(&data, &size, &json);
        write_json(n, json, length);
        enum rfx_status status = rfx_shard_file_read(fuzz_part_path(n), &parts[n], &err);
        fuzz_check_status(status, &err);
        if (status != RFX_OK) break;
    }
    fuzz_part_write(0, "", data, size);
    if (n > 0) {
        write_and_read(mem, &parts[0]);
        read_georeference(mem, &parts[0]);
        check_runs(&parts[0]);
        open_array(&parts[0]);
        check_cover(parts, n);
    }
    for (int i = 0; i < n; i++) rfx_shard_file_release(&parts[i]);
    rfx_memory_free(mem);
    return 0;
}
