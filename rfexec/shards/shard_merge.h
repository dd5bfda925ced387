/* Merges the shards of an output into one file.
 *
 * A map is written in bands of rows; each band is read from the shards that contain its rows. An
 * output of cells is written shard by shard. So the memory for merging depends on the budget and
 * the length of a row, not on the size of the output. Every element is hashed again when it is
 * read. Thus a shard that was changed is found before the output gets its name. */
#ifndef RFX_RFEXEC_SHARDS_SHARD_MERGE_H
#define RFX_RFEXEC_SHARDS_SHARD_MERGE_H

#include "rfexec/output/fingerprint.h"
#include "rfexec/output/output_format.h"
#include "rfexec/output/output_sink.h"
#include "rfexec/run/session.h"
#include "rfexec/shards/shard_file.h"

/* The shards of one output, after their JSON files have been read and compared. Only the JSON of
 * the first shard is kept, because all are equal and memory must not grow with the number of
 * shards. */
struct rfx_shards {
    struct rfx_memory *mem;
    const char *const *paths; /* [n], borrowed */
    int n;
    struct rfx_shard_file *files;  /* [n]; only files[0] has run, about, geo and grid */
    size_t picture_bytes;          /* bytes of the row checksums of all shards */
    struct rfx_fingerprint *found; /* [n] fingerprints of the elements read so far */
    float *chunk;                  /* the elements read last */
    struct rfx_found answers;      /* after a merge: what was found, and how many */
};

/* Reads the JSON files of paths[n] and checks the sizes of the arrays. The caller releases *out,
 * whatever the status. MALFORMED, with the files in the error: the shards are of several runs or
 * images, have gaps or overlaps, or an array has another size than its JSON file tells. */
RFX_NODISCARD enum rfx_status rfx_shards_read(struct rfx_memory *mem, const char *const *paths,
                                              int n, struct rfx_shards *out, struct rfx_error *err);
void rfx_shards_release(struct rfx_shards *shards);

/* Returns the whole output: its map, or the tensor of its cells. */
struct rfx_tensor rfx_shards_tensor(const struct rfx_shards *shards);

/* Returns the shape that the network declares for the output. */
const struct rfx_shape *rfx_shards_shape(const struct rfx_shards *shards);

/* Writes the output to `path`. `format` must have passed rfx_output_format_check. The georeference
 * comes from the shards. progress may be NULL. Statuses: BUDGET_IMPOSSIBLE when one row and the
 * buffers of writing need more than memory_bytes (0: no budget); MALFORMED when a shard's values
 * have another hash than its JSON file tells; CANCELLED when `progress` asked to stop. */
RFX_NODISCARD enum rfx_status rfx_shards_merge(struct rfx_shards *shards, const char *path,
                                               const struct rfx_output_format *format,
                                               size_t memory_bytes, rfx_progress_fn *progress,
                                               void *user, struct rfx_error *err);

/* Passes the elements of an output of cells to `sink`, shard by shard, instead of writing a file.
 * Each piece is a row of elements that follow each other in the output: a map of one channel. Other
 * arguments and statuses: as rfx_shards_merge, which adds those of the file. */
RFX_NODISCARD enum rfx_status rfx_shards_take(struct rfx_shards *shards,
                                              struct rfx_output_sink sink,
                                              rfx_progress_fn *progress, void *user,
                                              struct rfx_error *err);

/* Called after merging. Writes the fingerprint of the output to `hash`. */
void rfx_shards_hash(const struct rfx_shards *shards, char hash[RFX_FINGERPRINT_CHARS]);
#endif
