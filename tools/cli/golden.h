/* Golden fingerprints: what networks give for synthetic pictures on every machine.
 *
 * A table is CSV with the columns model, size (rows x columns), conv (what computes convolutions),
 * output, shape and fingerprint, one row per output; rows of one run follow each other. The table
 * data/fingerprints.csv, which tools/scripts/make_fingerprints.py makes, is part of the program. */
#ifndef RFX_TOOLS_CLI_GOLDEN_H
#define RFX_TOOLS_CLI_GOLDEN_H

#include "layers/graph/graph.h"
#include "rfexec/output/fingerprint.h"

enum { RFX_GOLDEN_NAME = 64 }; /* characters of a name or shape, with the end */

struct rfx_golden_row {
    char model[RFX_GOLDEN_NAME], output[RFX_GOLDEN_NAME], shape[RFX_GOLDEN_NAME];
    char fingerprint[RFX_FINGERPRINT_CHARS];
    int64_t h, w;
    enum rfx_conv_choice conv;
};

struct rfx_golden {
    struct rfx_memory *mem;
    int count;
    struct rfx_golden_row *rows;
};

/* Reads a table from a file, or with path NULL the program's own. Statuses: IO, MALFORMED (with the
 * line), OUT_OF_MEMORY. Freed with rfx_golden_free, after a failure too. */
RFX_NODISCARD enum rfx_status rfx_golden_read(struct rfx_memory *mem, const char *path,
                                              struct rfx_golden *golden, struct rfx_error *err);

/* How many rows from `first` on belong to one run. */
int rfx_golden_run_length(const struct rfx_golden *golden, int first);

void rfx_golden_free(struct rfx_golden *golden);
#endif
