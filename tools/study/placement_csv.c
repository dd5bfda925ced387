/* Reads and writes placement problems as text. The reader is strict: every line is an item or an
 * error. */
#include "tools/study/placement_csv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/descriptor.h"
#include "layers/core/printable.h"

enum column { COLUMN_ID, COLUMN_LOWER, COLUMN_UPPER, COLUMN_SIZE, COLUMN_ALIGNMENT, COLUMN_OFFSET };
enum { N_COLUMNS = COLUMN_OFFSET + 1, N_REQUIRED = COLUMN_SIZE + 1 };
static const char *const column_names[] = {"id", "lower", "upper", "size", "alignment", "offset"};
_Static_assert(sizeof column_names / sizeof column_names[0] == N_COLUMNS, "a name per column");

/* The longest file that is read: about ten million items. */
static const size_t max_bytes = (size_t)1 << 29;

/* Initial size of the buffer that a file is read into: about a thousand items. It is doubled when
 * full. */
static const size_t first_capacity = (size_t)1 << 16;

struct header {
    int n;
    enum column columns[N_COLUMNS];
};

/* Splits the line at commas into at most `max` fields and strips blanks. Returns the number of
 * fields, or max + 1 when the line has more. */
static int cut_fields(char *line, char **fields, int max) {
    int n = 0;
    for (char *p = line; p != NULL;) {
        char *comma = strchr(p, ',');
        char *end = comma != NULL ? comma : p + strlen(p);
        if (n == max) return max + 1;
        while (*p == ' ' || *p == '\t') p++;
        while (end > p && (end[-1] == ' ' || end[-1] == '\t')) end--;
        fields[n++] = p;
        p = comma != NULL ? comma + 1 : NULL;
        *end = '\0';
    }
    return n;
}

static enum rfx_status parse_header(char *line, int number, struct header *header,
                                    struct rfx_error *err) {
    char *fields[N_COLUMNS];
    bool seen[N_COLUMNS] = {false};
    int n = cut_fields(line, fields, N_COLUMNS);
    header->n = 0;
    for (int i = 0; i < n && i < N_COLUMNS; i++) {
        int c = 0;
        while (c < N_COLUMNS && strcmp(fields[i], column_names[c]) != 0) c++;
        if (c == N_COLUMNS || seen[c])
            return rfx_fail(err, RFX_STATUS_MALFORMED,
                            "line %d: column '%.40s' %s (id,lower,upper,size[,alignment])", number,
                            fields[i], c < N_COLUMNS ? "comes twice" : "is not known");
        seen[c] = true;
        header->columns[header->n++] = (enum column)c;
    }
    for (int c = 0; c < N_REQUIRED; c++)
        if (!seen[c])
            return rfx_fail(err, RFX_STATUS_MALFORMED, "line %d: no column '%s' in the header",
                            number, column_names[c]);
    return RFX_OK;
}

static bool parse_integer(const char *text, bool negative, int64_t *out) {
    const char *digits = text + (negative && *text == '-');
    char *end;
    if (*digits < '0' || *digits > '9') return false;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0') return false;
    *out = value;
    return true;
}

static bool is_id(const char *text) {
    if (*text == '\0') return false;
    return strchr(text, '"') == NULL && rfx_is_printable(text);
}

static enum rfx_status parse_item(char *line, int number, const struct header *header,
                                  struct rfx_place_item *item, const char **id,
                                  struct rfx_error *err) {
    char *fields[N_COLUMNS];
    int n = cut_fields(line, fields, header->n);
    if (n != header->n)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "line %d: %s than the header's %d columns",
                        number, n < header->n ? "fewer fields" : "more fields", header->n);
    int64_t values[N_COLUMNS] = {[COLUMN_ALIGNMENT] = 1};
    for (int i = 0; i < n; i++) {
        enum column column = header->columns[i];
        if (column == COLUMN_OFFSET) continue;
        bool time = column == COLUMN_LOWER || column == COLUMN_UPPER;
        bool good = column == COLUMN_ID ? is_id(fields[i])
                                        : parse_integer(fields[i], time, &values[column]);
        if (!good)
            return rfx_fail(err, RFX_STATUS_MALFORMED, "line %d: '%.40s' is no %s", number,
                            fields[i], column_names[column]);
        if (column == COLUMN_ID) *id = fields[i];
    }
    struct rfx_place_item parsed = {values[COLUMN_LOWER], values[COLUMN_UPPER],
                                    (size_t)values[COLUMN_SIZE], (size_t)values[COLUMN_ALIGNMENT]};
    if (parsed.lo >= parsed.hi)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "line %d: the lifetime [%lld, %lld) is empty",
                        number, (long long)parsed.lo, (long long)parsed.hi);
    if (parsed.size == 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "line %d: the size is 0", number);
    if (parsed.alignment == 0 || (parsed.alignment & (parsed.alignment - 1)) != 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "line %d: alignment %zu is no power of two",
                        number, parsed.alignment);
    *item = parsed;
    return RFX_OK;
}

static int compare_ids(const void *pa, const void *pb) {
    return strcmp(*(const char *const *)pa, *(const char *const *)pb);
}

static enum rfx_status check_unique(const struct rfx_place_table *table, struct rfx_error *err) {
    size_t n = (size_t)table->n;
    const char **sorted = rfx_memory_calloc(table->mem, n, sizeof *sorted);
    if (sorted == NULL)
        return rfx_memory_fail(table->mem, "placement problem", n * sizeof *sorted, err);
    enum rfx_status status = RFX_OK;
    for (size_t i = 0; i < n; i++) sorted[i] = table->ids[i];
    if (n > 0) qsort(sorted, n, sizeof *sorted, compare_ids);
    for (size_t i = 1; i < n && status == RFX_OK; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            status = rfx_fail(err, RFX_STATUS_MALFORMED, "id '%.60s' comes twice", sorted[i]);
    rfx_memory_release(table->mem, (void *)sorted);
    return status;
}

static enum rfx_status parse_lines(struct rfx_place_table *table, struct rfx_error *err) {
    struct header header = {0};
    int number = 0;
    char *next = table->text;
    while (next != NULL) {
        char *line = next;
        char *end = strchr(line, '\n');
        next = end != NULL ? end + 1 : NULL;
        if (end == NULL) end = line + strlen(line);
        if (end > line && end[-1] == '\r') end--;
        *end = '\0';
        number++;
        if (line[strspn(line, " \t")] == '\0' || line[0] == '#') continue;
        enum rfx_status status;
        if (header.n == 0) {
            status = parse_header(line, number, &header, err);
        } else {
            status = parse_item(line, number, &header, &table->items[table->n],
                                &table->ids[table->n], err);
            table->n++;
        }
        if (status != RFX_OK) return status;
    }
    for (int i = 0; i < header.n; i++)
        table->has_alignment |= header.columns[i] == COLUMN_ALIGNMENT;
    if (header.n == 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "no header: id,lower,upper,size[,alignment]");
    return check_unique(table, err);
}

enum rfx_status rfx_place_table_parse(struct rfx_memory *mem, const char *text, size_t length,
                                      struct rfx_place_table **out, struct rfx_error *err) {
    size_t lines = 1;
    if (length > max_bytes)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%zu bytes are more than the %zu that are read",
                        length, max_bytes);
    if (memchr(text, '\0', length) != NULL)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "a zero byte: this is no text");
    for (size_t i = 0; i < length; i++) lines += text[i] == '\n';
    struct rfx_place_table *table = rfx_memory_calloc(mem, 1, sizeof *table);
    if (table == NULL) return rfx_memory_fail(mem, "placement problem", sizeof *table, err);
    table->mem = mem;
    table->text = rfx_memory_alloc(mem, length + 1);
    table->items = rfx_memory_calloc(mem, lines, sizeof *table->items);
    table->ids = rfx_memory_calloc(mem, lines, sizeof *table->ids);
    enum rfx_status status;
    if (table->text == NULL || table->items == NULL || table->ids == NULL) {
        status = rfx_memory_fail(mem, "placement problem", lines * sizeof *table->items, err);
    } else {
        memcpy(table->text, text, length);
        table->text[length] = '\0';
        status = parse_lines(table, err);
    }
    if (status == RFX_OK)
        *out = table;
    else
        rfx_place_table_free(table);
    return status;
}

enum rfx_status rfx_place_table_read(struct rfx_memory *mem, const char *path,
                                     struct rfx_place_table **out, struct rfx_error *err) {
    FILE *file = rfx_descriptor_stream(path);
    if (file == NULL)
        return rfx_fail(err, RFX_STATUS_IO, "cannot open '%s': %s", path, strerror(errno));
    size_t used = 0;
    size_t capacity = first_capacity;
    char *text = rfx_memory_alloc(mem, capacity);
    enum rfx_status status = RFX_OK;
    while (text != NULL && capacity <= 2 * max_bytes) {
        used += fread(text + used, 1, capacity - used, file);
        if (used < capacity) break;
        char *more = rfx_memory_realloc(mem, text, capacity *= 2);
        if (more == NULL) rfx_memory_release(mem, text);
        text = more;
    }
    if (text == NULL)
        status = rfx_memory_fail(mem, path, capacity, err);
    else if (ferror(file))
        status = rfx_fail(err, RFX_STATUS_IO, "cannot read '%s': %s", path, strerror(errno));
    else
        status = rfx_place_table_parse(mem, text, used, out, err);
    if (status == RFX_STATUS_MALFORMED) status = rfx_fail_within(err, status, "'%s'", path);
    rfx_memory_release(mem, text);
    (void)fclose(file);
    return status;
}

void rfx_place_table_free(struct rfx_place_table *table) {
    if (table == NULL) return;
    rfx_memory_release(table->mem, table->text);
    rfx_memory_release(table->mem, table->items);
    rfx_memory_release(table->mem, (void *)table->ids);
    rfx_memory_release(table->mem, table);
}

bool rfx_place_table_write(const struct rfx_place_table *table, const size_t *offsets,
                           FILE *stream) {
    fputs(table->has_alignment ? "id,lower,upper,size,alignment,offset\n"
                               : "id,lower,upper,size,offset\n",
          stream);
    for (int i = 0; i < table->n; i++) {
        const struct rfx_place_item *item = &table->items[i];
        /* A leading blank, which is not part of the id, keeps "#1" from being read as a comment. */
        fprintf(stream, "%s%s,%lld,%lld,%zu,", table->ids[i][0] == '#' ? " " : "", table->ids[i],
                (long long)item->lo, (long long)item->hi, item->size);
        if (table->has_alignment) fprintf(stream, "%zu,", item->alignment);
        fprintf(stream, "%zu\n", offsets[i]);
    }
    return fflush(stream) == 0 && ferror(stream) == 0;
}
