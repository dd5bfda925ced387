/* Error texts: formatting into the caller's struct, in printable form, and nothing else. */
#include "layers/core/status.h"

#include <stdarg.h>
#include <stdio.h>

#include "layers/core/printable.h"

enum rfx_status rfx_fail(struct rfx_error *err, enum rfx_status status, const char *format, ...) {
    if (err == NULL) return status;
    char raw[sizeof err->text];
    va_list args;
    va_start(args, format);
    int used = vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    if (used < 0) raw[0] = '\0';
    rfx_trim_cut_character(raw);
    rfx_printable(raw, err->text, sizeof err->text);
    return status;
}

enum rfx_status rfx_fail_within(struct rfx_error *err, enum rfx_status status, const char *format,
                                ...) {
    if (err == NULL) return status;
    char prefix[sizeof err->text];
    va_list args;
    va_start(args, format);
    int used = vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    if (used < 0) return status;
    rfx_trim_cut_character(prefix);
    const struct rfx_error inner = *err;
    return rfx_fail(err, status, "%s: %s", prefix, inner.text);
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
