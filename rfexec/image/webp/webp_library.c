/* Loading libwebp by its name in the file system. */
#include "rfexec/image/webp/webp_library.h"

#include "layers/core/library.h"

#define FUNCTION(name) \
    { #name, offsetof(struct rfx_webp_library, name), false }
static const struct rfx_library_function functions[] = {
    FUNCTION(WebPGetInfo),
    FUNCTION(WebPDecodeRGBInto),
    FUNCTION(WebPDecodeRGBAInto),
};
_Static_assert(sizeof functions / sizeof functions[0] ==
                   sizeof(struct rfx_webp_library) / sizeof(void (*)(void)),
               "every member has a row");

enum rfx_status rfx_webp_library_load(struct rfx_webp_library *lib, struct rfx_error *err) {
    enum rfx_status status = rfx_library_load("libwebp.so.7", functions,
                                              sizeof functions / sizeof functions[0], lib, err);
    return status == RFX_OK ? status
                            : rfx_fail_within(err, status,
                                              "WebP pictures are read by libwebp (Debian's package "
                                              "libwebp7)");
}
