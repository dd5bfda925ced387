/* Files of outputs; see output_files.h. */
#include "rfexec/output/output_files.h"

#include <string.h>

static const struct rfx_tensor *tensor_of(const struct rfx_output_files *files, int k) {
    return &files->graph->nodes[files->graph->outputs[k].node].out;
}

void rfx_output_files_add(struct rfx_output_files_bytes *sum, const struct rfx_output_files *files,
                          int k, const struct rfx_output_format *format) {
    struct rfx_output_format placed = *format;
    bool read = files->source != NULL && files->source->from_tiff;
    /* the georeference has the same size on every grid, except for a matrix that replaces a scale
     */
    placed.geo = files->source != NULL ? &files->source->geo : NULL;
    sum->placed = sum->placed || (placed.geo != NULL && format->kind->placed);
    sum->bytes += rfx_output_stream_bytes(&placed, tensor_of(files, k));
    if (format->kind->shared_bytes == 0) return;
    if (read || sum->has_library) sum->bytes -= format->kind->shared_bytes;
    sum->has_library = true;
}

size_t rfx_output_files_sum(const struct rfx_output_files_bytes *sum,
                            const struct rfx_output_files *files) {
    if (!sum->placed || rfx_georeference_is_empty(&files->source->geo)) return sum->bytes;
    return sum->bytes + 2 * rfx_georeference_bytes(&files->source->geo) +
           RFX_GEO_MATRIX * sizeof(double) + sizeof "nan";
}

enum rfx_status rfx_output_files_open(const struct rfx_output_files *files, int k, const char *path,
                                      const struct rfx_output_format *format,
                                      struct rfx_output_stream **out,
                                      char words[RFX_GEOREFERENCED_WORDS], struct rfx_error *err) {
    struct rfx_memory *mem = files->mem != NULL ? files->mem : files->graph->mem;
    struct rfx_output_format placed = *format;
    struct rfx_georeference geo = {.mem = mem};
    enum rfx_status status = RFX_OK;
    words[0] = '\0';
    bool map = tensor_of(files, k)->layout == RFX_LAYOUT_NHWC;
    int grid = map ? k : -1; /* boxes are in pixels of the picture */
    if (status == RFX_OK && format->kind->placed && files->source != NULL)
        status = rfx_georeferenced(mem, files->graph, grid, files->source, files->as_stored, &geo,
                                   words, err);
    if (status == RFX_OK && format->kind->placed && files->no_data != NULL) {
        geo.no_data = rfx_memory_strdup(mem, files->no_data);
        if (geo.no_data == NULL)
            status = rfx_memory_fail(mem, "no data", strlen(files->no_data) + 1, err);
    }
    placed.geo = &geo;
    if (status == RFX_OK && format->kind->found != NULL)
        status = rfx_output_place(files->graph, grid, files->source, &placed.place, err);
    if (status == RFX_OK)
        status = rfx_output_stream_open(mem, path, &placed, tensor_of(files, k), out, err);
    rfx_georeference_release(&geo);
    return status;
}
