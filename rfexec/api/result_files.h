/* Private: the files of rfx_run_options.files: read and checked when a job is opened, opened before
 * its run, completed after it. */
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
    struct rfx_geo_source geo; /* of the picture */
};

/* Reads the options' files. INVALID_ARGUMENT: a member out of its range, an output that is not
 * there or has a file already, a kind that cannot hold it. All memory comes from `mem`. To be
 * freed. */
RFX_NODISCARD enum rfx_status rfx_result_files_read(const struct rfx_run_options *options,
                                                    const struct rfx_graph *graph,
                                                    struct rfx_memory *mem,
                                                    struct rfx_result_files *out,
                                                    struct rfx_error *err);

/* Bytes that writing them holds while the network runs. */
size_t rfx_result_files_bytes(const struct rfx_result_files *files, const struct rfx_graph *graph);

/* Opens all of them, without their names. Statuses of rfx_output_stream_open. */
RFX_NODISCARD enum rfx_status rfx_result_files_open(struct rfx_result_files *files,
                                                    const struct rfx_graph *graph, bool as_stored,
                                                    struct rfx_error *err);

/* The stream of output k, or NULL. */
struct rfx_output_stream *rfx_result_files_stream(const struct rfx_result_files *files, int k);

/* Completes them and gives them their names. stop: asked until the first has its name; NULL:
 * nobody.
 */
RFX_NODISCARD enum rfx_status rfx_result_files_commit(struct rfx_result_files *files,
                                                      int (*stop)(void *user), void *user,
                                                      struct rfx_error *err);

/* Closes them; what is not complete is removed. */
void rfx_result_files_close(struct rfx_result_files *files);

void rfx_result_files_free(struct rfx_result_files *files);
#endif
