/* Tables for people: columns as wide as what is in them.
 *
 * Invariants: 1. with width 0 (a pipe, a file) nothing is ever cut; 2. with a width, columns of
 * words give way, the widest first and never below 12 characters, and cut words end in ".." (names
 * begin so); numbers are never cut, and nothing is where lines would be too long all the same.
 * Columns are counted in characters, not bytes. */
#ifndef RFX_TOOLS_CLI_TABLE_H
#define RFX_TOOLS_CLI_TABLE_H

#include <stdio.h>

#include "layers/core/memory.h"

enum rfx_table_kind {
    RFX_TABLE_NUMBER, /* to the right */
    RFX_TABLE_WORDS,  /* to the left; may be cut on a narrow terminal */
    RFX_TABLE_NAMES,  /* as words, but cut at their beginning: layers differ in how names end */
    RFX_TABLE_MARK,   /* to the left, never cut */
};

struct rfx_table_column {
    const char *head;
    enum rfx_table_kind kind;
};

enum { RFX_TABLE_MAX_COLUMNS = 16 };

struct rfx_table;

/* A table without rows; columns are borrowed. NULL: no memory, which the report notes; the
 * functions below do nothing then. Free with rfx_table_free. */
struct rfx_table *rfx_table_create(struct rfx_memory *mem, const struct rfx_table_column *columns,
                                   int n_columns);
void rfx_table_free(struct rfx_table *table);

/* The next cell, row after row. */
void rfx_table_cell(struct rfx_table *table, const char *format, ...) RFX_PRINTF(2, 3);

/* Prints head (unless all are empty) and rows; lines have at most `width` characters as far as
 * words can give way. 0: no limit. */
void rfx_table_print(const struct rfx_table *table, FILE *stream, int width);

/* Columns of the terminal that stdout is; 0: it is none. */
int rfx_table_terminal_width(void);

/* Prints `text` in lines that break between words, the later ones indented by `indent`; width 0:
 * one line. */
void rfx_table_print_wrapped(FILE *stream, const char *text, int indent, int width);
#endif
