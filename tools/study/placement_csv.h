/* Placement problems as CSV files: `id,lower,upper,size[,alignment]`, one item per line. Lifetimes
 * are half-open. Answers have an additional column `offset`.
 *
 * The header line names the columns, in any order; a column `offset` of an earlier answer is
 * ignored. Lines may end in CR LF; blank lines and those that start with # are skipped. Ids are
 * unique and may not contain commas, quotes or control characters. The default alignment is 1. */
#ifndef RFX_TOOLS_STUDY_PLACEMENT_CSV_H
#define RFX_TOOLS_STUDY_PLACEMENT_CSV_H

#include <stdio.h>

#include "tiler/arena/arena_problem.h"

struct rfx_place_table {
    struct rfx_memory *mem;
    int n;
    struct rfx_place_item *items;
    const char **ids; /* point into text */
    char *text;
    bool has_alignment; /* the column was present */
};

/* Parses `length` bytes (copied). MALFORMED with "line L: ..."; rfx_place_problem_create checks the
 * items. Takes O(length + n log n). Free with rfx_place_table_free. */
RFX_NODISCARD enum rfx_status rfx_place_table_parse(struct rfx_memory *mem, const char *text,
                                                    size_t length, struct rfx_place_table **out,
                                                    struct rfx_error *err);

/* Reads and parses a file. IO: it cannot be read. */
RFX_NODISCARD enum rfx_status rfx_place_table_read(struct rfx_memory *mem, const char *path,
                                                   struct rfx_place_table **out,
                                                   struct rfx_error *err);

void rfx_place_table_free(struct rfx_place_table *table);

/* Writes the table with its offsets. Returns false if the stream reports an error. */
bool rfx_place_table_write(const struct rfx_place_table *table, const size_t *offsets,
                           FILE *stream);
#endif
