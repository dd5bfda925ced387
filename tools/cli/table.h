/* Tables for people: a column is as wide as its widest cell.
 *
 * Invariants: 1. with width 0 (a pipe, a file) no cell is cut; 2. with a width, columns of words
 * are cut, the widest first and none below 12 characters; cut words end in "..", cut names begin
 * with it; numbers are never cut, and no cell is cut where lines would still be too long. Widths
 * are counted in characters, not bytes. */
#ifndef RFX_TOOLS_CLI_TABLE_H
#define RFX_TOOLS_CLI_TABLE_H

#include <stdio.h>

#include "layers/core/memory.h"

enum rfx_table_kind {
    RFX_TABLE_NUMBER, /* aligned right */
    RFX_TABLE_WORDS,  /* aligned left; cut on a narrow terminal */
    RFX_TABLE_NAMES,  /* as words, but cut at the beginning: names of layers differ at the end */
    RFX_TABLE_MARK,   /* aligned left, never cut */
};

struct rfx_table_column {
    const char *head;
    enum rfx_table_kind kind;
};

enum { RFX_TABLE_MAX_COLUMNS = 16 };

struct rfx_table;

/* Creates a table without rows, which borrows the columns; freed by rfx_table_free. NULL: no
 * memory, which the report notes; the functions below take NULL and do nothing. */
struct rfx_table *rfx_table_create(struct rfx_memory *mem, const struct rfx_table_column *columns,
                                   int n_columns);
void rfx_table_free(struct rfx_table *table);

/* Adds the next cell; rows follow each other. */
void rfx_table_cell(struct rfx_table *table, const char *format, ...) RFX_PRINTF(2, 3);

/* Prints the heads (unless all are empty) and the rows, in lines of at most `width` characters
 * where cutting words is enough. 0: no limit. */
void rfx_table_print(const struct rfx_table *table, FILE *stream, int width);

/* Returns the width of the terminal in characters; 0: stdout is no terminal. */
int rfx_table_terminal_width(void);

/* Prints `text` in lines that break between words; lines after the first are indented by `indent`.
 * width 0: one line. */
void rfx_table_print_wrapped(FILE *stream, const char *text, int indent, int width);
#endif
