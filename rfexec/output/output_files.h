/* The files that receive a network's outputs for one picture: the memory that they take together,
 * and opening one of them with the picture's georeference, converted to the output's pixels. */
#ifndef RFX_RFEXEC_OUTPUT_OUTPUT_FILES_H
#define RFX_RFEXEC_OUTPUT_OUTPUT_FILES_H

#include "rfexec/output/georeferenced.h"
#include "rfexec/output/output_stream.h"

struct rfx_output_files {
    const struct rfx_graph *graph;
    /* georeference of the picture; NULL: the picture is no file */
    const struct rfx_geo_source *source;
    bool as_stored;         /* the picture's orientation is not applied */
    const char *no_data;    /* no-data value for georeferenced files; NULL: none */
    struct rfx_memory *mem; /* memory that the files use; NULL: the graph's */
};

/* Memory that files take while the network runs. Start with zeros and add each file. */
struct rfx_output_files_bytes {
    size_t bytes;     /* sum over the files added so far */
    bool has_library; /* libtiff's memory is included */
    bool placed;      /* one of the files is georeferenced */
};

/* Adds the memory for the file of output k. */
void rfx_output_files_add(struct rfx_output_files_bytes *sum, const struct rfx_output_files *files,
                          int k, const struct rfx_output_format *format);

/* Returns the memory of all files added, including their georeferences. */
size_t rfx_output_files_sum(const struct rfx_output_files_bytes *sum,
                            const struct rfx_output_files *files);

/* Opens the file of output k. `words` receives a warning for the user. Fails with the statuses of
 * rfx_georeferenced and rfx_output_stream_open. */
RFX_NODISCARD enum rfx_status rfx_output_files_open(const struct rfx_output_files *files, int k,
                                                    const char *path,
                                                    const struct rfx_output_format *format,
                                                    struct rfx_output_stream **out,
                                                    char words[RFX_GEOREFERENCED_WORDS],
                                                    struct rfx_error *err);
#endif
