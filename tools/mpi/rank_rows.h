/* Stores rows of a feature map that a rank has computed or received, in a file without a name, and
 * exchanges rows between ranks. Values keep their bits. The stored rows are the input image of the
 * layers after the map. */
#ifndef RFX_TOOLS_MPI_RANK_ROWS_H
#define RFX_TOOLS_MPI_RANK_ROWS_H

#include "layers/graph/graph.h"
#include "rfexec/image/image_source.h"
#include "tools/mpi/ranks.h"

struct rfx_row_store;

/* Returns the bytes of memory that a store of rows of `map`, and its image, take. */
size_t rfx_row_store_bytes(const struct rfx_tensor *map);

/* Opens a store for these rows of the map in a folder. IO: no file can be made, or the disk is
 * full. */
RFX_NODISCARD enum rfx_status rfx_row_store_open(struct rfx_memory *mem, const char *folder,
                                                 const struct rfx_tensor *map,
                                                 struct rfx_range rows, struct rfx_row_store **out,
                                                 struct rfx_error *err);

/* Stores `rect`, which lies in the store's rows and in the view. */
RFX_NODISCARD enum rfx_status rfx_row_store_put(struct rfx_row_store *store, struct rfx_rect rect,
                                                const struct rfx_view *view, struct rfx_error *err);

/* Copies rows from another store of the same map. Both stores must contain these rows. */
RFX_NODISCARD enum rfx_status rfx_row_store_copy(struct rfx_row_store *store,
                                                 struct rfx_row_store *from, struct rfx_range rows,
                                                 struct rfx_error *err);

/* Sets *out to the map as an image of which only the store's rows can be read. The caller frees the
 * image before the store. */
RFX_NODISCARD enum rfx_status rfx_row_store_image(struct rfx_row_store *store,
                                                  struct rfx_image **out, struct rfx_error *err);

/* Copies the reason to `err` when reading the store's image has failed. */
void rfx_row_store_explain(const struct rfx_row_store *store, struct rfx_error *err);

/* Closes and frees; NULL is fine. */
void rfx_row_store_free(struct rfx_row_store *store);

/* Returns the bytes of memory that exchanging rows of `map` takes. */
size_t rfx_row_exchange_bytes(const struct rfx_ranks *ranks, const struct rfx_tensor *map);

/* Exchanges rows of a map. All ranks call it together; each has its share of the rows
 * (rfx_part_map_rows) in its store. Receives those rows of `need` (may be empty) that other ranks
 * have, into the store, which was opened for them too. The store may be NULL when the rank has no
 * rows and needs none. *received: number of bytes received. */
RFX_NODISCARD enum rfx_status rfx_row_exchange(struct rfx_ranks *ranks, struct rfx_memory *mem,
                                               const struct rfx_graph *whole, int map,
                                               struct rfx_range need, struct rfx_row_store *store,
                                               uint64_t *received, struct rfx_error *err);
#endif
