/* Loading libblosc by its name in the file system. */
#include "rfexec/image/zarr/blosc_library.h"

#include "layers/core/library.h"

#define FUNCTION(name) \
    { #name, offsetof(struct rfx_blosc_library, name), false }
static const struct rfx_library_function functions[] = {
    FUNCTION(blosc_decompress_ctx),
    FUNCTION(blosc_cbuffer_sizes),
};
_Static_assert(sizeof functions / sizeof functions[0] ==
                   sizeof(struct rfx_blosc_library) / sizeof(void (*)(void)),
               "every member has a row");

enum rfx_status rfx_blosc_library_load(struct rfx_blosc_library *lib, struct rfx_error *err) {
    enum rfx_status status = rfx_library_load("libblosc.so.1", functions,
                                              sizeof functions / sizeof functions[0], lib, err);
    return status == RFX_OK ? status
                            : rfx_fail_within(err, status,
                                              "chunks packed by blosc are read by libblosc "
                                              "(Debian's package libblosc1)");
}
