/* Runs of the program (RFX_PROGRAM) with the kernel's account of their memory.
 *
 * That account begins with the memory of the process that forked, so who includes this links no
 * library of rfexec. Arguments are NULL-ended; `core` is a type of OpenBLAS's, or NULL. What the
 * program writes goes to measured_out.txt and measured_err.txt. */
#ifndef RFX_TESTS_CLI_MEASURED_RUN_H
#define RFX_TESTS_CLI_MEASURED_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

enum { MAX_ARGS = 20, EXIT_BUDGET = 4, EXIT_SYSTEM = 5 };
#define MIB ((int64_t)1 << 20)

/* How the program ended, and the kernel's account of its memory. */
struct measured_end {
    int code;
    int64_t peak_bytes;
    json_t *document; /* what it wrote on standard output; NULL when that is no JSON */
};

struct measured_limits {
    int64_t address_bytes; /* 0: none */
    int64_t cpu_seconds;
};
extern const struct measured_limits measured_no_limits;

/* In the child: becomes the program. OpenBLAS asks again for ever when there is no address space
 * for its buffers, so a limit comes with one on processor time. */
void measured_become(const char *const *args, const char *core,
                     const struct measured_limits *limits);

struct measured_end measured_run(const char *const *args, const char *core,
                                 struct measured_limits limits);

/* Whether the last run wrote these words on standard error. */
bool measured_said(const char *words);

/* What was run, and what it wrote on standard error. */
void measured_print(const char *const *args, const char *core);

/* Runs, expects the exit code, and gives the integer at "object.key". */
int64_t measured_ask(const char *const *args, const char *core, int code, const char *object,
                     const char *key);

/* The highest resident memory of this process so far, in bytes. */
int64_t measured_own_peak(void);

/* Both figures of one run's peak, the program's own and the kernel's, against the bound; returns
 * the larger one. */
int64_t measured_within(const char *const *args, const char *core, int64_t bound);
#endif
