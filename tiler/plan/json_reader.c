/* Checks of JSON values, with messages; see json_reader.h. */
#include "tiler/plan/json_reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/descriptor.h"
#include "layers/graph/near_names.h"

enum rfx_status rfx_json_refuse(const struct rfx_json_reader *r, const char *place,
                                const char *format, ...) {
    char what[320];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return rfx_fail(r->err, RFX_STATUS_MALFORMED, "%.100s: %s%s%s", r->name, place,
                    place[0] != '\0' ? ": " : "", what);
}

const char *rfx_json_shown(const json_t *value, char text[RFX_JSON_SHOWN]) {
    char *dump = value != NULL ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    (void)snprintf(text, RFX_JSON_SHOWN, "%.40s",
                   dump != NULL    ? dump
                   : value != NULL ? "?"
                                   : "nothing");
    void (*release)(void *);
    json_get_alloc_funcs(NULL, &release);
    release(dump);
    return text;
}

enum rfx_status rfx_json_check_keys(const struct rfx_json_reader *r, const char *place,
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
            return rfx_json_refuse(r, place, "unknown key '%.40s': did you mean '%s'?", key, near);
        if (!known) return rfx_json_refuse(r, place, "unknown key '%.40s'", key);
    }
    return RFX_OK;
}

enum rfx_status rfx_json_count(const struct rfx_json_reader *r, const char *place,
                               const json_t *value, int64_t lo, int64_t hi, int64_t *out) {
    char text[RFX_JSON_SHOWN];
    if (value == NULL) return RFX_OK;
    if (!json_is_integer(value) || json_integer_value(value) < lo || json_integer_value(value) > hi)
        return rfx_json_refuse(r, place, "%s is not a whole number from %lld to %lld",
                               rfx_json_shown(value, text), (long long)lo, (long long)hi);
    *out = json_integer_value(value);
    return RFX_OK;
}

enum rfx_status rfx_json_flag(const struct rfx_json_reader *r, const char *place,
                              const json_t *object, const char *key, bool *out) {
    char text[RFX_JSON_SHOWN];
    const json_t *value = json_object_get(object, key);
    if (value == NULL) return RFX_OK;
    if (!json_is_boolean(value))
        return rfx_json_refuse(r, place, "'%s': %s is not true or false", key,
                               rfx_json_shown(value, text));
    *out = json_is_true(value);
    return RFX_OK;
}

enum rfx_status rfx_json_parse(const struct rfx_json_reader *r, struct rfx_memory *mem,
                               const char *text, size_t length, json_t **out) {
    json_error_t where;
    errno = 0;
    *out = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    if (*out != NULL) return RFX_OK;
    /* Jansson reports lack of memory as malformed text. */
    if (errno == ENOMEM) return rfx_memory_fail(mem, r->name, length, r->err);
    return rfx_fail(r->err, RFX_STATUS_MALFORMED, "%.100s: line %d, column %d: %s", r->name,
                    where.line, where.column, where.text);
}

enum rfx_status rfx_json_text(const struct rfx_json_reader *r, const char *what, long most_bytes,
                              struct rfx_memory *mem, char **text, size_t *length) {
    FILE *stream = rfx_descriptor_stream(r->name);
    if (stream == NULL)
        return rfx_fail(r->err, errno == ENOMEM ? RFX_STATUS_IO : RFX_STATUS_MALFORMED,
                        "%s '%s': cannot be opened: %s", what, r->name, strerror(errno));
    enum rfx_status status = RFX_OK;
    char *read = NULL;
    long size = fseek(stream, 0, SEEK_END) == 0 ? ftell(stream) : -1;
    if (size < 0 || size > most_bytes || fseek(stream, 0, SEEK_SET) != 0) {
        status = rfx_fail(r->err, RFX_STATUS_MALFORMED, "%s '%s': not a file of at most %ld bytes",
                          what, r->name, most_bytes);
        goto done;
    }
    read = rfx_memory_alloc(mem, (size_t)size + 1);
    if (read == NULL)
        status = rfx_memory_fail(mem, what, (size_t)size + 1, r->err);
    else if (fread(read, 1, (size_t)size, stream) != (size_t)size)
        status = rfx_fail(r->err, RFX_STATUS_IO, "%s '%s': cannot be read", what, r->name);
done:
    (void)fclose(stream);
    if (status != RFX_OK) {
        rfx_memory_release(mem, read);
        return status;
    }
    *text = read;
    *length = (size_t)size;
    return RFX_OK;
}
