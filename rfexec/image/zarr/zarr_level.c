/* From the folder's metadata to the array that is read. */
#include "rfexec/image/zarr/zarr_level.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rfexec/image/zarr/zarr_folder.h"

/* The metadata of one folder. */
struct node {
    int folder, format; /* format 0: none */
    json_t *array;      /* of an array, else NULL */
    json_t *attributes; /* of format 2: the file; of 3: in `array` or `group` */
    json_t *group;      /* of format 3 */
};

static void close_node(struct node *node) {
    json_decref(node->array);
    json_decref(node->group);
    json_decref(node->attributes);
    if (node->folder >= 0) (void)close(node->folder);
    *node = (struct node){.folder = -1};
}

/* Reads what is there; node->folder is open. */
static enum rfx_status read_node(struct rfx_memory *mem, struct node *node, size_t *held,
                                 struct rfx_error *err) {
    json_t *document = NULL;
    enum rfx_status status =
        rfx_zarr_file_json(mem, node->folder, "zarr.json", &document, held, err);
    if (status != RFX_OK) return status;
    if (document != NULL) {
        const char *type = json_string_value(json_object_get(document, "node_type"));
        bool is_array = type != NULL && strcmp(type, "array") == 0;
        *(is_array ? &node->array : &node->group) = document;
        node->attributes = json_incref(json_object_get(document, "attributes"));
        node->format = 3;
        return RFX_OK;
    }
    status = rfx_zarr_file_json(mem, node->folder, ".zarray", &node->array, held, err);
    if (status == RFX_OK)
        status = rfx_zarr_file_json(mem, node->folder, ".zattrs", &node->attributes, held, err);
    node->format = 2;
    return status;
}

/* The first picture of a group, NULL: it has none. */
static const json_t *find_multiscale(const struct node *node) {
    const json_t *ome = json_object_get(node->attributes, "ome");
    return json_array_get(json_object_get(ome != NULL ? ome : node->attributes, "multiscales"), 0);
}

/* Names of the axes as OME-Zarr has had them: objects, or strings, or none. Points *names into the
 * document; NULL: none. */
static enum rfx_status read_axes(const json_t *multiscale, int rank,
                                 const char *names[RFX_ZARR_MAX_RANK], struct rfx_error *err) {
    static const char *const first[] = {"t", "c", "z", "y", "x"};
    const json_t *axes = json_object_get(multiscale, "axes");
    if (axes == NULL && rank == 5) memcpy(names, first, sizeof first);
    if (axes == NULL && rank == 5) return RFX_OK;
    if (json_array_size(axes) != (size_t)rank)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%zu axes of OME-Zarr, and %d of the array",
                        json_array_size(axes), rank);
    for (int i = 0; i < rank; i++) {
        const json_t *axis = json_array_get(axes, (size_t)i);
        names[i] = json_string_value(json_is_object(axis) ? json_object_get(axis, "name") : axis);
        if (names[i] == NULL)
            return rfx_fail(err, RFX_STATUS_MALFORMED, "axis %d of OME-Zarr has no name", i);
    }
    return RFX_OK;
}

static enum rfx_status read_layout(const struct node *node, const json_t *multiscale,
                                   struct rfx_zarr_layout *layout, struct rfx_error *err) {
    const char *names[RFX_ZARR_MAX_RANK];
    size_t rank = json_array_size(json_object_get(node->array, "shape"));
    enum rfx_status status = RFX_OK;
    bool named = multiscale != NULL && rank >= 1 && rank <= RFX_ZARR_MAX_RANK;
    if (named) status = read_axes(multiscale, (int)rank, names, err);
    if (status != RFX_OK) return status;
    return rfx_zarr_layout_read(node->array, node->format, node->attributes, named ? names : NULL,
                                layout, err);
}

static enum rfx_status fail_level(const char *what, int64_t number, int levels,
                                  struct rfx_error *err) {
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                    "level %" PRId64 " of %d%s ('rfexec info' lists them)", number, levels, what);
}

/* The level of a group: its node, and its layout by the group's words. */
static enum rfx_status enter_level(struct rfx_memory *mem, const struct node *group, int64_t number,
                                   struct node *level, struct rfx_zarr_level *out,
                                   struct rfx_error *err) {
    const json_t *multiscale = find_multiscale(group);
    const json_t *levels = json_object_get(multiscale, "datasets");
    out->levels = (int)json_array_size(levels);
    if (multiscale == NULL)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "a Zarr group without OME-Zarr's multiscales: name one of the arrays or "
                        "pictures in it");
    if (number >= out->levels) return fail_level("", number, out->levels, err);
    const char *path =
        json_string_value(json_object_get(json_array_get(levels, (size_t)number), "path"));
    if (path == NULL)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "level %" PRId64 " has no path", number);
    enum rfx_status status = rfx_zarr_folder_enter(group->folder, path, &level->folder, err);
    if (status == RFX_OK) status = read_node(mem, level, &out->held, err);
    if (status == RFX_OK && level->array == NULL)
        status = rfx_fail(err, RFX_STATUS_MALFORMED, "no array is there");
    if (status == RFX_OK) status = read_layout(level, multiscale, &out->layout, err);
    return status == RFX_OK
               ? status
               : rfx_fail_within(err, status, "level %" PRId64 " in '%.100s'", number, path);
}

static enum rfx_status open_level(struct rfx_memory *mem, const char *name, int64_t number,
                                  struct node *root, struct rfx_zarr_level *out,
                                  struct rfx_error *err) {
    struct node level = {.folder = -1};
    enum rfx_status status = read_node(mem, root, &out->held, err);
    if (status != RFX_OK) return rfx_fail_within(err, status, "%s", name);
    if (root->array != NULL) {
        out->levels = 1;
        status = number > 0 ? fail_level(", an array by itself", number, 1, err)
                            : read_layout(root, NULL, &out->layout, err);
        out->folder = root->folder;
        if (status == RFX_OK) root->folder = -1;
    } else {
        status = enter_level(mem, root, number, &level, out, err);
        out->folder = level.folder;
        if (status == RFX_OK) level.folder = -1;
    }
    close_node(&level);
    return status == RFX_OK ? status : rfx_fail_within(err, status, "%s", name);
}

enum rfx_status rfx_zarr_level_open(struct rfx_memory *mem, const char *name, int64_t number,
                                    struct rfx_zarr_level *out, struct rfx_error *err) {
    struct node root = {.folder = -1};
    struct rfx_zarr_level level = {.folder = -1};
    enum rfx_status status = rfx_zarr_folder_open(name, &root.folder, err);
    if (status == RFX_OK) status = open_level(mem, name, number, &root, &level, err);
    if (status != RFX_OK) level.folder = -1;
    *out = level;
    close_node(&root);
    return status;
}
