/* Private: OpenJPEG, loaded when the first JPEG 2000 picture is decoded. Its header was there when
 * this was built, or such pictures are refused. */
#ifndef RFX_RFEXEC_IMAGE_JP2_JP2_LIBRARY_H
#define RFX_RFEXEC_IMAGE_JP2_JP2_LIBRARY_H

#include <openjpeg.h>

#include "layers/core/status.h"

/* What a budget pays for the library and its tables. */
#define RFX_JP2_LIBRARY_BYTES ((size_t)3 << 19)

struct rfx_jp2_library {
    __typeof__(opj_create_decompress) *opj_create_decompress;
    __typeof__(opj_decode) *opj_decode;
    __typeof__(opj_destroy_codec) *opj_destroy_codec;
    __typeof__(opj_get_decoded_tile) *opj_get_decoded_tile;
    __typeof__(opj_image_destroy) *opj_image_destroy;
    __typeof__(opj_read_header) *opj_read_header;
    __typeof__(opj_set_decode_area) *opj_set_decode_area;
    __typeof__(opj_set_default_decoder_parameters) *opj_set_default_decoder_parameters;
    __typeof__(opj_set_error_handler) *opj_set_error_handler;
    __typeof__(opj_setup_decoder) *opj_setup_decoder;
    __typeof__(opj_stream_create) *opj_stream_create;
    __typeof__(opj_stream_destroy) *opj_stream_destroy;
    __typeof__(opj_stream_set_read_function) *opj_stream_set_read_function;
    __typeof__(opj_stream_set_seek_function) *opj_stream_set_seek_function;
    __typeof__(opj_stream_set_skip_function) *opj_stream_set_skip_function;
    __typeof__(opj_stream_set_user_data) *opj_stream_set_user_data;
    __typeof__(opj_stream_set_user_data_length) *opj_stream_set_user_data_length;
};

/* Fills `lib`. IO when this system has no such library or cannot load it, with what to install. */
RFX_NODISCARD enum rfx_status rfx_jp2_library_load(struct rfx_jp2_library *lib,
                                                   struct rfx_error *err);
#endif
