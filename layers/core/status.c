/* Error texts: formatting into the caller's struct and nothing else. */
#include "layers/core/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum rfx_status rfx_fail(struct rfx_error *err, enum rfx_status status, const char *format, ...) {
    if (err == NULL) return status;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return status;
}

enum rfx_status rfx_fail_within(struct rfx_error *err, enum rfx_status status, const char *format,
                                ...) {
    if (err == NULL) return status;
    char inner[sizeof err->text];
    memcpy(inner, err->text, sizeof inner);
    va_list args;
    va_start(args, format);
    int used = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (used < 0) return status;
    size_t at = (size_t)used;
    for (const char *part = ": "; *part != '\0' && at + 1 < sizeof err->text; part++)
        err->text[at++] = *part;
    for (const char *part = inner; *part != '\0' && at + 1 < sizeof err->text; part++)
        err->text[at++] = *part;
    if (at < sizeof err->text) err->text[at] = '\0';
    return status;
}

static const char *const status_names[] = {
    "ok",
    "invalid argument",
    "unsupported",
    "malformed",
    "budget impossible",
    "out of memory",
    "input/output failure",
    "cancelled",
    "internal error",
};
_Static_assert(sizeof status_names / sizeof status_names[0] == RFX_STATUS_COUNT,
               "one name per status");

const char *rfx_status_name(enum rfx_status status) {
    if ((int)status < 0 || status >= RFX_STATUS_COUNT) return "unknown status";
    return status_names[status];
}
