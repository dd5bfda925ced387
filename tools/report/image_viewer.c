/* Writes tiles, answers and the page; see image_viewer.h. */
#include "tools/report/image_viewer.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/descriptor.h"
#include "rfexec/answers/boxes.h"
#include "rfexec/output/georeferenced.h"
#include "rfexec/output/name_list.h"
#include "rfexec/output/output_file.h"
#include "rfexec/output/output_folder.h"
#include "rfexec/output/samples.h"
#include "tools/cli/command.h"
#include "tools/report/tile_pyramid.h"

extern const char rfx_viewer_page[]; /* viewer_page.html */

/* TEXT_BYTES: of a file's text that is written at a time. PIECE: the longest formatted piece. */
enum { TEXT_BYTES = 32 * 1024, PIECE = 512 };

struct rfx_image_viewer {
    struct rfx_memory *mem;
    const struct rfx_cli_run_options *options;
    const struct rfx_cli_job *job;
    char *path; /* of --viewer, without '/' at its end */
    struct rfx_output_folder *folder;
    struct rfx_tile_pyramid *image, *map; /* map NULL: none is shown */
    unsigned char *row;                   /* [w, 3] */
    /* The file that is written now. After a failure nothing more is written. */
    char name[32];
    char text[TEXT_BYTES];
    size_t used;
    enum rfx_status status;
    struct rfx_error err;
};

/* The answers that are drawn, and the name of their script without its end. */
static const struct drawn {
    int answer;
    const char *name;
} drawn[] = {{RFX_CLI_REGIONS, "regions"}, {RFX_CLI_POINTS, "points"}, {RFX_CLI_BOXES, "boxes"}};
enum { DRAWN = sizeof drawn / sizeof drawn[0] };

/* Returns the file that has an answer's GeoJSON. NULL: the answer is not asked for, or is one of
 * boxes, which are in memory. */
static const char *geojson_of(const struct rfx_cli_run_options *options, int answer) {
    const struct rfx_cli_answer_options *asked = &options->output.answer;
    if (answer == RFX_CLI_REGIONS) return asked->regions;
    return answer == RFX_CLI_POINTS ? asked->points : NULL;
}

int rfx_image_viewer_check(const struct rfx_cli_run_options *options) {
    for (int i = 0; i < DRAWN; ++i) {
        const char *path = geojson_of(options, drawn[i].answer);
        const char *end = path != NULL ? strrchr(path, '.') : NULL;
        if (path == NULL) continue;
        if (end != NULL && strcmp(end, ".geojson") == 0 && rfx_output_file_is_regular(path))
            continue;
        rfx_cli_message("--viewer draws the %s of a file .geojson: --%s '%s' is none",
                        drawn[i].name, drawn[i].name, path);
        return RFX_EXIT_USAGE;
    }
    return RFX_EXIT_DONE;
}

size_t rfx_image_viewer_bytes(const struct rfx_tensor *input, bool mapped) {
    enum { FOLDER_BYTES = 8192 }; /* of the folder, and of two paths */
    return sizeof(struct rfx_image_viewer) + FOLDER_BYTES + 3 * (size_t)input->w +
           rfx_tile_pyramid_bytes(input->h, input->w, 3) +
           (mapped ? rfx_tile_pyramid_bytes(input->h, input->w, 4) : 0);
}

static const struct rfx_tensor *input_of(const struct rfx_image_viewer *v) {
    return &v->job->graph->nodes[v->job->graph->input].out;
}

static enum rfx_status open_all(struct rfx_image_viewer *v, bool mapped, struct rfx_error *err) {
    const struct rfx_tensor *input = input_of(v);
    const char *path = v->options->report.viewer;
    size_t row_bytes = 3 * (size_t)input->w;
    v->path = rfx_memory_strdup(v->mem, path);
    if (v->path == NULL) return rfx_memory_fail(v->mem, "viewer", strlen(path) + 1, err);
    for (size_t n = strlen(path); n > 1 && v->path[n - 1] == '/'; --n) v->path[n - 1] = '\0';
    v->row = rfx_memory_alloc(v->mem, row_bytes);
    if (v->row == NULL) return rfx_memory_fail(v->mem, "viewer", row_bytes, err);
    enum rfx_status status = rfx_output_folder_open(v->mem, v->path, &v->folder, err);
    if (status == RFX_OK)
        status = rfx_tile_pyramid_open(v->mem, v->folder, "image", v->path, input->h, input->w, 3,
                                       &v->image, err);
    if (status == RFX_OK && mapped)
        status = rfx_tile_pyramid_open(v->mem, v->folder, "map", v->path, input->h, input->w, 4,
                                       &v->map, err);
    return status;
}

enum rfx_status rfx_image_viewer_open(const struct rfx_cli_run_options *options,
                                      const struct rfx_cli_job *job, bool mapped,
                                      struct rfx_image_viewer **out, struct rfx_error *err) {
    struct rfx_image_viewer *v = rfx_memory_calloc(job->mem, 1, sizeof *v);
    if (v == NULL) return rfx_memory_fail(job->mem, "viewer", sizeof *v, err);
    v->mem = job->mem;
    v->options = options;
    v->job = job;
    enum rfx_status status = open_all(v, mapped, err);
    if (status == RFX_OK)
        *out = v;
    else
        rfx_image_viewer_free(v);
    return status;
}

void rfx_image_viewer_free(struct rfx_image_viewer *v) {
    if (v == NULL) return;
    rfx_tile_pyramid_free(v->image);
    rfx_tile_pyramid_free(v->map);
    rfx_output_folder_free(v->folder);
    rfx_memory_release(v->mem, v->row);
    rfx_memory_release(v->mem, v->path);
    rfx_memory_release(v->mem, v);
}

const char *rfx_image_viewer_path(const struct rfx_image_viewer *v) {
    return v->path;
}

enum rfx_status rfx_image_viewer_image(struct rfx_image_viewer *v, const float *colours,
                                       struct rfx_error *err) {
    const struct rfx_value_range all = {0.0, 255.0};
    rfx_samples_of(RFX_TYPE_FLOAT32, colours, 3 * input_of(v)->w, all, 8, v->row);
    return rfx_tile_pyramid_put(v->image, v->row, err);
}

enum rfx_status rfx_image_viewer_map(struct rfx_image_viewer *v, unsigned char *rgba,
                                     struct rfx_error *err) {
    return rfx_tile_pyramid_put(v->map, rgba, err);
}

/* Text files of the folder. */

static void flush(struct rfx_image_viewer *v) {
    if (v->status == RFX_OK && v->used > 0)
        v->status = rfx_output_folder_append(v->folder, v->name, v->text, v->used, &v->err);
    v->used = 0;
}

static void begin(struct rfx_image_viewer *v, const char *name, const char *end) {
    flush(v);
    (void)snprintf(v->name, sizeof v->name, "%s%s", name, end);
}

static void put_bytes(struct rfx_image_viewer *v, const char *from, size_t bytes) {
    while (bytes > 0) {
        size_t room = TEXT_BYTES - v->used, n = bytes < room ? bytes : room;
        memcpy(v->text + v->used, from, n);
        v->used += n;
        from += n;
        bytes -= n;
        if (v->used == TEXT_BYTES) flush(v);
    }
}

static void put(struct rfx_image_viewer *v, const char *format, ...) RFX_PRINTF(2, 3);

/* Adds formatted text of less than PIECE bytes. */
static void put(struct rfx_image_viewer *v, const char *format, ...) {
    char piece[PIECE];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    put_bytes(v, piece, n < 0 ? 0 : n < PIECE ? (size_t)n : PIECE - 1);
}

/* Adds a text as a string of JSON. */
static void put_string(struct rfx_image_viewer *v, const char *text) {
    put_bytes(v, "\"", 1);
    for (const char *p = text; *p != '\0'; ++p) {
        if (*p == '"' || *p == '\\') put_bytes(v, "\\", 1);
        put_bytes(v, (unsigned char)*p < ' ' ? " " : p, 1);
    }
    put_bytes(v, "\"", 1);
}

static void put_affine(struct rfx_image_viewer *v, const struct rfx_geo_affine *a) {
    put(v, "[%.17g,%.17g,%.17g,%.17g,%.17g,%.17g]", a->x[0], a->x[1], a->x[2], a->y[0], a->y[1],
        a->y[2]);
}

/* Places. */

/* Where pixels lie in the picture's coordinate system. */
struct map_place {
    bool known, metric;           /* metric: coordinates are metres */
    struct rfx_geo_affine affine; /* from corners of pixels to coordinates */
    double pixel_um[2];           /* sides of a pixel under a microscope; 0: not known */
};

/* Finds the place of the pixels of output k, or of the input if k is -1. */
static enum rfx_status find_map(const struct rfx_image_viewer *v, int k, struct map_place *place,
                                struct rfx_error *err) {
    struct rfx_georeference geo = {.mem = v->mem};
    char words[RFX_GEOREFERENCED_WORDS];
    *place = (struct map_place){.known = false};
    enum rfx_status status = rfx_georeferenced(v->mem, v->job->graph, k, &v->job->geo,
                                               v->options->input.no_orient, &geo, words, err);
    if (status != RFX_OK) return status;
    place->known = rfx_georeference_affine(&geo, &place->affine);
    place->metric = place->known && rfx_georeference_is_metric(&geo);
    memcpy(place->pixel_um, geo.pixel_um, sizeof geo.pixel_um);
    rfx_georeference_release(&geo);
    return RFX_OK;
}

/* Finds the transform from the input's pixels to the coordinates in the file of an answer in output
 * k (answer_text.c). If the place of the output's pixels is not known, they are spread evenly, as
 * in the overlay. */
static enum rfx_status find_coordinates(const struct rfx_image_viewer *v, int k,
                                        struct rfx_geo_affine *affine, struct rfx_error *err) {
    const struct rfx_graph *graph = v->job->graph;
    const char *asked = v->options->output.answer.coordinates;
    const struct rfx_tensor *map = &graph->nodes[graph->outputs[k].node].out, *input = input_of(v);
    struct rfx_answer_place place, whole;
    struct map_place of_map, of_input;
    enum rfx_status status = find_map(v, k, &of_map, err);
    if (status == RFX_OK) status = find_map(v, -1, &of_input, err);
    if (status == RFX_OK) status = rfx_output_place(graph, k, &v->job->geo, &place, err);
    if (status == RFX_OK) status = rfx_output_place(graph, -1, &v->job->geo, &whole, err);
    if (status != RFX_OK) return status;
    if (of_map.known && of_input.known && (asked == NULL || strcmp(asked, "pixels") != 0))
        *affine = of_input.affine;
    else if (place.known && whole.known)
        *affine = whole.cell;
    else
        *affine = (struct rfx_geo_affine){{(double)map->w / (double)input->w, 0.0, 0.0},
                                          {0.0, (double)map->h / (double)input->h, 0.0}};
    return RFX_OK;
}

/* Answers. */

static enum rfx_status copy_file(struct rfx_image_viewer *v, const char *path,
                                 struct rfx_error *err) {
    char piece[4096];
    size_t n;
    FILE *file = rfx_descriptor_stream(path);
    if (file == NULL)
        return rfx_fail(err, RFX_STATUS_IO, "%s: cannot be read for --viewer: %s", path,
                        strerror(errno));
    while ((n = fread(piece, 1, sizeof piece, file)) > 0) put_bytes(v, piece, n);
    enum rfx_status status = RFX_OK;
    if (ferror(file) != 0)
        status = rfx_fail(err, RFX_STATUS_IO, "%s: reading it for --viewer failed", path);
    (void)fclose(file);
    return status;
}

/* Returns whether a box can be drawn, and its numbers written in JSON. */
static bool is_finite(const struct rfx_box *box) {
    for (int k = 0; k < 4; ++k)
        if (!isfinite(box->corner[k])) return false;
    return isfinite(box->score);
}

static void put_box(struct rfx_image_viewer *v, const struct rfx_box *box, const char *name) {
    static const int around[5][2] = {{0, 1}, {2, 1}, {2, 3}, {0, 3}, {0, 1}};
    put(v, "\n{\"type\":\"Feature\",\"geometry\":{\"type\":\"Polygon\",\"coordinates\":[[");
    for (int k = 0; k < 5; ++k)
        put(v, "%s[%.9g,%.9g]", k > 0 ? "," : "", (double)box->corner[around[k][0]],
            (double)box->corner[around[k][1]]);
    put(v, "]]},\"properties\":{\"label\":%d,\"score\":%.9g", (int)box->label, (double)box->score);
    if (name != NULL) {
        put(v, ",\"classification\":{\"name\":");
        put_string(v, name);
        put(v, "}");
    }
    put(v, "}}");
}

static void put_boxes(struct rfx_image_viewer *v, const struct rfx_found *found) {
    bool any = false;
    put(v, "{\"type\":\"FeatureCollection\",\"features\":[");
    for (int64_t i = 0; i < found->count; ++i) {
        const struct rfx_box *box = &found->boxes[i];
        if (!is_finite(box)) continue;
        if (any) put(v, ",");
        put_box(v, box, rfx_name_at(found->names, found->n_names, box->label));
        any = true;
    }
    put(v, "\n]}\n");
}

static enum rfx_status write_answer(struct rfx_image_viewer *v, const struct drawn *what,
                                    const struct rfx_cli_answer *answer, struct rfx_error *err) {
    const char *path = geojson_of(v->options, what->answer);
    enum rfx_status status = RFX_OK;
    begin(v, what->name, ".js");
    put(v, "rfexec_answers(\"%s\", ", what->name);
    if (path != NULL)
        status = copy_file(v, path, err);
    else
        put_boxes(v, &answer->found);
    put(v, ");\n");
    flush(v);
    return status;
}

/* What the page is told. */

static void put_layer(struct rfx_image_viewer *v, const char *files, const char *title,
                      const char *shows) {
    put(v, "  {\"files\": \"%s\", \"title\": \"%s\", \"shows\": ", files, title);
    put_string(v, shows);
    put(v, "}");
}

static enum rfx_status put_places(struct rfx_image_viewer *v, struct rfx_error *err) {
    struct map_place place;
    double metres[2];
    enum rfx_status status = find_map(v, -1, &place, err);
    if (status != RFX_OK) return status;
    put(v, "\"map\": ");
    if (place.known)
        put_affine(v, &place.affine);
    else
        put(v, "null");
    for (int axis = 0; axis < 2; ++axis)
        metres[axis] = place.metric ? hypot(place.affine.x[axis], place.affine.y[axis])
                                    : place.pixel_um[axis] * 1e-6;
    if (metres[0] > 0.0 && metres[1] > 0.0)
        put(v, ",\n\"metres\": [%.9g, %.9g],\n", metres[0], metres[1]);
    else
        put(v, ",\n\"metres\": null,\n");
    return RFX_OK;
}

static enum rfx_status put_answers(struct rfx_image_viewer *v,
                                   const struct rfx_cli_answers *answers, struct rfx_error *err) {
    const struct rfx_cli_answer_options *asked = &v->options->output.answer;
    struct rfx_geo_affine affine = {{1.0, 0.0, 0.0}, {0.0, 1.0, 0.0}};
    bool any = false;
    put(v, "\"answers\": [");
    for (int i = 0; i < DRAWN; ++i) {
        const struct rfx_cli_answer *answer = &answers->items[drawn[i].answer];
        if (answer->stream == NULL) continue;
        bool boxes = drawn[i].answer == RFX_CLI_BOXES;
        enum rfx_status status = boxes ? RFX_OK : find_coordinates(v, answer->output, &affine, err);
        if (status != RFX_OK) return status;
        /* labels from 0 on get the colours of labels from 1 on, as in the overlay */
        bool from_0 = boxes || asked->thresholds.n > 0 || asked->all_labels;
        put(v, "%s\n  {\"file\": \"%s\", \"count\": %lld, \"first\": %d, \"coordinates\": ",
            any ? "," : "", drawn[i].name, (long long)answer->found.count, from_0 ? 0 : 1);
        if (boxes)
            put(v, "null");
        else
            put_affine(v, &affine);
        put(v, "}");
        any = true;
    }
    put(v, "]\n");
    return RFX_OK;
}

static enum rfx_status write_view(struct rfx_image_viewer *v, const struct rfx_cli_answers *answers,
                                  const char *shows, struct rfx_error *err) {
    const struct rfx_tensor *input = input_of(v);
    begin(v, "view", ".js");
    put(v, "const rfexec_view = {\n\"title\": ");
    put_string(v, v->options->words.shown[1]);
    put(v,
        ",\n\"width\": %lld,\n\"height\": %lld,\n\"tile\": %d,\n\"levels\": %d,\n\"layers\": [\n",
        (long long)input->w, (long long)input->h, RFX_TILE_SIDE,
        rfx_tile_pyramid_levels(input->h, input->w));
    put_layer(v, "image", "image", v->options->words.shown[1]);
    if (v->map != NULL) {
        put(v, ",\n");
        put_layer(v, "map", "output", shows);
    }
    put(v, "],\n");
    enum rfx_status status = put_places(v, err);
    if (status == RFX_OK) status = put_answers(v, answers, err);
    put(v, "};\n");
    flush(v);
    return status;
}

enum rfx_status rfx_image_viewer_commit(struct rfx_image_viewer *v,
                                        const struct rfx_cli_answers *answers, const char *shows,
                                        struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < DRAWN && status == RFX_OK; ++i) {
        const struct rfx_cli_answer *answer = &answers->items[drawn[i].answer];
        if (answer->stream != NULL) status = write_answer(v, &drawn[i], answer, err);
    }
    if (status == RFX_OK) status = write_view(v, answers, shows, err);
    if (status != RFX_OK) return status;
    begin(v, "index", ".html");
    put_bytes(v, rfx_viewer_page, strlen(rfx_viewer_page));
    flush(v);
    if (v->status != RFX_OK) return rfx_fail(err, v->status, "%s", v->err.text);
    return rfx_output_folder_commit(v->folder, err);
}
