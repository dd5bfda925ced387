/* Copies rows of CSV files behind the name of their image; see list_table.h. */
#include "tools/commands/list_table.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static const struct rfx_answer_options no_options;

size_t rfx_list_table_bytes(void) {
    return rfx_answer_text_bytes(&no_options);
}

enum rfx_status rfx_list_table_open(struct rfx_memory *mem, const char *path,
                                    struct rfx_list_table *table, struct rfx_error *err) {
    const struct rfx_answer_place place = {0};
    return rfx_answer_text_open(&table->text, mem, path, &no_options, &place, NULL, err);
}

/* A file of an image that is read. */
struct source {
    const char *image, *path;
    char columns[RFX_LIST_TABLE_COLUMNS];
    size_t columns_length;
    bool behind_columns; /* the first line is complete */
    bool in_line;        /* the bytes before this piece end inside a line */
};

/* Number of bytes of a first line to show: not its end. */
static int shown(size_t length) {
    return length < 100 ? (int)length - 1 : 99;
}

/* Compares the columns of a file with those of the table, or takes them for it. */
static enum rfx_status take_columns(struct rfx_list_table *table, const struct source *source,
                                    struct rfx_error *err) {
    size_t n = source->columns_length;
    if (table->columns_length == 0) {
        memcpy(table->columns, source->columns, n);
        table->columns_length = n;
        rfx_answer_put(&table->text, "image,");
        return rfx_output_file_append(table->text.file, table->columns, n, err);
    }
    if (table->columns_length == n && memcmp(table->columns, source->columns, n) == 0)
        return RFX_OK;
    return rfx_fail(err, RFX_STATUS_MALFORMED,
                    "%.200s: its columns are '%.*s', those of the files before '%.*s'",
                    source->path, shown(n), source->columns, shown(table->columns_length),
                    table->columns);
}

/* Takes bytes of one line; `last`: the line ends with them. */
static enum rfx_status take_line(struct rfx_list_table *table, struct source *source,
                                 const char *bytes, size_t n, bool last, struct rfx_error *err) {
    if (!source->behind_columns) {
        if (source->columns_length + n >= sizeof source->columns)
            return rfx_fail(err, RFX_STATUS_MALFORMED,
                            "%.200s: its first line has %zu bytes or more", source->path,
                            sizeof source->columns);
        memcpy(source->columns + source->columns_length, bytes, n);
        source->columns_length += n;
        source->behind_columns = last;
        return last ? take_columns(table, source, err) : RFX_OK;
    }
    if (!source->in_line) {
        rfx_answer_csv_field(&table->text, source->image);
        rfx_answer_put(&table->text, ",");
        table->lines++;
    }
    return rfx_output_file_append(table->text.file, bytes, n, err);
}

static enum rfx_status take_piece(struct rfx_list_table *table, struct source *source, size_t n,
                                  struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (size_t i = 0, length; i < n && status == RFX_OK; i += length) {
        const char *line = table->piece + i, *end = memchr(line, '\n', n - i);
        length = end != NULL ? (size_t)(end - line) + 1 : n - i;
        status = take_line(table, source, line, length, end != NULL, err);
        source->in_line = end == NULL;
    }
    return status == RFX_OK ? rfx_answer_text_status(&table->text, err) : status;
}

static enum rfx_status read_all(struct rfx_list_table *table, struct source *source, int file,
                                struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    while (status == RFX_OK) {
        ssize_t n = read(file, table->piece, sizeof table->piece);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return rfx_fail(err, RFX_STATUS_IO, "%.200s: %s", source->path, strerror(errno));
        if (n == 0) break;
        status = take_piece(table, source, (size_t)n, err);
    }
    if (status == RFX_OK && (source->in_line || !source->behind_columns))
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%.200s: its last line does not end",
                        source->path);
    return status;
}

enum rfx_status rfx_list_table_add(struct rfx_list_table *table, const char *image,
                                   const char *path, struct rfx_error *err) {
    struct source source = {.image = image, .path = path};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return rfx_fail(err, RFX_STATUS_IO, "%.200s: %s", path, strerror(errno));
    enum rfx_status status = read_all(table, &source, file, err);
    (void)close(file);
    return status;
}

enum rfx_status rfx_list_table_commit(struct rfx_list_table *table, struct rfx_error *err) {
    enum rfx_status status = rfx_answer_text_status(&table->text, err);
    return status == RFX_OK ? rfx_output_file_commit(table->text.file, err) : status;
}

void rfx_list_table_free(struct rfx_list_table *table) {
    rfx_answer_text_close(&table->text);
}
