/* Reads the directories from the draft, assigns new places, and writes each directory before its
 * values and tiles; see cog_layout.h. */
#include "rfexec/output/tiff/cog_layout.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "layers/core/checked.h"

enum {
    MOST_DIRECTORIES = 33,
    MOST_ENTRIES = 64,
    CHUNK_BYTES = 256 * 1024,
    TAG_TILE_OFFSETS = 324,
    TAG_TILE_BYTES = 325,
    TYPE_LONG = 4,
    TYPE_LONG8 = 16
};

struct entry {
    uint16_t tag, type;
    uint64_t count;
    unsigned char value[8]; /* the values, or their offset in the draft */
    uint64_t place;         /* offset of the values in the copy; 0: they are in the entry */
};

struct directory {
    int n_entries;
    struct entry entries[MOST_ENTRIES];
    uint64_t n_tiles, *offsets, *bytes; /* offsets and sizes of the tiles in the draft */
    uint64_t place, data; /* offsets of the directory and of the first tile in the copy */
};

struct copy {
    struct rfx_memory *mem;
    struct rfx_output_file *draft, *to;
    bool big;
    uint64_t written;
    int n;
    struct directory directories[MOST_DIRECTORIES];
    unsigned char chunk[CHUNK_BYTES];
};

size_t rfx_cog_bytes(int64_t tiles) {
    return sizeof(struct copy) + (size_t)tiles * 2 * sizeof(uint64_t);
}

static enum rfx_status get(const struct copy *c, void *to, uint64_t bytes, uint64_t offset,
                           struct rfx_error *err) {
    unsigned char *p = to;
    while (bytes > 0) {
        ssize_t done = pread(rfx_output_file_descriptor(c->draft), p, (size_t)bytes, (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0)
            return rfx_fail(err, RFX_STATUS_IO, "%s: cannot read what is put in order: %s",
                            rfx_output_file_path(c->draft), strerror(done < 0 ? errno : EIO));
        p += done;
        offset += (uint64_t)done;
        bytes -= (uint64_t)done;
    }
    return RFX_OK;
}

/* Returns a number of 2, 4 or 8 bytes in this machine's byte order. */
static uint64_t number(const unsigned char *p, size_t bytes) {
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    memcpy(&two, p, sizeof two);
    if (bytes == 2) return two;
    memcpy(&four, p, sizeof four);
    if (bytes == 4) return four;
    memcpy(&eight, p, sizeof eight);
    return eight;
}

static size_t width(const struct copy *c) {
    return c->big ? 8 : 4;
}

static size_t type_bytes(int type) {
    static const unsigned char bytes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
    return type < (int)sizeof bytes ? bytes[type] : 0;
}

/* Returns the bytes of an entry's values in the copy, where offsets of tiles have the full width.
 */
static uint64_t value_bytes(const struct copy *c, const struct entry *e) {
    return e->count * (e->tag == TAG_TILE_OFFSETS ? width(c) : type_bytes(e->type));
}

/* Reads the numbers of an entry of the draft. */
static enum rfx_status read_numbers(struct copy *c, const struct entry *e, uint64_t **out,
                                    struct rfx_error *err) {
    size_t size = type_bytes(e->type), room = (size_t)e->count * sizeof **out;
    unsigned char *raw = rfx_memory_alloc(c->mem, room);
    if (raw == NULL) return rfx_memory_fail(c->mem, "places of tiles", room, err);
    *out = (uint64_t *)(void *)raw;
    uint64_t bytes = e->count * size;
    unsigned char *from = raw + room - bytes; /* values are widened in place, from the front */
    enum rfx_status status = RFX_OK;
    if (bytes <= width(c))
        memcpy(from, e->value, (size_t)bytes);
    else
        status = get(c, from, bytes, number(e->value, width(c)), err);
    for (uint64_t i = 0; i < e->count && status == RFX_OK; i++) {
        unsigned char one[8] = {0};
        memcpy(one, from + i * size, size);
        uint64_t value = number(one, size);
        memcpy(raw + i * sizeof value, &value, sizeof value);
    }
    return status;
}

static enum rfx_status read_directory(struct copy *c, struct directory *d, uint64_t *next,
                                      struct rfx_error *err) {
    unsigned char block[MOST_ENTRIES * 20 + 16];
    size_t head = c->big ? 8 : 2, size = c->big ? 20 : 12;
    enum rfx_status status = get(c, block, head, *next, err);
    if (status != RFX_OK) return status;
    uint64_t n = number(block, head);
    assert(n <= MOST_ENTRIES);
    status = get(c, block, n * size + width(c), *next + head, err);
    if (status != RFX_OK) return status;
    d->n_entries = (int)n;
    for (int i = 0; i < d->n_entries && status == RFX_OK; i++) {
        const unsigned char *p = block + (size_t)i * size;
        struct entry *e = &d->entries[i];
        e->tag = (uint16_t)number(p, 2);
        e->type = (uint16_t)number(p + 2, 2);
        e->count = number(p + 4, width(c));
        memcpy(e->value, p + 4 + width(c), width(c));
        if (e->tag == TAG_TILE_OFFSETS) status = read_numbers(c, e, &d->offsets, err);
        if (e->tag == TAG_TILE_BYTES) status = read_numbers(c, e, &d->bytes, err);
        if (e->tag == TAG_TILE_OFFSETS) d->n_tiles = e->count;
    }
    *next = number(block + n * size, width(c));
    return status;
}

static enum rfx_status read_directories(struct copy *c, struct rfx_error *err) {
    unsigned char first[8];
    enum rfx_status status = get(c, first, width(c), width(c), err);
    uint64_t next = status == RFX_OK ? number(first, width(c)) : 0;
    for (; next != 0 && status == RFX_OK; c->n++) {
        assert(c->n < MOST_DIRECTORIES);
        status = read_directory(c, &c->directories[c->n], &next, err);
    }
    return status;
}

static uint64_t aligned(uint64_t place) {
    return (place + 7) / 8 * 8;
}

/* Assigns offsets in the copy to all directories, values and tiles. */
static void lay_out(struct copy *c) {
    uint64_t at = 2 * width(c);
    for (int k = 0; k < c->n; k++) {
        struct directory *d = &c->directories[k];
        d->place = at = aligned(at);
        at += c->big ? 8 + 20 * (uint64_t)d->n_entries + 8 : 2 + 12 * (uint64_t)d->n_entries + 4;
        for (int i = 0; i < d->n_entries; i++) {
            uint64_t bytes = value_bytes(c, &d->entries[i]);
            if (bytes <= width(c)) continue;
            d->entries[i].place = at = aligned(at);
            at += bytes;
        }
    }
    for (int k = c->n - 1; k >= 0; k--) {
        c->directories[k].data = at;
        for (uint64_t i = 0; i < c->directories[k].n_tiles; i++) at += c->directories[k].bytes[i];
    }
    assert(c->big ||
           at <= UINT32_MAX); /* the draft has the same length, which was planned to fit */
}

static enum rfx_status put(struct copy *c, const void *data, size_t bytes, struct rfx_error *err) {
    c->written += bytes;
    return rfx_output_file_append(c->to, data, bytes, err);
}

static enum rfx_status pad(struct copy *c, uint64_t place, struct rfx_error *err) {
    static const char zeros[8];
    assert(place - c->written < sizeof zeros);
    return put(c, zeros, (size_t)(place - c->written), err);
}

static enum rfx_status put_number(struct copy *c, uint64_t value, size_t bytes,
                                  struct rfx_error *err) {
    const uint16_t two = (uint16_t)value;
    const uint32_t four = (uint32_t)value;
    return bytes == 2   ? put(c, &two, bytes, err)
           : bytes == 4 ? put(c, &four, bytes, err)
                        : put(c, &value, bytes, err);
}

/* Copies bytes of the draft to the copy. */
static enum rfx_status carry(struct copy *c, uint64_t from, uint64_t bytes, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    while (bytes > 0 && status == RFX_OK) {
        uint64_t n = bytes < CHUNK_BYTES ? bytes : CHUNK_BYTES;
        status = get(c, c->chunk, n, from, err);
        if (status == RFX_OK) status = put(c, c->chunk, (size_t)n, err);
        from += n;
        bytes -= n;
    }
    return status;
}

static enum rfx_status put_tile_places(struct copy *c, const struct directory *d,
                                       struct rfx_error *err) {
    uint64_t at = d->data;
    enum rfx_status status = RFX_OK;
    for (uint64_t i = 0; i < d->n_tiles && status == RFX_OK; i++) {
        status = put_number(c, at, width(c), err);
        at += d->bytes[i];
    }
    return status;
}

static enum rfx_status put_entry(struct copy *c, const struct directory *d, const struct entry *e,
                                 struct rfx_error *err) {
    bool places = e->tag == TAG_TILE_OFFSETS;
    enum rfx_status status = put_number(c, e->tag, 2, err);
    uint64_t type = !places ? e->type : c->big ? TYPE_LONG8 : TYPE_LONG;
    if (status == RFX_OK) status = put_number(c, type, 2, err);
    if (status == RFX_OK) status = put_number(c, e->count, width(c), err);
    if (status != RFX_OK) return status;
    if (e->place != 0) return put_number(c, e->place, width(c), err);
    return places ? put_number(c, d->data, width(c), err) : put(c, e->value, width(c), err);
}

static enum rfx_status put_values(struct copy *c, const struct directory *d, const struct entry *e,
                                  struct rfx_error *err) {
    if (e->place == 0) return RFX_OK;
    enum rfx_status status = pad(c, e->place, err);
    if (status != RFX_OK) return status;
    return e->tag == TAG_TILE_OFFSETS
               ? put_tile_places(c, d, err)
               : carry(c, number(e->value, width(c)), value_bytes(c, e), err);
}

static enum rfx_status put_directory(struct copy *c, int k, struct rfx_error *err) {
    const struct directory *d = &c->directories[k];
    uint64_t next = k + 1 < c->n ? c->directories[k + 1].place : 0;
    enum rfx_status status = pad(c, d->place, err);
    if (status == RFX_OK) status = put_number(c, (uint64_t)d->n_entries, c->big ? 8 : 2, err);
    for (int i = 0; i < d->n_entries && status == RFX_OK; i++)
        status = put_entry(c, d, &d->entries[i], err);
    if (status == RFX_OK) status = put_number(c, next, width(c), err);
    for (int i = 0; i < d->n_entries && status == RFX_OK; i++)
        status = put_values(c, d, &d->entries[i], err);
    return status;
}

static enum rfx_status put_all(struct copy *c, struct rfx_error *err) {
    enum rfx_status status = carry(c, 0, width(c), err); /* the header is that of the draft */
    if (status == RFX_OK) status = put_number(c, c->directories[0].place, width(c), err);
    for (int k = 0; k < c->n && status == RFX_OK; k++) status = put_directory(c, k, err);
    for (int k = c->n - 1; k >= 0; k--) {
        const struct directory *d = &c->directories[k];
        for (uint64_t i = 0; i < d->n_tiles && status == RFX_OK; i++) {
            status = rfx_memory_check_stop(c->mem, err);
            if (status == RFX_OK) status = carry(c, d->offsets[i], d->bytes[i], err);
        }
    }
    return status;
}

enum rfx_status rfx_cog_copy(struct rfx_memory *mem, struct rfx_output_file *draft, bool big,
                             struct rfx_output_file *to, struct rfx_error *err) {
    struct copy *c = rfx_memory_calloc(mem, 1, sizeof *c);
    if (c == NULL) return rfx_memory_fail(mem, "a copy in order", sizeof *c, err);
    c->mem = mem;
    c->draft = draft;
    c->to = to;
    c->big = big;
    enum rfx_status status = rfx_output_file_put(draft, "", 0, 0, err); /* flushes its buffer */
    if (status == RFX_OK) status = read_directories(c, err);
    if (status == RFX_OK) {
        lay_out(c);
        status = put_all(c, err);
    }
    for (int k = 0; k < MOST_DIRECTORIES; k++) {
        rfx_memory_release(mem, c->directories[k].offsets);
        rfx_memory_release(mem, c->directories[k].bytes);
    }
    rfx_memory_release(mem, c);
    return status;
}
