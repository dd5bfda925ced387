/* Putting the shards of an output together into one file.
 *
 * A map is made band by band of rows, each read from the shards that hold some of it; an output of
 * cells is made shard by shard. So the memory that merging takes follows from the budget and the
 * length of a row, not from the size of the output. Every element is hashed again as it is read: a
 * shard that was changed since it was made is found before the output gets its name. */
#ifndef RFX_RFEXEC_SHARDS_SHARD_MERGE_H
#define RFX_RFEXEC_SHARDS_SHARD_MERGE_H

#include "rfexec/output/fingerprint.h"
#include "rfexec/output/output_format.h"
#include "rfexec/run/session.h"
#include "rfexec/shards/shard_file.h"

/* The shards of one output, read and compared. Of the JSON of all shards only the first one's is
 * kept: they say the same, and memory must not grow with them. */
struct rfx_shards {
    struct rfx_memory *mem;
    const char *const *paths; /* [n], borrowed */
    int n;
    struct rfx_shard_file *files;  /* [n]; run, about and geo of the first one alone */
    size_t picture_bytes;          /* of the row sums, which are kept of all */
    struct rfx_fingerprint *found; /* [n] of the elements read so far */
    float *chunk;                  /* the elements read last */
};

/* Reads the JSONs of paths[n] and looks at their arrays. To be released whatever the status.
 * MALFORMED, with the files: shards of several runs or images, gaps, overlaps, arrays of other
 * sizes than their JSONs say. */
RFX_NODISCARD enum rfx_status rfx_shards_read(struct rfx_memory *mem, const char *const *paths,
                                              int n, struct rfx_shards *out, struct rfx_error *err);
void rfx_shards_release(struct rfx_shards *shards);

/* The whole output: its map, or the tensor of its cells. */
struct rfx_tensor rfx_shards_tensor(const struct rfx_shards *shards);

/* The shape that the network declares for the output. */
const struct rfx_shape *rfx_shards_shape(const struct rfx_shards *shards);

/* Writes the output to `path` in a format that rfx_output_format_check has passed; a georeference
 * comes from the shards. progress may be NULL. BUDGET_IMPOSSIBLE: one row and what writing holds
 * are more than memory_bytes (0: no budget). MALFORMED: a shard's values have another hash than its
 * JSON says. CANCELLED: progress said so. */
RFX_NODISCARD enum rfx_status rfx_shards_merge(struct rfx_shards *shards, const char *path,
                                               const struct rfx_output_format *format,
                                               size_t memory_bytes, rfx_progress_fn *progress,
                                               void *user, struct rfx_error *err);

/* After merging: the fingerprint of the output. */
void rfx_shards_hash(const struct rfx_shards *shards, char hash[RFX_FINGERPRINT_CHARS]);
#endif
