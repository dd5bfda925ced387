/* Where fuzzing of Zarr folders starts from. */
#ifndef RFX_TESTS_FUZZ_MAKE_ZARR_H
#define RFX_TESTS_FUZZ_MAKE_ZARR_H

#include <stddef.h>

/* Saves inputs of the target zarr, in the form that targets/fuzz_zarr.c says. */
void make_zarr(void (*save)(const char *target, const char *name, const void *bytes, size_t size));
#endif
