/* Lists of paths, one per line. */
#ifndef RFX_TOOLS_COMMANDS_BATCH_LIST_H
#define RFX_TOOLS_COMMANDS_BATCH_LIST_H

#include "layers/core/memory.h"

/* The longest list in bytes. It stays in memory while its images run. */
#define RFX_BATCH_LIST_MOST_BYTES ((size_t)64 << 20)

struct rfx_batch_list {
    struct rfx_memory *mem;
    size_t n;
    char **paths; /* as written; empty lines are left out */
    char *text;
    size_t bytes; /* held */
};

/* Reads the file, or standard input for "-". IO; MALFORMED: no paths, more than the most bytes, a
 * zero byte. Free with rfx_batch_list_free. */
RFX_NODISCARD enum rfx_status rfx_batch_list_read(struct rfx_memory *mem, const char *path,
                                                  struct rfx_batch_list *list,
                                                  struct rfx_error *err);

/* The part of a path behind its last slash. */
const char *rfx_batch_list_base(const char *path);

/* INVALID_ARGUMENT, naming them: two paths have the same base, so that both results would be one
 * file. The order of the list stays. */
RFX_NODISCARD enum rfx_status rfx_batch_list_check_bases(const struct rfx_batch_list *list,
                                                         struct rfx_error *err);

void rfx_batch_list_free(struct rfx_batch_list *list);
#endif
