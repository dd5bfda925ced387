/* Status codes and the caller-owned error text that every fallible function of rfexec uses.
 *
 * Invariants: 1. results are written only when RFX_OK is returned; 2. an error text says what,
 * where and the numbers; 3. there is no global error state. */
#ifndef RFX_LAYERS_CORE_STATUS_H
#define RFX_LAYERS_CORE_STATUS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RFX_NODISCARD __attribute__((warn_unused_result))
#define RFX_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define RFX_NODISCARD
#define RFX_PRINTF(fmt, args)
#endif

/* The kinds of failure; the command line maps them to its exit codes. */
enum rfx_status {
    RFX_OK = 0,
    RFX_STATUS_INVALID_ARGUMENT,  /* the caller's mistake: exit 2 */
    RFX_STATUS_UNSUPPORTED,       /* a valid model or file that rfexec cannot run: exit 3 */
    RFX_STATUS_MALFORMED,         /* a broken model, image or plan file: exit 3 */
    RFX_STATUS_BUDGET_IMPOSSIBLE, /* no plan fits: exit 4 */
    RFX_STATUS_OUT_OF_MEMORY,     /* an allocation failed: exit 5 */
    RFX_STATUS_IO,                /* a call of the system failed: exit 5 */
    RFX_STATUS_CANCELLED,         /* the caller's progress callback asked to stop: exit 5 */
    RFX_STATUS_INTERNAL,          /* a result failed one of rfexec's own checks: exit 5 */
    RFX_STATUS_COUNT
};

/* A caller-owned error text. All functions accept NULL for it. */
struct rfx_error {
    char text[480];
};

/* Writes a formatted text to `err` (may be NULL) in printable form (printable.h) and returns
 * `status`. So a function can fail with `return rfx_fail(err, RFX_STATUS_..., "conv '%s': ...",
 * ...)`. */
enum rfx_status rfx_fail(struct rfx_error *err, enum rfx_status status, const char *format, ...)
    RFX_PRINTF(3, 4);

/* Puts "prefix: " in front of the text in `err` and returns `status` unchanged. The prefix is
 * formatted as printf does. */
enum rfx_status rfx_fail_within(struct rfx_error *err, enum rfx_status status, const char *format,
                                ...) RFX_PRINTF(3, 4);

/* Returns a short name of a status for logs, such as "out of memory". Never NULL. */
const char *rfx_status_name(enum rfx_status status);

#ifdef __cplusplus
}
#endif
#endif
