/* What plan files are made of; see plan_file_reader.h. */
#include "tiler/plan/file/plan_file_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "layers/graph/near_names.h"

/* MALFORMED: "file: place: what". */
enum rfx_status rfx_plan_refuse(const struct rfx_plan_reader *r, const char *place,
                                const char *format, ...) {
    char what[320];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return rfx_fail(r->err, RFX_STATUS_MALFORMED, "%.100s: %s%s%s", r->name, place,
                    place[0] != '\0' ? ": " : "", what);
}

/* A value as the file has it, shortened. */
const char *rfx_plan_shown(const json_t *value, char text[48]) {
    char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    (void)snprintf(text, 48, "%.40s", dump != NULL ? dump : "?");
    void (*release)(void *);
    json_get_alloc_funcs(NULL, &release);
    release(dump);
    return text;
}

/* Refuses keys that are not in the list, which ends with NULL. */
enum rfx_status rfx_plan_check_keys(const struct rfx_plan_reader *r, const char *place,
                                    json_t *object, const char *const *keys) {
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        bool known = false;
        const char *near = NULL;
        for (int i = 0; keys[i] != NULL; i++) {
            known |= strcmp(keys[i], key) == 0;
            if (rfx_edit_distance(keys[i], key) <= 2) near = keys[i];
        }
        if (!known && near != NULL)
            return rfx_plan_refuse(r, place, "unknown key '%.40s': did you mean '%s'?", key, near);
        if (!known) return rfx_plan_refuse(r, place, "unknown key '%.40s'", key);
    }
    return RFX_OK;
}

/* An integer of [lo, hi]; the key missing: *out stays. */
enum rfx_status rfx_plan_read_count(const struct rfx_plan_reader *r, const char *place,
                                    const json_t *value, int64_t lo, int64_t hi, int64_t *out) {
    char text[48];
    if (value == NULL) return RFX_OK;
    if (!json_is_integer(value) || json_integer_value(value) < lo || json_integer_value(value) > hi)
        return rfx_plan_refuse(r, place, "%s is not a whole number from %lld to %lld",
                               rfx_plan_shown(value, text), (long long)lo, (long long)hi);
    *out = json_integer_value(value);
    return RFX_OK;
}

/* The same for a member "key" of the object at `place`. */
enum rfx_status rfx_plan_read_member(const struct rfx_plan_reader *r, const char *place,
                                     const json_t *object, const char *key, int64_t lo, int64_t hi,
                                     int64_t *out) {
    char at[RFX_PLAN_PLACE_CHARS];
    (void)snprintf(at, sizeof at, "%.40s%s%.40s", place, place[0] != '\0' ? "." : "", key);
    return rfx_plan_read_count(r, at, json_object_get(object, key), lo, hi, out);
}

enum rfx_status rfx_plan_read_flag(const struct rfx_plan_reader *r, const char *place,
                                   const json_t *object, const char *key, bool *out) {
    char text[48];
    const json_t *value = json_object_get(object, key);
    if (value == NULL) return RFX_OK;
    if (!json_is_boolean(value))
        return rfx_plan_refuse(r, place, "'%s': %s is not true or false", key,
                               rfx_plan_shown(value, text));
    *out = json_is_true(value);
    return RFX_OK;
}

/* Two counts [a, b]; the key missing: they stay. */
enum rfx_status rfx_plan_read_pair(const struct rfx_plan_reader *r, const char *place,
                                   const json_t *object, const char *key, int64_t *a, int64_t *b) {
    char text[48], at[RFX_PLAN_PLACE_CHARS];
    const json_t *value = json_object_get(object, key);
    if (value == NULL) return RFX_OK;
    (void)snprintf(at, sizeof at, "%.40s%s%.40s", place, place[0] != '\0' ? "." : "", key);
    if (!json_is_array(value) || json_array_size(value) != 2)
        return rfx_plan_refuse(r, at, "%s is not [rows, columns]", rfx_plan_shown(value, text));
    enum rfx_status status =
        rfx_plan_read_count(r, at, json_array_get(value, 0), 1, RFX_PLAN_MAX_COUNT, a);
    return status == RFX_OK
               ? rfx_plan_read_count(r, at, json_array_get(value, 1), 1, RFX_PLAN_MAX_COUNT, b)
               : status;
}

/* A tensor of the network by its name. */
enum rfx_status rfx_plan_read_tensor(const struct rfx_plan_reader *r, const char *place,
                                     const json_t *value, int *node) {
    char text[48], near[RFX_NEAR_NAMES_TEXT];
    if (!json_is_string(value))
        return rfx_plan_refuse(r, place, "%s is not the name of a tensor",
                               value != NULL ? rfx_plan_shown(value, text) : "nothing");
    const char *name = json_string_value(value);
    *node = rfx_graph_find(r->graph, name);
    if (*node >= 0) return RFX_OK;
    rfx_graph_near_names(r->graph, name, near);
    return rfx_plan_refuse(r, place, "this network has no tensor '%.60s'%s", name, near);
}
