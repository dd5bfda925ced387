/* See zarr_maker.h. */
#include "tests/support/makers/zarr_maker.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "layers/core/library.h"

/* Of libzstd and libblosc. */
static struct {
    size_t (*compress)(void *to, size_t to_bytes, const void *from, size_t from_bytes, int level);
} zstd;
static struct {
    int (*compress)(int level, int shuffle, size_t type_bytes, size_t from_bytes, const void *from,
                    void *to, size_t to_bytes, const char *codec, size_t block, int threads);
} blosc;

struct zarr_maker zarr_maker_usual(void) {
    return (struct zarr_maker){.format = 3,
                               .rank = 3,
                               .shape = {3, 40, 52},
                               .chunk = {1, 16, 20},
                               .y = 1,
                               .x = 2,
                               .names = "[\"c\", \"y\", \"x\"]",
                               .type = "uint8",
                               .separator = '/',
                               .fill = "7",
                               .fill_value = 7};
}

bool zarr_maker_can(const char *codec) {
    static const struct rfx_library_function zstd_function = {"ZSTD_compress", 0, false},
                                             blosc_function = {"blosc_compress_ctx", 0, false};
    if (codec == NULL || strstr(codec, "z") == codec || strcmp(codec, "gzip") == 0)
        return codec == NULL || strcmp(codec, "zstd") != 0 ||
               rfx_library_load("libzstd.so.1", &zstd_function, 1, &zstd, NULL) == RFX_OK;
    return rfx_library_load("libblosc.so.1", &blosc_function, 1, &blosc, NULL) == RFX_OK;
}

static int type_bytes(const struct zarr_maker *m) {
    return atoi(m->type + strcspn(m->type, "0123456789")) / 8;
}

double zarr_maker_value(const struct zarr_maker *m, int64_t c, int64_t y, int64_t x) {
    uint32_t v = (uint32_t)(c * 7919 + y * 104729 + x * 31 + m->seed) * 2654435761u;
    v ^= v >> 15;
    if (m->type[0] == 'u') return (double)(type_bytes(m) == 4 ? v : v >> (32 - 8 * type_bytes(m)));
    if (m->type[0] == 'i') return (double)((int32_t)v >> (32 - 8 * type_bytes(m)));
    return type_bytes(m) == 4 ? (double)((float)v / 3.0f - 7e8f) : (double)v / 3.0 - 7e8;
}

static void put_sample(const struct zarr_maker *m, double value, unsigned char *to) {
    const int bytes = type_bytes(m);
    unsigned char sample[8];
    if (m->type[0] == 'f' && bytes == 4) {
        float narrow = (float)value;
        memcpy(sample, &narrow, 4);
    } else if (m->type[0] == 'f') {
        memcpy(sample, &value, 8);
    } else {
        int64_t whole = (int64_t)value;
        memcpy(sample, &whole, 8);
    }
    for (int i = 0; i < bytes; i++) to[i] = sample[m->big ? bytes - 1 - i : i];
}

/* Which chunk of all, of the key's numbers. */
static int64_t chunk_number(const struct zarr_maker *m, const int64_t at[ZARR_MAKER_RANK]) {
    int64_t n = 0;
    for (int i = 0; i < m->rank; i++) n = n * ((m->shape[i] - 1) / m->chunk[i] + 1) + at[i];
    return n;
}

static bool is_missing(const struct zarr_maker *m, const int64_t at[ZARR_MAKER_RANK]) {
    return m->missing > 0 && chunk_number(m, at) % m->missing == 1;
}

float zarr_maker_read(const struct zarr_maker *m, int64_t c, int64_t y, int64_t x) {
    int64_t at[ZARR_MAKER_RANK] = {0};
    at[m->y] = y / m->chunk[m->y];
    at[m->x] = x / m->chunk[m->x];
    if (m->c >= 0) at[m->c] = c / m->chunk[m->c];
    double v = is_missing(m, at) ? m->fill_value : zarr_maker_value(m, c, y, x);
    return strcmp(m->type, "uint16") == 0 ? (float)v / 257.0f : (float)v;
}

bool zarr_maker_put(const char *folder, const char *name, const void *data, size_t bytes) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST) return false;
        *slash = '/';
    }
    FILE *file = fopen(path, "wb");
    bool done = file != NULL && fwrite(data, 1, bytes, file) == bytes;
    return file != NULL && fclose(file) == 0 && done;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place) {
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

void zarr_maker_remove(const char *folder) {
    (void)nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* Bytes of a chunk, packed; 0: it cannot be. */
static size_t pack(const struct zarr_maker *m, const unsigned char *from, size_t bytes,
                   unsigned char *to, size_t room) {
    if (m->codec == NULL) return memcpy(to, from, bytes), bytes;
    if (!zarr_maker_can(m->codec)) return 0;
    if (strcmp(m->codec, "zstd") == 0) return zstd.compress(to, room, from, bytes, 3);
    if (strcmp(m->codec, "blosc") == 0)
        return (size_t)blosc.compress(5, 1, (size_t)type_bytes(m), bytes, from, to, room, "lz4", 0,
                                      1);
    z_stream s = {.next_in = (Bytef *)(uintptr_t)from,
                  .avail_in = (uInt)bytes,
                  .next_out = to,
                  .avail_out = (uInt)room};
    if (deflateInit2(&s, 6, Z_DEFLATED, strcmp(m->codec, "gzip") == 0 ? 31 : 15, 8, 0) != Z_OK)
        return 0;
    bool ended = deflate(&s, Z_FINISH) == Z_STREAM_END;
    return deflateEnd(&s) == Z_OK && ended ? s.total_out : 0;
}

/* Of the chunk at a place: samples beyond the array are junk. */
static void fill_chunk(const struct zarr_maker *m, const int64_t at[ZARR_MAKER_RANK], int64_t count,
                       unsigned char *to) {
    const int bytes = type_bytes(m);
    for (int64_t n = 0; n < count; n++) {
        int64_t index[ZARR_MAKER_RANK] = {0}, left = n;
        for (int k = 0; k < m->rank; k++) {
            int axis = m->column_major ? k : m->rank - 1 - k;
            index[axis] = at[axis] * m->chunk[axis] + left % m->chunk[axis];
            left /= m->chunk[axis];
        }
        bool inside = true;
        for (int k = 0; k < m->rank; k++) inside = inside && index[k] < m->shape[k];
        double v = zarr_maker_value(m, m->c < 0 ? 0 : index[m->c], index[m->y], index[m->x]);
        put_sample(m, inside ? v : 99, to + n * bytes);
    }
}

static bool write_chunk(const struct zarr_maker *m, const char *folder,
                        const int64_t at[ZARR_MAKER_RANK]) {
    int64_t count = 1;
    char key[128] = "";
    size_t n = 0;
    if (m->format == 3 && !m->old_keys) n = (size_t)snprintf(key, sizeof key, "c%c", m->separator);
    for (int i = 0; i < m->rank; i++) {
        count *= m->chunk[i];
        n += (size_t)snprintf(key + n, sizeof key - n, "%lld%c", (long long)at[i], m->separator);
    }
    key[n - 1] = '\0';
    size_t bytes = (size_t)(count * type_bytes(m)), room = bytes * 2 + 4096;
    unsigned char *plain = malloc(bytes), *packed = malloc(room);
    fill_chunk(m, at, count, plain);
    size_t got = pack(m, plain, bytes, packed, room);
    bool done = got > 0 && zarr_maker_put(folder, key, packed, got);
    free(plain);
    free(packed);
    return done;
}

/* "[1, 2]" */
static const char *list(int rank, const int64_t *numbers, char text[128]) {
    size_t n = 0;
    for (int i = 0; i < rank; i++)
        n += (size_t)snprintf(text + n, 128 - n, "%s%lld", i == 0 ? "[" : ", ",
                              (long long)numbers[i]);
    (void)snprintf(text + n, 128 - n, "]");
    return text;
}

static bool write_metadata_v2(const struct zarr_maker *m, const char *folder) {
    char text[2000], shape[128], chunk[128], packing[64] = "null";
    if (m->codec != NULL) (void)snprintf(packing, sizeof packing, "{\"id\": \"%s\"}", m->codec);
    int n = snprintf(text, sizeof text,
                     "{\"zarr_format\": 2, \"shape\": %s, \"chunks\": %s, \"dtype\": \"%c%c%d\", "
                     "\"compressor\": %s, \"fill_value\": %s, \"order\": \"%c\", \"filters\": null",
                     list(m->rank, m->shape, shape), list(m->rank, m->chunk, chunk),
                     type_bytes(m) == 1 ? '|'
                     : m->big           ? '>'
                                        : '<',
                     m->type[0], type_bytes(m), packing, m->fill, m->column_major ? 'F' : 'C');
    n += snprintf(text + n, sizeof text - (size_t)n,
                  m->separator == '/' ? ", \"dimension_separator\": \"/\"}" : "}");
    if (!zarr_maker_put(folder, ".zarray", text, (size_t)n)) return false;
    n = snprintf(text, sizeof text, "{\"_ARRAY_DIMENSIONS\": %s}", m->names);
    return m->names == NULL || zarr_maker_put(folder, ".zattrs", text, (size_t)n);
}

static bool write_metadata_v3(const struct zarr_maker *m, const char *folder) {
    char text[2000], shape[128], chunk[128], packing[64] = "", names[128] = "";
    if (m->codec != NULL)
        (void)snprintf(packing, sizeof packing, ", {\"name\": \"%s%s\"}",
                       strcmp(m->codec, "zlib") == 0 ? "numcodecs." : "", m->codec);
    if (m->names != NULL)
        (void)snprintf(names, sizeof names, ", \"dimension_names\": %s", m->names);
    int n = snprintf(
        text, sizeof text,
        "{\"zarr_format\": 3, \"node_type\": \"array\", \"shape\": %s, \"data_type\": \"%s\", "
        "\"chunk_grid\": {\"name\": \"regular\", \"configuration\": {\"chunk_shape\": %s}}, "
        "\"chunk_key_encoding\": {\"name\": \"%s\", \"configuration\": {\"separator\": \"%c\"}}, "
        "\"fill_value\": %s, \"codecs\": [{\"name\": \"bytes\", \"configuration\": {\"endian\": "
        "\"%s\"}}%s]%s}",
        list(m->rank, m->shape, shape), m->type, list(m->rank, m->chunk, chunk),
        m->old_keys ? "v2" : "default", m->separator, m->fill, m->big ? "big" : "little", packing,
        names);
    return zarr_maker_put(folder, "zarr.json", text, (size_t)n);
}

bool zarr_maker_write(const struct zarr_maker *m, const char *folder) {
    int64_t at[ZARR_MAKER_RANK] = {0};
    bool done = m->format == 2 ? write_metadata_v2(m, folder) : write_metadata_v3(m, folder);
    while (done) {
        if (!is_missing(m, at)) done = write_chunk(m, folder, at);
        int axis = m->rank - 1;
        while (axis >= 0 && ++at[axis] * m->chunk[axis] >= m->shape[axis]) at[axis--] = 0;
        if (axis < 0) break;
    }
    return done;
}
