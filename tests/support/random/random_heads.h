/* Random heads of detectors: maps of one or several sizes joined to one tensor of cells, and the
 * operators that exporters write after it. */
#ifndef RFX_TESTS_SUPPORT_RANDOM_RANDOM_HEADS_H
#define RFX_TESTS_SUPPORT_RANDOM_RANDOM_HEADS_H

#include "tests/support/random/random_nodes.h"

/* Adds a head to map `in` and returns its last node, of shape (1, channels, cells) or (1, cells,
 * channels). Returns -1 if the graph refuses it. */
int random_add_head(struct random_maker *m, int in);

/* Adds TOP_K to a head: the positions of its largest or smallest elements, the elements picked at
 * these positions, or the head with the elements scattered to them again. Returns the last node, or
 * -1 if the graph refuses it. */
int random_add_best(struct random_maker *m, int in);

#endif
