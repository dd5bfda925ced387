/* Prints a packing problem of tests/support/random/packing_cases.h as CSV, as `rfexec alloc` reads
 * it, or the names of the families.
 *     make_packing
 *     make_packing FAMILY SEED MIN_RECORDS MAX_RECORDS
 * On stderr: the capacity that is known to be enough. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/random/packing_cases.h"

int main(int argc, char **argv) {
    if (argc == 1) {
        for (int k = 0; k < packing_n_families; k++) puts(packing_families[k].name);
        return 0;
    }
    const struct packing_family *family = argc == 5 ? packing_find(argv[1]) : NULL;
    if (family == NULL) {
        (void)fputs("make_packing FAMILY SEED MIN_RECORDS MAX_RECORDS\n", stderr);
        return 2;
    }
    struct packing_case made =
        packing_make(family, strtoull(argv[2], NULL, 10), atoi(argv[3]), atoi(argv[4]));
    puts("id,lower,upper,size");
    for (int i = 0; i < made.n; i++)
        printf("%d,%lld,%lld,%zu\n", i, (long long)made.items[i].lo, (long long)made.items[i].hi,
               made.items[i].size);
    (void)fprintf(stderr, "%zu\n", made.capacity);
    free(made.items);
    return 0;
}
