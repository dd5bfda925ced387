/* Reads lists of paths, one path a line. */
#ifndef RFX_TOOLS_COMMANDS_BATCH_LIST_H
#define RFX_TOOLS_COMMANDS_BATCH_LIST_H

#include "layers/core/memory.h"

/* Largest list in bytes. The list stays in memory while its images are run. */
#define RFX_BATCH_LIST_MOST_BYTES ((size_t)64 << 20)

struct rfx_batch_list {
    struct rfx_memory *mem;
    size_t n;
    char **paths; /* as written; empty lines are left out */
    char *text;
    size_t bytes; /* bytes that the list takes, a later sorted copy of the paths included */
};

/* Reads a list from the file `path`, or from standard input for "-". The caller frees the list with
 * rfx_batch_list_free. Statuses: IO; OUT_OF_MEMORY; MALFORMED: the list has no paths, more than
 * RFX_BATCH_LIST_MOST_BYTES bytes, or a zero byte. */
RFX_NODISCARD enum rfx_status rfx_batch_list_read(struct rfx_memory *mem, const char *path,
                                                  struct rfx_batch_list *list,
                                                  struct rfx_error *err);

/* Lists the files of the folder `path`, in the order of their bytes: regular files whose names do
 * not begin with a dot. If `path` is a picture, lists this one; else reads the list as
 * rfx_batch_list_read does. Statuses are the same. */
RFX_NODISCARD enum rfx_status rfx_batch_list_read_images(struct rfx_memory *mem, const char *path,
                                                         struct rfx_batch_list *list,
                                                         struct rfx_error *err);

/* Returns the part of a path after its last slash. */
const char *rfx_batch_list_base(const char *path);

/* Checks that no two paths of the list have the same base name, as their results would go to the
 * same file. Returns INVALID_ARGUMENT, with both paths in the error, when two have. The order of
 * the list does not change. */
RFX_NODISCARD enum rfx_status rfx_batch_list_check_bases(const struct rfx_batch_list *list,
                                                         struct rfx_error *err);

void rfx_batch_list_free(struct rfx_batch_list *list);
#endif
