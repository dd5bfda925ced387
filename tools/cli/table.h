/* Tables for people: a column is as wide as its widest cell.
 *
 * Invariants: 1. with width 0 (a pipe, a file) no cell is cut; 2. with a width, columns of words
 * and names are cut, the widest first and none below 12 characters; cut words end in "..", cut
 * names begin with ".."; 3. numbers are never cut; 4. no cell is cut when cutting cannot make the
 * lines short enough. Widths are counted in characters, not bytes. */
#ifndef RFX_TOOLS_CLI_TABLE_H
#define RFX_TOOLS_CLI_TABLE_H

#include <stdio.h>

#include "layers/core/memory.h"

enum rfx_table_kind {
    RFX_TABLE_NUMBER, /* aligned right */
    RFX_TABLE_WORDS,  /* aligned left; cut on a narrow terminal */
    RFX_TABLE_NAMES,  /* aligned left; cut at the beginning, as names of layers differ at the end */
    RFX_TABLE_MARK,   /* aligned left, never cut */
};

struct rfx_table_column {
    const char *head;
    enum rfx_table_kind kind;
};

enum { RFX_TABLE_MAX_COLUMNS = 16 };

struct rfx_table;

/* Creates a table without rows. `columns` must outlive the table. The caller frees the table with
 * rfx_table_free. Returns NULL, and notes it for the report, when there is no memory. The functions
 * below accept a NULL table and do nothing. */
struct rfx_table *rfx_table_create(struct rfx_memory *mem, const struct rfx_table_column *columns,
                                   int n_columns);
void rfx_table_free(struct rfx_table *table);

/* Adds the next cell of the current row. The first cell after a full row begins a new row. */
void rfx_table_cell(struct rfx_table *table, const char *format, ...) RFX_PRINTF(2, 3);

/* Prints the column heads (unless all are empty) and the rows. Cuts words so that lines have at
 * most `width` characters, if that is possible; 0: no limit. */
void rfx_table_print(const struct rfx_table *table, FILE *stream, int width);

/* Returns the width of the terminal in characters, or 0 when stdout is not a terminal. */
int rfx_table_terminal_width(void);

/* Prints `text` in lines that break between words; lines after the first are indented by `indent`.
 * width 0: one line. */
void rfx_table_print_wrapped(FILE *stream, const char *text, int indent, int width);
#endif
