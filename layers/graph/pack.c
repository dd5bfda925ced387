/* Packing with several threads. The shards of all nodes are numbered in the order of nodes. Each
 * thread takes the next free number again and again, and has its own piece of temp. The numbers
 * only grow, so a thread finds the node of its next shard by going on from its last node. If a
 * shard fails, shards that were taken before are still packed to their end, but no more are taken.
 * So the lowest shard that fails has always been tried. */
#include "layers/graph/pack.h"

#include <stdatomic.h>

#include "layers/core/checked.h"

/* Packed bytes of a shard; large enough that distributing shards costs nothing. */
#define PART_BYTES ((size_t)256 << 10)

_Static_assert(RFX_PACK_TEMP_BYTES / RFX_PACK_MAX_THREADS ==
                   RFX_PACK_MIN_TEMP_ELEMS * sizeof(float),
               "the least that a call of pack has");

struct worker {
    int node;
    int64_t before; /* number of shards of the nodes before `node` */
    int64_t failed; /* number of the shard that failed */
    enum rfx_status status;
    struct rfx_error err;
};

struct packing {
    const struct rfx_pack_nodes *nodes;
    int64_t temp_elems; /* of a worker */
    _Atomic int64_t next;
    atomic_bool stop;
    struct worker workers[RFX_PACK_MAX_THREADS];
};

static int64_t parts_of(const struct rfx_pack_nodes *nodes, int i) {
    if (nodes->at(nodes->user, i) == NULL) return 0;
    size_t bytes = rfx_op_packed_bytes(nodes->graph, &nodes->graph->nodes[i]);
    return (int64_t)((bytes + PART_BYTES - 1) / PART_BYTES);
}

/* Packs the shard of this number; returns false if there is none. */
static bool pack_number(struct packing *p, struct worker *w, int64_t number, float *temp) {
    const struct rfx_pack_nodes *nodes = p->nodes;
    int64_t parts = 0;
    for (; w->node < nodes->last; w->node++, w->before += parts) {
        parts = parts_of(nodes, w->node);
        if (number < w->before + parts) break;
    }
    if (w->node == nodes->last) return false;
    struct rfx_pack_part part = {number - w->before, parts, temp, p->temp_elems};
    w->failed = number;
    w->status = rfx_memory_check_stop(nodes->graph->mem, &w->err);
    if (w->status == RFX_OK)
        w->status = rfx_op_pack_part(nodes->graph, &nodes->graph->nodes[w->node],
                                     nodes->at(nodes->user, w->node), &part, &w->err);
    return true;
}

static void work(void *user, int64_t index, int thread) {
    struct packing *p = user;
    struct worker *w = &p->workers[index];
    (void)thread;
    do {
        int64_t number = atomic_fetch_add(&p->next, 1);
        float *temp = (float *)p->nodes->temp + index * p->temp_elems;
        if (!pack_number(p, w, number, temp)) return;
    } while (w->status == RFX_OK && !atomic_load(&p->stop));
    atomic_store(&p->stop, true);
}

/* Returns the number of threads that have a shard to pack, each with enough temp for the scales of
 * a node. */
static int workers_for(const struct rfx_pack_nodes *nodes, int threads) {
    int64_t parts = 0, channels = 1;
    for (int i = nodes->first; i < nodes->last; i++) {
        int64_t here = parts_of(nodes, i);
        parts += here;
        if (here > 0) channels = rfx_max_i64(channels, nodes->graph->nodes[i].out.c);
    }
    int64_t halves = (int64_t)(RFX_PACK_TEMP_BYTES / sizeof(float) / 2) / channels;
    int64_t most = rfx_min_i64(rfx_min_i64(threads, RFX_PACK_MAX_THREADS), halves);
    return (int)rfx_max_i64(rfx_min_i64(most, parts), 1);
}

enum rfx_status rfx_pack_share(struct rfx_team *team, const struct rfx_pack_nodes *nodes,
                               struct rfx_error *err) {
    struct packing p = {.nodes = nodes};
    int count = workers_for(nodes, rfx_team_threads(team));
    size_t bytes = RFX_PACK_TEMP_BYTES / (size_t)count / RFX_ALIGNMENT_BYTES * RFX_ALIGNMENT_BYTES;
    p.temp_elems = (int64_t)(bytes / sizeof(float));
    for (int i = 0; i < count; i++) p.workers[i].node = nodes->first;
    rfx_team_for(team, count, work, &p);
    const struct worker *first = NULL;
    for (int i = 0; i < count; i++) {
        const struct worker *w = &p.workers[i];
        if (w->status != RFX_OK && (first == NULL || w->failed < first->failed)) first = w;
    }
    if (first == NULL) return RFX_OK;
    if (err != NULL) *err = first->err;
    return first->status;
}
