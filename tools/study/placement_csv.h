/* Placement problems as text: `id,lower,upper,size[,alignment]` with half-open lifetimes, one item
 * a line, and the same with `offset` as the answer. The header line names the columns, in any
 * order; an `offset` column of an earlier answer is skipped. Lines may end in CR LF, blank ones and
 * those that start with # are skipped. Ids are any text without commas, quotes and control
 * characters, and unique. Alignment is 1 where it is not given. */
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
    bool has_alignment; /* the column was there */
};

/* Parses `length` bytes (copied). RFX_STATUS_MALFORMED with "line L: ..."; what items may be is
 * checked by rfx_place_problem_create. Free with rfx_place_table_free. O(length + n log n). */
RFX_NODISCARD enum rfx_status rfx_place_table_parse(struct rfx_memory *mem, const char *text,
                                                    size_t length, struct rfx_place_table **out,
                                                    struct rfx_error *err);

/* Reads a file whole; RFX_STATUS_IO when the system says no. */
RFX_NODISCARD enum rfx_status rfx_place_table_read(struct rfx_memory *mem, const char *path,
                                                   struct rfx_place_table **out,
                                                   struct rfx_error *err);

void rfx_place_table_free(struct rfx_place_table *table);

/* Writes the table with its offsets; false when the stream cannot take it. */
bool rfx_place_table_write(const struct rfx_place_table *table, const size_t *offsets,
                           FILE *stream);
#endif
