/* A walk through the text of a GeoJSON file: objects and lists are passed here, and jansson reads
 * each name, text, number and position; see areas_file.h. */
#include "rfexec/answers/areas_file.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "layers/core/descriptor.h"
#include "rfexec/output/text_read.h"

enum {
    WORD = 32,       /* characters of a type or a member's name; longer ones are not known */
    MOST_DEPTH = 64, /* of objects and lists in members that are ignored */
    WGS84 = 4326
};
#define MOST_BYTES ((size_t)INT32_MAX)

/* Place in the text, and what is read. */
struct reader {
    struct rfx_area_list *list;
    const struct rfx_answer_text *where;
    char *text; /* names of areas are moved to its beginning, over what was read */
    size_t length, at, named;
    int64_t line, feature;           /* from 1 */
    int64_t polygon, ring, position; /* in the feature, from 1 */
    struct rfx_error *err;
};

/* What an upper bound of the memory follows from. */
struct signs {
    size_t bytes, braces, brackets;
};

static void count_signs(struct signs *signs, const char *text, size_t n) {
    signs->bytes += n;
    for (size_t i = 0; i < n; i++) {
        signs->braces += text[i] == '{';
        signs->brackets += text[i] == '[';
    }
}

/* Each area has an object of its own, and each edge a position, which is a list. */
static size_t bytes_of(const struct signs *signs) {
    return signs->bytes + RFX_TEXT_END + signs->braces * sizeof(struct rfx_area_title) +
           rfx_areas_bytes(signs->braces, signs->brackets);
}

size_t rfx_area_list_bytes(const char *path, size_t *areas) {
    char piece[4096];
    struct signs signs = {0};
    struct stat at;
    size_t n;
    *areas = 0;
    if (stat(path, &at) != 0 || !S_ISREG(at.st_mode)) return 0; /* reading the areas will fail */
    FILE *file = rfx_descriptor_stream(path);
    if (file == NULL) return 0;
    while (signs.bytes <= MOST_BYTES && (n = fread(piece, 1, sizeof piece, file)) > 0)
        count_signs(&signs, piece, n);
    (void)fclose(file);
    *areas = signs.braces;
    return bytes_of(&signs);
}

static enum rfx_status malformed(const struct reader *r, const char *what) {
    return rfx_fail(r->err, RFX_STATUS_MALFORMED, "%s", what);
}

/* ---- Text ---- */

/* Goes to the next character that is no space and returns it; 0: the text ends. */
static char peek(struct reader *r) {
    for (; r->at < r->length && strchr(" \t\r\n", r->text[r->at]) != NULL; r->at++) {
        if (r->text[r->at] == '\0') break;
        r->line += r->text[r->at] == '\n';
    }
    return r->at < r->length ? r->text[r->at] : '\0';
}

static enum rfx_status pass(struct reader *r, char wanted) {
    if (peek(r) != wanted) return rfx_fail(r->err, RFX_STATUS_MALFORMED, "'%c' is missing", wanted);
    r->at++;
    return RFX_OK;
}

/* Reads a value with all that is in it. */
static enum rfx_status read_value(struct reader *r, size_t flags, json_t **out) {
    json_error_t where;
    flags |= JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES;
    (void)peek(r);
    json_t *value = json_loadb(r->text + r->at, r->length - r->at, flags, &where);
    if (value == NULL && json_error_code(&where) == json_error_out_of_memory)
        return rfx_fail(r->err, RFX_STATUS_OUT_OF_MEMORY, "no memory");
    if (value == NULL) {
        r->line += where.line - 1;
        return malformed(r, where.text);
    }
    for (int i = 0; i < where.position; i++) r->line += r->text[r->at++] == '\n';
    *out = value;
    return RFX_OK;
}

/* Goes to the next of the items before `close`, of which n came before. */
static enum rfx_status next_item(struct reader *r, char close, int64_t *n, bool *more) {
    *more = peek(r) != close;
    if (!*more) {
        r->at++;
        return RFX_OK;
    }
    enum rfx_status status = (*n)++ > 0 ? pass(r, ',') : RFX_OK;
    return status == RFX_OK && peek(r) == close ? malformed(r, "there is a comma too many")
                                                : status;
}

/* Goes to the value of the next member of an object. `key` is cut to WORD - 1 characters. */
static enum rfx_status next_member(struct reader *r, int64_t *n, bool *more, char key[WORD]) {
    json_t *name = NULL;
    enum rfx_status status = next_item(r, '}', n, more);
    if (status != RFX_OK || !*more) return status;
    if (peek(r) != '"') return malformed(r, "the name of a member is missing");
    status = read_value(r, 0, &name);
    if (status != RFX_OK) return status;
    (void)snprintf(key, WORD, "%s", json_string_value(name));
    json_decref(name);
    return pass(r, ':');
}

typedef enum rfx_status read_item(struct reader *r);

/* Reads a list of one item or more. */
static enum rfx_status read_list(struct reader *r, read_item *read, const char *if_empty) {
    int64_t n = 0;
    bool more = true;
    enum rfx_status status = pass(r, '[');
    while (status == RFX_OK && more) {
        status = next_item(r, ']', &n, &more);
        if (status == RFX_OK && more) status = read(r);
    }
    return status == RFX_OK && n == 0 ? malformed(r, if_empty) : status;
}

/* Reads the value of a member; needed: it is the one that the object must have. */
typedef enum rfx_status read_member(struct reader *r, const char *key, bool needed, void *user);

/* Reads the members of an object, one of which, `needed`, must be there once. */
static enum rfx_status read_object(struct reader *r, const char *what, const char *needed,
                                   read_member *read, void *user) {
    char key[WORD];
    int64_t n = 0, found = 0;
    bool more = true;
    enum rfx_status status = pass(r, '{');
    while (status == RFX_OK && more) {
        status = next_member(r, &n, &more, key);
        if (status != RFX_OK || !more) continue;
        bool is_needed = strcmp(key, needed) == 0;
        if (is_needed && ++found > 1)
            return rfx_fail(r->err, RFX_STATUS_MALFORMED, "%s has two members '%s'", what, needed);
        status = read(r, key, is_needed, user);
    }
    if (status != RFX_OK || found > 0) return status;
    return rfx_fail(r->err, RFX_STATUS_MALFORMED, "%s has no %s", what, needed);
}

static enum rfx_status skip(struct reader *r, int depth) {
    char open = peek(r), key[WORD];
    int64_t n = 0;
    bool more = open == '{' || open == '[';
    json_t *value = NULL;
    enum rfx_status status = RFX_OK;
    if (!more) {
        status = read_value(r, 0, &value);
        json_decref(value);
        return status;
    }
    if (depth == MOST_DEPTH) return malformed(r, "objects and lists are nested too deeply");
    r->at++;
    while (more) {
        status = open == '{' ? next_member(r, &n, &more, key) : next_item(r, ']', &n, &more);
        if (status == RFX_OK && more) status = skip(r, depth + 1);
        if (status != RFX_OK) return status;
    }
    return RFX_OK;
}

/* Reads the member "type" of the object that comes next, and goes back to the object. */
static enum rfx_status find_type(struct reader *r, const char *what, char type[WORD]) {
    char key[WORD];
    int64_t n = 0, types = 0;
    bool more = true;
    if (peek(r) != '{') return rfx_fail(r->err, RFX_STATUS_MALFORMED, "%s is no JSON object", what);
    const size_t at = r->at;
    const int64_t line = r->line;
    r->at++;
    while (more && types == 0) {
        json_t *value = NULL;
        enum rfx_status status = next_member(r, &n, &more, key);
        if (status == RFX_OK && more && strcmp(key, "type") != 0) status = skip(r, 0);
        if (status == RFX_OK && more && strcmp(key, "type") == 0) {
            types++;
            status = read_value(r, 0, &value);
            const char *word = json_string_value(value);
            (void)snprintf(type, WORD, "%s", word != NULL ? word : "no text");
            json_decref(value);
        }
        if (status != RFX_OK) return status;
    }
    if (types == 0) return rfx_fail(r->err, RFX_STATUS_MALFORMED, "%s has no type", what);
    r->at = at;
    r->line = line;
    return RFX_OK;
}

/* ---- Geometries ---- */

static enum rfx_status ring_fault(const struct reader *r, const char *what) {
    return rfx_fail(r->err, RFX_STATUS_MALFORMED,
                    "coordinates: polygon %" PRId64 ", ring %" PRId64 ": %s", r->polygon, r->ring,
                    what);
}

static enum rfx_status position_fault(const struct reader *r) {
    char what[80];
    (void)snprintf(what, sizeof what, "position %" PRId64 " is no list of two or more numbers",
                   r->position);
    return ring_fault(r, what);
}

static enum rfx_status read_position(struct reader *r, double at[2]) {
    json_t *value = NULL;
    if (peek(r) != '[') return position_fault(r);
    enum rfx_status status = read_value(r, JSON_DECODE_INT_AS_REAL, &value);
    bool numbers = json_array_size(value) >= 2;
    for (size_t i = 0; i < json_array_size(value); i++)
        numbers = numbers && json_is_real(json_array_get(value, i));
    for (size_t i = 0; i < 2 && numbers; i++) at[i] = json_real_value(json_array_get(value, i));
    json_decref(value);
    if (status == RFX_OK && !numbers) status = position_fault(r);
    return status;
}

/* Finds a position in the map, in units of areas.h. */
static enum rfx_status place(const struct reader *r, const double at[2], int64_t out[2]) {
    const struct rfx_geo_affine *a = &r->where->affine;
    const double det = a->x[0] * a->y[1] - a->x[1] * a->y[0];
    const double x = at[0] - a->x[2], y = at[1] - a->y[2];
    const double pixel[2] = {(a->y[1] * x - a->x[1] * y) / det, (a->x[0] * y - a->y[0] * x) / det};
    const double reach = (double)(INT64_C(1) << RFX_AREA_REACH_BITS);
    for (int i = 0; i < 2; i++) {
        if (!(fabs(pixel[i]) <= reach))
            return rfx_fail(r->err, RFX_STATUS_MALFORMED,
                            "coordinates: polygon %" PRId64 ", ring %" PRId64 ": position %" PRId64
                            ", [%g, %g], is more than 2^%d pixels away",
                            r->polygon, r->ring, r->position, at[0], at[1], RFX_AREA_REACH_BITS);
        out[i] = (int64_t)floor(pixel[i] * (double)(INT64_C(1) << RFX_AREA_BITS) + 0.5);
    }
    return RFX_OK;
}

static enum rfx_status read_ring(struct reader *r) {
    double first[2] = {0, 0}, at[2] = {0, 0};
    int64_t n = 0, corners[2][2] = {{0}};
    bool more = true;
    r->ring++;
    enum rfx_status status = pass(r, '[');
    while (status == RFX_OK) {
        status = next_item(r, ']', &n, &more);
        if (status != RFX_OK || !more) break;
        r->position = n;
        status = read_position(r, at);
        if (status == RFX_OK) status = place(r, at, corners[n % 2]);
        if (n == 1) memcpy(first, at, sizeof first);
        if (status == RFX_OK && n > 1)
            rfx_areas_edge(r->list->areas, corners[(n - 1) % 2], corners[n % 2]);
    }
    if (status != RFX_OK) return status;
    if (n < 4) return ring_fault(r, "it has fewer than 4 positions");
    if (first[0] == at[0] && first[1] == at[1]) return RFX_OK;
    return ring_fault(r, "it is not closed: its last position is not its first one");
}

static enum rfx_status read_polygon(struct reader *r) {
    r->polygon++;
    r->ring = 0;
    return read_list(r, read_ring, "coordinates: a polygon is empty");
}

static enum rfx_status read_coordinates(struct reader *r, const char *key, bool needed,
                                        void *several) {
    (void)key;
    if (!needed) return skip(r, 0);
    r->polygon = 0;
    rfx_areas_begin(r->list->areas);
    if (!*(bool *)several) return read_polygon(r);
    return read_list(r, read_polygon, "coordinates: they are empty");
}

static enum rfx_status read_geometry(struct reader *r) {
    char type[WORD];
    enum rfx_status status = find_type(r, "the geometry", type);
    if (status != RFX_OK) return status;
    bool several = strcmp(type, "MultiPolygon") == 0;
    if (!several && strcmp(type, "Polygon") != 0)
        return rfx_fail(r->err, RFX_STATUS_MALFORMED,
                        "the geometry is of type '%s'; areas are of type Polygon or MultiPolygon",
                        type);
    return read_object(r, "the geometry", "coordinates", read_coordinates, &several);
}

/* ---- Features ---- */

enum title { NAME, CLASSIFICATION, ID, TITLES };

/* Keeps the next value if it can be a name. */
static enum rfx_status read_name(struct reader *r, json_t **name) {
    char first = peek(r);
    if (first == '{' || first == '[') return skip(r, 0);
    json_decref(*name);
    *name = NULL;
    return read_value(r, 0, name);
}

/* Reads the names in the properties, or in their classification. */
static enum rfx_status read_properties(struct reader *r, json_t *names[TITLES], enum title which) {
    char key[WORD];
    int64_t n = 0;
    bool more = true;
    if (peek(r) != '{') return skip(r, 0);
    enum rfx_status status = pass(r, '{');
    while (status == RFX_OK && more) {
        status = next_member(r, &n, &more, key);
        if (status != RFX_OK || !more) continue;
        if (strcmp(key, "name") == 0)
            status = read_name(r, &names[which]);
        else if (which == NAME && strcmp(key, "classification") == 0)
            status = read_properties(r, names, CLASSIFICATION);
        else
            status = skip(r, 0);
    }
    return status;
}

/* Adds the title of the area that was read last. A name is no longer than its text in the file. */
static void add_title(struct reader *r, json_t *const names[TITLES]) {
    int64_t k = rfx_areas_count(r->list->areas) - 1;
    struct rfx_area_title *title = &r->list->titles[k];
    char number[24];
    *title = (struct rfx_area_title){.number = r->feature, .name = -1};
    for (int i = 0; i < TITLES && title->name < 0; i++) {
        const char *name = json_string_value(names[i]);
        if (json_is_integer(names[i])) {
            (void)snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT,
                           json_integer_value(names[i]));
            name = number;
        }
        if (name == NULL || name[0] == '\0') continue;
        title->name = (int64_t)r->named;
        memcpy(r->text + r->named, name, strlen(name) + 1);
        r->named += strlen(name) + 1;
    }
}

/* names: json_t *[TITLES]. */
static enum rfx_status read_of_feature(struct reader *r, const char *key, bool needed,
                                       void *names) {
    json_t **of = names;
    if (needed) return read_geometry(r);
    if (strcmp(key, "properties") == 0) return read_properties(r, of, NAME);
    return strcmp(key, "id") == 0 ? read_name(r, &of[ID]) : skip(r, 0);
}

static enum rfx_status read_feature(struct reader *r) {
    json_t *names[TITLES] = {NULL};
    char type[WORD];
    r->feature++;
    enum rfx_status status = find_type(r, "the feature", type);
    if (status == RFX_OK && strcmp(type, "Feature") != 0)
        return rfx_fail(r->err, RFX_STATUS_MALFORMED,
                        "the type of the feature is '%s', not Feature", type);
    if (status == RFX_OK)
        status = read_object(r, "the feature", "geometry", read_of_feature, names);
    if (status == RFX_OK) add_title(r, names);
    for (int i = 0; i < TITLES; i++) json_decref(names[i]);
    return status;
}

static enum rfx_status read_features(struct reader *r) {
    enum rfx_status status = read_list(r, read_feature, "there are no features");
    if (status == RFX_OK) r->feature = 0;
    return status;
}

/* Returns the EPSG code of a name such as "urn:ogc:def:crs:EPSG::25832"; 0: it has none. */
static int code_of(const char *name) {
    if (name == NULL) return 0;
    if (strstr(name, "CRS84") != NULL) return WGS84;
    const char *last = strrchr(name, ':');
    long code = strstr(name, "EPSG") != NULL && last != NULL ? strtol(last + 1, NULL, 10) : 0;
    return code > 0 && code <= UINT16_MAX ? (int)code : 0;
}

static enum rfx_status read_system(struct reader *r) {
    const struct rfx_answer_text *where = r->where;
    json_t *value = NULL;
    enum rfx_status status = read_value(r, 0, &value);
    const json_t *name = json_object_get(json_object_get(value, "properties"), "name");
    int code = code_of(json_string_value(name));
    json_decref(value);
    if (status != RFX_OK || code == 0) return status;
    if (!where->mapped)
        return rfx_fail(r->err, RFX_STATUS_INVALID_ARGUMENT,
                        "crs: the areas are in EPSG:%d, and coordinates are pixels", code);
    if (where->epsg == 0 || where->epsg == code) return RFX_OK;
    return rfx_fail(r->err, RFX_STATUS_INVALID_ARGUMENT,
                    "crs: the areas are in EPSG:%d, and the picture is in EPSG:%d", code,
                    where->epsg);
}

static enum rfx_status read_of_collection(struct reader *r, const char *key, bool needed,
                                          void *user) {
    (void)user;
    if (needed) return read_features(r);
    return strcmp(key, "crs") == 0 ? read_system(r) : skip(r, 0);
}

static enum rfx_status read_alone(struct reader *r) {
    json_t *const none[TITLES] = {NULL};
    r->feature++;
    enum rfx_status status = read_geometry(r);
    if (status == RFX_OK) add_title(r, none);
    return status;
}

static enum rfx_status read_root(struct reader *r) {
    char type[WORD];
    enum rfx_status status = find_type(r, "the file", type);
    if (status != RFX_OK) return status;
    if (strcmp(type, "FeatureCollection") == 0)
        status = read_object(r, "the file", "features", read_of_collection, NULL);
    else
        status = strcmp(type, "Feature") == 0 ? read_feature(r) : read_alone(r);
    if (status != RFX_OK) return status;
    (void)peek(r);
    return r->at < r->length ? malformed(r, "there is more text behind the end") : RFX_OK;
}

/* ---- Files ---- */

static enum rfx_status make_room(struct rfx_area_list *list, const struct signs *signs,
                                 const struct rfx_answer_options *options,
                                 const struct rfx_tensor *map, struct rfx_error *err) {
    struct rfx_memory *mem = list->mem;
    list->bytes = bytes_of(signs);
    if (options->most_bytes > 0 && list->bytes > options->most_bytes)
        return rfx_fail(err, RFX_STATUS_BUDGET_IMPOSSIBLE,
                        "%zu bytes are needed for %zu positions, --answer-memory is %zu",
                        list->bytes, signs->brackets, options->most_bytes);
    list->titles = rfx_memory_calloc(mem, signs->braces, sizeof *list->titles);
    if (list->titles == NULL) return rfx_memory_fail(mem, "titles", list->bytes, err);
    return rfx_areas_create(mem, map->h, map->w, signs->braces, signs->brackets, &list->areas, err);
}

/* Frees the text behind the names. */
static void keep_names(struct reader *r) {
    struct rfx_area_list *list = r->list;
    char *names = rfx_memory_realloc(list->mem, list->names, r->named + RFX_TEXT_END);
    if (names == NULL) return;
    list->names = names;
    list->bytes -= r->length - r->named;
}

/* Names the place of a failure. */
static enum rfx_status tell_place(const struct reader *r, enum rfx_status status) {
    if (r->feature > 0)
        return rfx_fail_within(r->err, status, "line %" PRId64 ", feature %" PRId64, r->line,
                               r->feature);
    return rfx_fail_within(r->err, status, "line %" PRId64, r->line);
}

enum rfx_status rfx_area_list_read(struct rfx_area_list *list, struct rfx_memory *mem,
                                   const struct rfx_answer_options *options,
                                   const struct rfx_answer_text *text, const struct rfx_tensor *map,
                                   struct rfx_error *err) {
    struct signs signs = {0};
    *list = (struct rfx_area_list){.mem = mem};
    enum rfx_status status =
        rfx_text_read(mem, options->within, "areas", MOST_BYTES, &list->names, &signs.bytes, err);
    if (status != RFX_OK) return status;
    struct reader r = {.list = list,
                       .where = text,
                       .text = list->names,
                       .length = signs.bytes,
                       .line = 1,
                       .err = err};
    signs.bytes = 0;
    count_signs(&signs, r.text, r.length);
    status = make_room(list, &signs, options, map, err);
    if (status == RFX_OK) {
        status = read_root(&r);
        if (status != RFX_OK) status = tell_place(&r, status);
    }
    if (status == RFX_OK) status = rfx_areas_end(list->areas, err);
    if (status == RFX_OK) keep_names(&r);
    if (status == RFX_OK) return RFX_OK;
    return rfx_fail_within(err, status, "areas '%.200s'", options->within);
}

const char *rfx_area_name(const struct rfx_area_list *list, int64_t k) {
    int64_t at = list->titles[k].name;
    return at < 0 ? NULL : list->names + at;
}

void rfx_area_list_release(struct rfx_area_list *list) {
    if (list->mem == NULL) return;
    rfx_areas_free(list->areas);
    rfx_memory_release(list->mem, list->titles);
    rfx_memory_release(list->mem, list->names);
    *list = (struct rfx_area_list){0};
}
