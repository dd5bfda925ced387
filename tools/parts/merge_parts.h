/* The parts that rfexec merge puts together: read and compared, their elements hashed once more as
 * they are read, so that what was changed since it was made is found before the output gets its
 * name. Of the JSON of all parts that of the first one stays: they are the same, and what is in
 * memory must not grow with them. */
#ifndef RFX_TOOLS_PARTS_MERGE_PARTS_H
#define RFX_TOOLS_PARTS_MERGE_PARTS_H

#include "rfexec/output/fingerprint.h"
#include "rfexec/output/output_format.h"
#include "tools/cli/options.h"
#include "tools/parts/files/part_file.h"

enum { RFX_MERGE_CHUNK = 16384 };

/* What merge is asked. */
struct rfx_merge_options {
    struct rfx_cli_words words;
    size_t memory_bytes; /* 0: no budget */
    struct rfx_cli_output_options output;
    const char *status; /* folder of parts; NULL: not given */
    bool json;
};

struct rfx_merge_parts {
    struct rfx_memory *mem;
    const char *const *paths; /* n */
    int n;
    struct rfx_part_file *files;   /* n; run, about and geo of the first one alone */
    size_t picture_bytes;          /* of what files say of the rows that they read, kept of all */
    struct rfx_fingerprint *found; /* n: of the elements read so far */
    float *chunk;                  /* RFX_MERGE_CHUNK: the elements read last */
};

/* A part's array, open. */
struct rfx_merge_array {
    int part, fd;
    int64_t offset; /* of its values */
};

/* At most so many bytes are held for n parts. */
size_t rfx_merge_parts_bytes(int n);

/* Reads what the options name as arguments; *out is to be released whatever is returned. MALFORMED,
 * in words: parts of several runs, gaps, overlaps, arrays of other sizes. */
RFX_NODISCARD enum rfx_status rfx_merge_parts_read(struct rfx_memory *mem,
                                                   const struct rfx_merge_options *options,
                                                   struct rfx_merge_parts *out,
                                                   struct rfx_error *err);
void rfx_merge_parts_release(struct rfx_merge_parts *parts);

/* Opens the array of a part, whose fd the caller closes. */
RFX_NODISCARD enum rfx_status rfx_merge_parts_open(const struct rfx_merge_parts *parts, int part,
                                                   struct rfx_merge_array *out,
                                                   struct rfx_error *err);

/* Takes n elements, at most RFX_MERGE_CHUNK, into the chunk: from element `from` of the array on,
 * which are elements `to`, `to` + step and so on of the output. */
RFX_NODISCARD enum rfx_status rfx_merge_parts_take(struct rfx_merge_parts *parts,
                                                   const struct rfx_merge_array *array,
                                                   int64_t from, int64_t to, int64_t step,
                                                   int64_t n, struct rfx_error *err);

/* When all elements of a part are taken. MALFORMED: they have another hash than its JSON says. */
RFX_NODISCARD enum rfx_status rfx_merge_parts_check(const struct rfx_merge_parts *parts, int part,
                                                    struct rfx_error *err);

/* Of all parts. */
void rfx_merge_parts_hash(const struct rfx_merge_parts *parts, char hash[RFX_FINGERPRINT_CHARS]);

/* The format of -o, which must be able to hold the tensor, declared so, and take all options that
 * are given. */
RFX_NODISCARD enum rfx_status rfx_merge_format(const struct rfx_merge_options *options,
                                               const struct rfx_tensor *tensor,
                                               const struct rfx_stored *stored,
                                               struct rfx_output_format *format,
                                               struct rfx_error *err);
#endif
