/* Placement problems as CSV: what is read is written and read again, and placed by every strategy,
 * whose answers must be sound. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tiler/arena/greedy_packers.h"
#include "tools/study/placement_csv.h"

#define MEMORY_BYTES ((size_t)4 << 20)
enum { MOST_ITEMS = 64 };

static void place(const struct rfx_place_problem *problem) {
    size_t offsets[MOST_ITEMS], arena = 0;
    struct rfx_error err = {""};
    for (enum rfx_greedy_packer s = 0; s < RFX_GREEDY_COUNT; s++) {
        const char *name = rfx_greedy_name(s);
        enum rfx_status status = rfx_greedy_place(problem, s, NULL, offsets, &arena, &err);
        fuzz_check_status(status, &err);
        if (status != RFX_OK) continue;
        if (arena < problem->lower_bound) fuzz_fail("%s: below the lower bound", name);
        if (!rfx_place_answer_is_valid(problem->items, problem->n, offsets, arena))
            fuzz_fail("%s: items overlap", name);
    }
}

/* The table as text with offsets of 0, parsed again: the same items. */
static void write_and_read(struct rfx_memory *mem, const struct rfx_place_table *table) {
    static const size_t offsets[MOST_ITEMS];
    struct rfx_place_table *again = NULL;
    struct rfx_error err = {""};
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    if (stream == NULL || !rfx_place_table_write(table, offsets, stream) || fclose(stream) != 0)
        fuzz_fail("a table cannot be written");
    enum rfx_status status = rfx_place_table_parse(mem, text, length, &again, &err);
    if (status != RFX_OK) fuzz_fail("what was written is refused: %s", err.text);
    if (again->n != table->n) fuzz_fail("%d items became %d", table->n, again->n);
    for (int i = 0; i < table->n; i++)
        if (strcmp(again->ids[i], table->ids[i]) != 0 || again->items[i].lo != table->items[i].lo ||
            again->items[i].hi != table->items[i].hi ||
            again->items[i].size != table->items[i].size)
            fuzz_fail("item %d is another one when read again", i);
    rfx_place_table_free(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct rfx_memory *mem = fuzz_memory(MEMORY_BYTES);
    struct rfx_place_table *table = NULL;
    struct rfx_place_problem *problem = NULL;
    struct rfx_error err = {""};
    enum rfx_status status = rfx_place_table_parse(mem, (const char *)data, size, &table, &err);
    fuzz_check_status(status, &err);
    if (status == RFX_OK && table->n <= MOST_ITEMS) {
        write_and_read(mem, table);
        status = rfx_place_problem_create(mem, table->items, table->n, &problem, &err);
        fuzz_check_status(status, &err);
        if (status == RFX_OK) place(problem);
    }
    rfx_place_problem_free(problem);
    rfx_place_table_free(table);
    rfx_memory_free(mem);
    return 0;
}
