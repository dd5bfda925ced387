/* Files of a network's outputs on one picture: what they hold together, and how one is opened with
 * the picture's georeference on the grid of the output's pixels. */
#ifndef RFX_RFEXEC_OUTPUT_OUTPUT_FILES_H
#define RFX_RFEXEC_OUTPUT_OUTPUT_FILES_H

#include "rfexec/output/georeferenced.h"
#include "rfexec/output/output_stream.h"

struct rfx_output_files {
    const struct rfx_graph *graph;
    const struct rfx_geo_source *source; /* of the picture; NULL: it is none of a file */
    bool as_stored;                      /* the picture is not turned by its orientation */
    const char *no_data;                 /* for files that say where they lie; NULL: none */
    struct rfx_memory *mem;              /* that the files use; NULL: the graph's */
};

/* What files hold while the network runs. Zero, then each is added. */
struct rfx_output_files_bytes {
    size_t bytes;     /* of those added */
    bool has_library; /* one of them counts libtiff */
    bool placed;      /* one of them says where it lies */
};

/* Adds that of output k. */
void rfx_output_files_add(struct rfx_output_files_bytes *sum, const struct rfx_output_files *files,
                          int k, const struct rfx_output_format *format);

/* Of all that were added, with their georeferences. */
size_t rfx_output_files_sum(const struct rfx_output_files_bytes *sum,
                            const struct rfx_output_files *files);

/* Opens that of output k. Statuses of rfx_georeferenced, whose `words` are for the user, and of
 * rfx_output_stream_open. */
RFX_NODISCARD enum rfx_status rfx_output_files_open(const struct rfx_output_files *files, int k,
                                                    const char *path,
                                                    const struct rfx_output_format *format,
                                                    struct rfx_output_stream **out,
                                                    char words[RFX_GEOREFERENCED_WORDS],
                                                    struct rfx_error *err);
#endif
