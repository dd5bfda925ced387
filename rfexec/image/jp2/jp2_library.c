/* Loading OpenJPEG by its name in the file system: libopenjp2.so.7 is all of 2.1 and later. */
#include "rfexec/image/jp2/jp2_library.h"

#include <stddef.h>

#include "layers/core/library.h"

#define FUNCTION(name) \
    { #name, offsetof(struct rfx_jp2_library, name), false }
static const struct rfx_library_function functions[] = {
    FUNCTION(opj_create_decompress),
    FUNCTION(opj_decode),
    FUNCTION(opj_destroy_codec),
    FUNCTION(opj_get_decoded_tile),
    FUNCTION(opj_image_destroy),
    FUNCTION(opj_read_header),
    FUNCTION(opj_set_decode_area),
    FUNCTION(opj_set_default_decoder_parameters),
    FUNCTION(opj_set_error_handler),
    FUNCTION(opj_setup_decoder),
    FUNCTION(opj_stream_create),
    FUNCTION(opj_stream_destroy),
    FUNCTION(opj_stream_set_read_function),
    FUNCTION(opj_stream_set_seek_function),
    FUNCTION(opj_stream_set_skip_function),
    FUNCTION(opj_stream_set_user_data),
    FUNCTION(opj_stream_set_user_data_length),
};
_Static_assert(sizeof functions / sizeof functions[0] ==
                   sizeof(struct rfx_jp2_library) / sizeof(void (*)(void)),
               "every member has a row");

enum rfx_status rfx_jp2_library_load(struct rfx_jp2_library *lib, struct rfx_error *err) {
    enum rfx_status status = rfx_library_load("libopenjp2.so.7", functions,
                                              sizeof functions / sizeof functions[0], lib, err);
    return status == RFX_OK ? status
                            : rfx_fail_within(err, status,
                                              "JPEG 2000 pictures are read by OpenJPEG (Debian's "
                                              "package libopenjp2-7)");
}
