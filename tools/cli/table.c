/* Keeps all cells in one growing text and computes the column widths when the table is printed; see
 * table.h. */
#include "tools/cli/table.h"

#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/cli/report.h"

enum { GAP = 2, LEAST_WORDS = 12, CELL_CHARS = 4096 };

struct rfx_table {
    struct rfx_memory *mem;
    const struct rfx_table_column *columns;
    int n_columns;
    char *text; /* the cells, each ended by NUL */
    size_t used, capacity;
    size_t n_cells;
    bool failed;
};

struct rfx_table *rfx_table_create(struct rfx_memory *mem, const struct rfx_table_column *columns,
                                   int n_columns) {
    struct rfx_table *table = rfx_memory_calloc(mem, 1, sizeof *table);
    if (table == NULL) {
        rfx_report_note_no_memory();
        return NULL;
    }
    table->mem = mem;
    table->columns = columns;
    table->n_columns = n_columns;
    return table;
}

void rfx_table_free(struct rfx_table *table) {
    if (table == NULL) return;
    rfx_memory_release(table->mem, table->text);
    rfx_memory_release(table->mem, table);
}

static bool reserve(struct rfx_table *table, size_t more) {
    char *text =
        rfx_memory_reserve(table->mem, table->text, &table->capacity, table->used + more, 1);
    if (text == NULL) return false;
    table->text = text;
    return true;
}

void rfx_table_cell(struct rfx_table *table, const char *format, ...) {
    char cell[CELL_CHARS];
    va_list args;
    if (table == NULL || table->failed) return;
    va_start(args, format);
    int n = vsnprintf(cell, sizeof cell, format, args);
    va_end(args);
    size_t size = n < 0 ? 0 : n < CELL_CHARS ? (size_t)n : sizeof cell - 1;
    cell[size] = '\0';
    table->failed = !reserve(table, size + 1);
    if (table->failed) {
        rfx_report_note_no_memory();
        return;
    }
    memcpy(table->text + table->used, cell, size + 1);
    table->used += size + 1;
    table->n_cells++;
}

static bool begins_character(char c) {
    return ((unsigned char)c & 0xC0U) != 0x80U;
}

static int characters(const char *text) {
    int n = 0;
    for (; *text != '\0'; ++text) n += begins_character(*text);
    return n;
}

/* Returns the number of bytes that the first n characters of a UTF-8 text occupy. */
static size_t bytes_of(const char *text, int n) {
    size_t at = 0;
    for (; text[at] != '\0'; ++at)
        if (begins_character(text[at]) && n-- == 0) break;
    return at;
}

static void widen(int *width, const char *text) {
    int n = characters(text);
    if (n > *width) *width = n;
}

static bool may_give(enum rfx_table_kind kind) {
    return kind == RFX_TABLE_WORDS || kind == RFX_TABLE_NAMES;
}

/* Makes the widest column of words narrower until the line fits into `width`. When the columns
 * cannot become narrow enough, restores all widths: lines that are too long in any case are better
 * with whole names. */
static void fit(const struct rfx_table *table, int width, int *widths) {
    int line = (table->n_columns - 1) * GAP, whole[RFX_TABLE_MAX_COLUMNS];
    memcpy(whole, widths, sizeof whole);
    for (int c = 0; c < table->n_columns; ++c) line += widths[c];
    for (; line > width; --line) {
        int widest = -1;
        for (int c = 0; c < table->n_columns; ++c)
            if (may_give(table->columns[c].kind) && widths[c] > LEAST_WORDS &&
                (widest < 0 || widths[c] > widths[widest]))
                widest = c;
        if (widest < 0) {
            memcpy(widths, whole, sizeof whole);
            return;
        }
        widths[widest]--;
    }
}

static void print_cell(const struct rfx_table *table, int column, const char *text, int width,
                       FILE *stream) {
    int n = characters(text), fill = width > n ? width - n : 0;
    bool right = table->columns[column].kind == RFX_TABLE_NUMBER;
    bool last = column == table->n_columns - 1;
    if (right) fprintf(stream, "%*s", fill, "");
    if (n > width && table->columns[column].kind == RFX_TABLE_NAMES)
        fprintf(stream, "..%s", text + bytes_of(text, n - width + 2));
    else if (n > width)
        fprintf(stream, "%.*s..", (int)bytes_of(text, width - 2), text);
    else
        fputs(text, stream);
    if (!right && !last) fprintf(stream, "%*s", fill, "");
    if (last)
        fputc('\n', stream);
    else
        fprintf(stream, "%*s", GAP, "");
}

void rfx_table_print(const struct rfx_table *table, FILE *stream, int width) {
    int widths[RFX_TABLE_MAX_COLUMNS] = {0}, column = 0;
    bool head = false;
    if (table == NULL) return;
    for (int c = 0; c < table->n_columns; ++c) {
        widen(&widths[c], table->columns[c].head);
        head |= table->columns[c].head[0] != '\0';
    }
    const char *cell = table->text;
    for (size_t i = 0; i < table->n_cells; ++i, cell += strlen(cell) + 1)
        widen(&widths[i % (size_t)table->n_columns], cell);
    if (width > 0) fit(table, width, widths);
    for (int c = 0; head && c < table->n_columns; ++c)
        print_cell(table, c, table->columns[c].head, widths[c], stream);
    cell = table->text;
    for (size_t i = 0; i < table->n_cells; ++i, cell += strlen(cell) + 1) {
        column = (int)(i % (size_t)table->n_columns);
        print_cell(table, column, cell, widths[column], stream);
    }
}

int rfx_table_terminal_width(void) {
    struct winsize window;
    if (isatty(fileno(stdout)) == 0) return 0;
    if (ioctl(fileno(stdout), TIOCGWINSZ, &window) != 0 || window.ws_col == 0) return 80;
    return window.ws_col;
}

void rfx_table_print_wrapped(FILE *stream, const char *text, int indent, int width) {
    int at = 0;
    while (*text != '\0') {
        size_t word = strcspn(text, " ");
        char copy[CELL_CHARS];
        (void)snprintf(copy, sizeof copy, "%.*s", (int)word, text);
        int n = characters(copy);
        if (at > 0 && width > 0 && at + 1 + n > width) {
            fprintf(stream, "\n%*s", indent, "");
            at = indent;
        } else if (at > 0) {
            fputc(' ', stream);
            at++;
        }
        fputs(copy, stream);
        at += n;
        text += word;
        text += strspn(text, " ");
    }
    fputc('\n', stream);
}
