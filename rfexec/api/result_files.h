/* Private: the files of rfx_run_options.files. They are read and checked when a job is opened,
 * opened before its run, and completed after it. */
#ifndef RFX_RFEXEC_API_RESULT_FILES_H
#define RFX_RFEXEC_API_RESULT_FILES_H

#include "rfexec/output/output_files.h"
#include "rfexec/rfexec.h"

struct rfx_result_files_item {
    int output;
    const char *path; /* the caller's */
    struct rfx_output_format format;
    struct rfx_output_stream *stream; /* NULL: not open */
};

struct rfx_result_files { /* all zero: none */
    struct rfx_memory *mem;
    int n;
    struct rfx_result_files_item *items;
    struct rfx_geo_source geo; /* georeference of the picture */
    const char *no_data;       /* no-data value for georeferenced files; NULL: none */
    size_t answer_bytes;       /* largest answer_bytes that the caller has set; 0: none */
};

/* Reads and checks the options' files. INVALID_ARGUMENT: a member is out of its range, an output
 * does not exist or has two files, or a kind of file cannot hold its output. All memory comes from
 * `mem`. Release *out with rfx_result_files_free, also after a failure. */
RFX_NODISCARD enum rfx_status rfx_result_files_read(const struct rfx_run_options *options,
                                                    const struct rfx_graph *graph,
                                                    struct rfx_memory *mem,
                                                    struct rfx_result_files *out,
                                                    struct rfx_error *err);

/* Returns the memory that writing the files takes while the network runs. */
size_t rfx_result_files_bytes(const struct rfx_result_files *files, const struct rfx_graph *graph);

/* Opens all files under temporary names. Fails with the statuses of rfx_output_stream_open. */
RFX_NODISCARD enum rfx_status rfx_result_files_open(struct rfx_result_files *files,
                                                    const struct rfx_graph *graph, bool as_stored,
                                                    struct rfx_error *err);

/* Returns the file of output k, or NULL if it has none. */
const struct rfx_result_files_item *rfx_result_files_item(const struct rfx_result_files *files,
                                                          int k);

/* Completes the files and gives them their names. `stop` is called until the first file has its
 * name; after that all files are completed. NULL: nothing is called. */
RFX_NODISCARD enum rfx_status rfx_result_files_commit(struct rfx_result_files *files,
                                                      int (*stop)(void *user), void *user,
                                                      struct rfx_error *err);

/* Closes the files. Files that are not complete are removed. */
void rfx_result_files_close(struct rfx_result_files *files);

void rfx_result_files_free(struct rfx_result_files *files);
#endif
