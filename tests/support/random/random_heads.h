/* Heads of detectors, drawn: maps of one or several sizes as one tensor of cells, and what
 * exporters write behind it. */
#ifndef RFX_TESTS_SUPPORT_RANDOM_RANDOM_HEADS_H
#define RFX_TESTS_SUPPORT_RANDOM_RANDOM_HEADS_H

#include "tests/support/random/random_nodes.h"

/* Adds a head to map `in`; its last node, (1, channels, cells) or (1, cells, channels), or -1 when
 * the graph refuses. */
int random_add_head(struct random_maker *m, int in);

/* Where the largest or smallest elements of a head are, what they are, or the head with them put
 * where they are once more; or -1. */
int random_add_best(struct random_maker *m, int in);

#endif
