/* Decompresses chunks from memory to memory. */
#include "rfexec/image/zarr/zarr_codec.h"

#include <stddef.h>
#include <string.h>
#define ZLIB_CONST
#include <zlib.h>

#include "layers/core/library.h"
#include "rfexec/image/zarr/zstd_library.h"

#define ZLIB_BYTES ((size_t)64 * 1024)   /* zlib's state, and 32 KiB after broken chunks */
#define BLOSC_BYTES ((size_t)512 * 1024) /* blosc's context, and that of the codec inside */
enum { BLOSC_COPIES = 3, ZLIB_FORMAT = 15 + 32 }; /* largest window; recognises gzip and zlib */

/* libblosc, loaded when the first array compressed by it is opened; older arrays are compressed by
 * it by default. These functions have been the same since 1.5, so no header of libblosc is needed.
 */
struct blosc_library {
    int (*blosc_decompress_ctx)(const void *from, void *to, size_t to_bytes, int threads);
    void (*blosc_cbuffer_sizes)(const void *from, size_t *bytes, size_t *packed, size_t *block);
};

/* Bytes of a compressed chunk's header; shorter chunks are not passed to blosc_cbuffer_sizes. */
enum { BLOSC_HEADER_BYTES = 16 };

#define FUNCTION(name) \
    { #name, offsetof(struct blosc_library, name), false }
static const struct rfx_library_function functions[] = {
    FUNCTION(blosc_decompress_ctx),
    FUNCTION(blosc_cbuffer_sizes),
};
_Static_assert(sizeof functions / sizeof functions[0] ==
                   sizeof(struct blosc_library) / sizeof(void (*)(void)),
               "every member has a row");

/* Loads libblosc. IO, with the package to install: this system has none. */
static enum rfx_status load_blosc(struct blosc_library *lib, struct rfx_error *err) {
    enum rfx_status status = rfx_library_load("libblosc.so.1", functions,
                                              sizeof functions / sizeof functions[0], lib, err);
    return status == RFX_OK ? status
                            : rfx_fail_within(err, status,
                                              "chunks packed by blosc are read by libblosc "
                                              "(Debian's package libblosc1)");
}

struct rfx_zarr_decoder {
    struct rfx_memory *mem;
    enum rfx_zarr_codec codec;
    struct rfx_zstd_library zstd;
    void *context; /* context of zstd */
    struct blosc_library blosc;
    z_stream stream;
    bool has_stream;
};

static const char *const names[] = {
    [RFX_ZARR_CODEC_NONE] = "none",   [RFX_ZARR_CODEC_ZSTD] = "zstd",
    [RFX_ZARR_CODEC_GZIP] = "gzip",   [RFX_ZARR_CODEC_ZLIB] = "zlib",
    [RFX_ZARR_CODEC_BLOSC] = "blosc",
};
_Static_assert(sizeof names / sizeof names[0] == RFX_ZARR_CODEC_COUNT, "every codec has a name");

const char *rfx_zarr_codec_name(enum rfx_zarr_codec codec) {
    return names[codec];
}

bool rfx_zarr_codec_named(const char *name, enum rfx_zarr_codec *out) {
    static const char prefix[] = "numcodecs."; /* prefix of codecs that format 3 does not define */
    if (strncmp(name, prefix, sizeof prefix - 1) == 0) name += sizeof prefix - 1;
    for (int i = RFX_ZARR_CODEC_NONE + 1; i < RFX_ZARR_CODEC_COUNT; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *out = (enum rfx_zarr_codec)i;
        return true;
    }
    return false;
}

static void *allocate(void *user, unsigned count, unsigned size) {
    return rfx_memory_calloc(user, count, size);
}

static void release(void *user, void *block) {
    rfx_memory_release(user, block);
}

static enum rfx_status open_library(struct rfx_zarr_decoder *d, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    if (d->codec == RFX_ZARR_CODEC_BLOSC) return load_blosc(&d->blosc, err);
    if (d->codec == RFX_ZARR_CODEC_ZSTD) {
        status = rfx_zstd_library_load(&d->zstd, err);
        if (status == RFX_OK) d->context = d->zstd.ZSTD_createDCtx();
        if (status == RFX_OK && d->context == NULL)
            status = rfx_memory_fail(d->mem, "zstd", RFX_ZSTD_UNPACKING_BYTES, err);
    } else if (d->codec != RFX_ZARR_CODEC_NONE) {
        d->stream = (z_stream){.zalloc = allocate, .zfree = release, .opaque = d->mem};
        d->has_stream = inflateInit2(&d->stream, ZLIB_FORMAT) == Z_OK;
        if (!d->has_stream) status = rfx_memory_fail(d->mem, "zlib", ZLIB_BYTES, err);
    }
    return status;
}

enum rfx_status rfx_zarr_decoder_open(struct rfx_memory *mem, enum rfx_zarr_codec codec,
                                      struct rfx_zarr_decoder **out, struct rfx_error *err) {
    struct rfx_zarr_decoder *d = rfx_memory_calloc(mem, 1, sizeof *d);
    if (d == NULL) return rfx_memory_fail(mem, "Zarr", sizeof *d, err);
    d->mem = mem;
    d->codec = codec;
    enum rfx_status status = open_library(d, err);
    if (status == RFX_OK)
        *out = d;
    else
        rfx_zarr_decoder_free(d);
    return status;
}

void rfx_zarr_decoder_free(struct rfx_zarr_decoder *decoder) {
    if (decoder == NULL) return;
    if (decoder->context != NULL) (void)decoder->zstd.ZSTD_freeDCtx(decoder->context);
    if (decoder->has_stream) (void)inflateEnd(&decoder->stream);
    rfx_memory_release(decoder->mem, decoder);
}

static enum rfx_status fail_size(size_t got, size_t wanted, struct rfx_error *err) {
    return rfx_fail(err, RFX_STATUS_MALFORMED, "it unpacks to %zu bytes instead of %zu", got,
                    wanted);
}

static enum rfx_status unpack_zstd(struct rfx_zarr_decoder *d, const void *from, size_t from_bytes,
                                   void *to, size_t to_bytes, struct rfx_error *err) {
    size_t got = d->zstd.ZSTD_decompressDCtx(d->context, to, to_bytes, from, from_bytes);
    if (d->zstd.ZSTD_isError(got))
        return rfx_fail(err, RFX_STATUS_MALFORMED, "zstd: %s", d->zstd.ZSTD_getErrorName(got));
    return got == to_bytes ? RFX_OK : fail_size(got, to_bytes, err);
}

static enum rfx_status unpack_zlib(struct rfx_zarr_decoder *d, const void *from, size_t from_bytes,
                                   void *to, size_t to_bytes, struct rfx_error *err) {
    z_stream *s = &d->stream;
    (void)inflateReset(s);
    s->next_in = from;
    s->avail_in = (uInt)from_bytes;
    s->next_out = to;
    s->avail_out = (uInt)to_bytes;
    int result = inflate(s, Z_FINISH);
    if (result == Z_STREAM_END && s->avail_in > 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "%u bytes lie behind its end", s->avail_in);
    if (result == Z_STREAM_END && s->avail_out == 0) return RFX_OK;
    if (result == Z_STREAM_END) return fail_size(to_bytes - s->avail_out, to_bytes, err);
    if (result == Z_MEM_ERROR) return rfx_memory_fail(d->mem, "zlib", ZLIB_BYTES, err);
    if (result == Z_BUF_ERROR && s->avail_out == 0)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "it unpacks to more than %zu bytes", to_bytes);
    return rfx_fail(err, RFX_STATUS_MALFORMED, "%s: %s", names[d->codec],
                    result == Z_BUF_ERROR ? "it breaks off"
                    : s->msg != NULL      ? s->msg
                                          : "broken data");
}

static enum rfx_status unpack_blosc(struct rfx_zarr_decoder *d, const void *from, size_t from_bytes,
                                    void *to, size_t to_bytes, struct rfx_error *err) {
    size_t bytes = 0, packed = 0, block = 0;
    if (from_bytes >= BLOSC_HEADER_BYTES)
        d->blosc.blosc_cbuffer_sizes(from, &bytes, &packed, &block);
    if (packed != from_bytes || block > bytes)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "blosc: its header says %zu of %zu bytes",
                        packed, from_bytes);
    if (bytes != to_bytes) return fail_size(bytes, to_bytes, err);
    int got = d->blosc.blosc_decompress_ctx(from, to, to_bytes, 1);
    return got >= 0 && (size_t)got == to_bytes
               ? RFX_OK
               : rfx_fail(err, RFX_STATUS_MALFORMED, "blosc: broken data, or no memory");
}

enum rfx_status rfx_zarr_decode(struct rfx_zarr_decoder *decoder, const void *from,
                                size_t from_bytes, void *to, size_t to_bytes,
                                struct rfx_error *err) {
    if (decoder->codec == RFX_ZARR_CODEC_ZSTD)
        return unpack_zstd(decoder, from, from_bytes, to, to_bytes, err);
    if (decoder->codec == RFX_ZARR_CODEC_BLOSC)
        return unpack_blosc(decoder, from, from_bytes, to, to_bytes, err);
    return unpack_zlib(decoder, from, from_bytes, to, to_bytes, err);
}

size_t rfx_zarr_decoder_bytes(enum rfx_zarr_codec codec, size_t chunk_bytes) {
    size_t own = sizeof(struct rfx_zarr_decoder);
    if (codec == RFX_ZARR_CODEC_ZSTD) return own + RFX_ZSTD_UNPACKING_BYTES;
    if (codec == RFX_ZARR_CODEC_BLOSC) return own + BLOSC_BYTES + BLOSC_COPIES * chunk_bytes;
    return codec == RFX_ZARR_CODEC_NONE ? own : own + ZLIB_BYTES;
}

size_t rfx_zarr_packed_bytes(size_t chunk_bytes) {
    return chunk_bytes + chunk_bytes / 64 + 4096;
}
