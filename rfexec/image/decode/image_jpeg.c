/* JPEG pictures by rows, through libjpeg (libjpeg-turbo).
 *
 * Delivers 8-bit samples, grey (1) or RGB (3), with libjpeg's defaults: the accurate integer
 * transform and smooth chroma upsampling. Rows are delivered as they are stored; base.orientation
 * is set from EXIF. Colour profiles are not applied. CMYK and YCCK become RGB: files hold 255 -
 * ink, so red is (255 - c) * (255 - k) / 255, rounded. 12-bit pictures are refused. Invariants: 1.
 * all memory that libjpeg takes for a picture comes from one pool, whose size is computed from the
 * frame header; 2. row y lies in slot y mod window_rows; 3. a progressive picture, or one whose
 * components come in scans of their own, needs the coefficients of the whole picture (2 bytes a
 * sample): the pool holds strips of them. Such a picture is still a source of rows. Strict: data
 * for which libjpeg would only warn (bad codes, a missing end) are refused. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/temp_file.h"
#include "rfexec/image/decode/decoding.h"
#include "rfexec/image/decode/image_pool.h"
#include "rfexec/image/decode/orientation.h"
#include "rfexec/image/decode/progressive_jpeg.h"
#include "rfexec/image/image_backend.h"
#include "rfexec/image/image_file.h"

/* After jpeglib.h, because jerror.h needs it. */
#include <jerror.h>

/* Memory of tables, decoder structs and row pointers: at most 15 KiB with libjpeg-turbo 2.1.5. */
#define POOL_BASE_BYTES ((size_t)48 * 1024)
#define MAX_SCANS 1000 /* each scan takes the time of a whole picture */
#define MAIN_ROW_GROUPS (DCTSIZE + 2)

struct jpeg_source {
    struct rfx_image_backend base;
    struct rfx_image_file file;
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr input;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;
    bool created, started, broken; /* broken: after an error; only start() may follow */
    bool unsupported;              /* the last error was a valid file of a kind that is not read */
    int64_t next_row;              /* first row that is not decoded yet */
    int64_t window_rows;
    size_t row_bytes;
    size_t pool_bytes; /* bytes for decoding; opening needs POOL_BASE_BYTES only */
    struct rfx_image_pool pool;
    struct rfx_coefficients coefficients;
    unsigned char *window;
    unsigned char *inks;         /* a row of CMYK samples; NULL: the picture is not CMYK */
    char words[JMSG_LENGTH_MAX]; /* libjpeg's last error */
    JOCTET bytes[4096];
};

static struct jpeg_source *self_of(struct rfx_image_backend *b) {
    return (struct jpeg_source *)(void *)b;
}

static struct jpeg_source *owner_of(j_common_ptr jpeg) {
    return jpeg->client_data;
}

_Noreturn static void give_up(struct jpeg_source *s, const char *words) {
    (void)snprintf(s->words, sizeof s->words, "%s", words);
    longjmp(s->escape, 1);
}

_Noreturn static void on_error(j_common_ptr jpeg) {
    struct jpeg_source *s = owner_of(jpeg);
    int code = jpeg->err->msg_code;
    s->unsupported = code == JERR_BAD_PRECISION || code == JERR_SOF_UNSUPPORTED ||
                     code == JERR_ARITH_NOTIMPL || code == JERR_CCIR601_NOTIMPL ||
                     code == JERR_FRACT_SAMPLE_NOTIMPL || code == JERR_NOTIMPL;
    jpeg->err->format_message(jpeg, s->words);
    longjmp(s->escape, 1);
}

/* Called for messages; level -1: a warning. Warnings that do not concern the picture's samples are
 * ignored. */
static void on_message(j_common_ptr jpeg, int level) {
    int code = jpeg->err->msg_code;
    bool harmless = code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR ||
                    code == JWRN_EXTRANEOUS_DATA || code == JWRN_BOGUS_ICC;
    if (level < 0 && !harmless) on_error(jpeg);
}

static void on_init(j_decompress_ptr jpeg) {
    (void)jpeg;
}

static boolean on_fill(j_decompress_ptr jpeg) {
    struct jpeg_source *s = jpeg->client_data;
    size_t got = rfx_image_file_read(&s->file, s->bytes, sizeof s->bytes);
    if (got == 0) give_up(s, "the file ends here");
    s->input.next_input_byte = s->bytes;
    s->input.bytes_in_buffer = got;
    return TRUE;
}

static void on_skip(j_decompress_ptr jpeg, long count) {
    struct jpeg_source *s = jpeg->client_data;
    if (count <= 0) return;
    size_t there = s->input.bytes_in_buffer;
    size_t here = (size_t)count < there ? (size_t)count : there;
    s->input.next_input_byte += here;
    s->input.bytes_in_buffer -= here;
    if ((size_t)count > here) rfx_image_file_skip(&s->file, count - (long)here);
}

/* Called for each row of blocks of a scan, and for each row of the picture. */
static void on_progress(j_common_ptr jpeg) {
    struct jpeg_source *s = owner_of(jpeg);
    if (rfx_memory_is_stopped(s->base.mem)) give_up(s, "stopped");
    if (s->jpeg.input_scan_number > MAX_SCANS) give_up(s, "more than 1000 scans");
}

static void *take(j_common_ptr jpeg, int pool_id, size_t bytes) {
    (void)pool_id; /* start() releases all pools at once */
    struct jpeg_source *s = owner_of(jpeg);
    void *block = rfx_image_pool_take(&s->pool, bytes);
    if (block == NULL) give_up(s, "more memory than the header says");
    return block;
}

/* Returns the bytes of a row of samples. libjpeg's vector code reads and writes whole vectors, so
 * rows are aligned and padded. */
static size_t sample_row_bytes(size_t samples) {
    return rfx_align_up(samples);
}

static JSAMPARRAY take_samples(j_common_ptr jpeg, int pool_id, JDIMENSION samples,
                               JDIMENSION n_rows) {
    size_t row_bytes = sample_row_bytes(samples);
    JSAMPARRAY rows = take(jpeg, pool_id, n_rows * sizeof *rows);
    JSAMPROW block = take(jpeg, pool_id, n_rows * row_bytes);
    for (JDIMENSION i = 0; i < n_rows; i++) rows[i] = block + i * row_bytes;
    return rows;
}

static JBLOCKARRAY take_blocks(j_common_ptr jpeg, int pool_id, JDIMENSION blocks,
                               JDIMENSION n_rows) {
    JBLOCKARRAY rows = take(jpeg, pool_id, n_rows * sizeof *rows);
    JBLOCKROW block = take(jpeg, pool_id, (size_t)n_rows * blocks * sizeof *block);
    for (JDIMENSION i = 0; i < n_rows; i++) rows[i] = block + (size_t)i * blocks;
    return rows;
}

/* Makes an array. Arrays always begin as zeros, whether libjpeg needs that or not. */
static jvirt_barray_ptr request_blocks(j_common_ptr jpeg, int pool_id, boolean zeroed,
                                       JDIMENSION blocks, JDIMENSION n_rows, JDIMENSION access) {
    struct jpeg_source *s = owner_of(jpeg);
    (void)pool_id;
    (void)zeroed;
    jvirt_barray_ptr array =
        rfx_coefficients_request(&s->coefficients, &s->pool, blocks, n_rows, access);
    if (array == NULL) give_up(s, "more memory than the header says");
    return array;
}

static void realize(j_common_ptr jpeg) {
    struct jpeg_source *s = owner_of(jpeg);
    if (!rfx_coefficients_realize(&s->coefficients)) give_up(s, "");
}

static JBLOCKARRAY access_blocks(j_common_ptr jpeg, jvirt_barray_ptr array, JDIMENSION first,
                                 JDIMENSION n_rows, boolean writable) {
    struct jpeg_source *s = owner_of(jpeg);
    JBLOCKARRAY rows =
        rfx_coefficients_access(&s->coefficients, array, first, n_rows, writable != FALSE);
    if (rows == NULL && s->coefficients.number != 0) give_up(s, "");
    if (rows == NULL) ERREXIT(jpeg, JERR_BAD_VIRTUAL_ACCESS);
    return rows;
}

/* Returns the status and writes the text for an error that libjpeg raised; `place` is "header" or
 * "row 7 of 9". */
static enum rfx_status failed(struct jpeg_source *s, const char *place, struct rfx_error *err) {
    const char *name = s->base.name;
    s->broken = true;
    enum rfx_status stopped = rfx_memory_check_stop(s->base.mem, err);
    if (stopped != RFX_OK) return stopped;
    if (s->file.error_number != 0)
        return rfx_fail(err, RFX_STATUS_IO, "%s: %s: %s", name, place,
                        strerror(s->file.error_number));
    if (s->coefficients.number != 0)
        return rfx_fail(err, RFX_STATUS_IO,
                        "%s: comes in several scans, and its coefficients lie in a file of %.1f "
                        "MiB: %s in '%.150s': %s (--spill or TMPDIR is another folder)",
                        name, (double)s->coefficients.file_bytes / 1048576.0, s->coefficients.doing,
                        rfx_temp_folder(s->coefficients.folder), strerror(s->coefficients.number));
    if (s->pool.exhausted)
        return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY,
                        "%s: %s: the JPEG decoder needs more than the %zu bytes set aside for it",
                        name, place, s->pool.bytes);
    return rfx_fail(err, s->unsupported ? RFX_STATUS_UNSUPPORTED : RFX_STATUS_MALFORMED,
                    "%s: %s: %s", name, place, s->words);
}

static enum rfx_status failed_in_row(struct jpeg_source *s, struct rfx_error *err) {
    char place[64];
    if (s->started)
        (void)snprintf(place, sizeof place, "row %" PRId64 " of %" PRId64, s->next_row, s->base.h);
    else
        (void)snprintf(place, sizeof place, "scan %d, before row 0 of %" PRId64,
                       s->jpeg.input_scan_number, s->base.h);
    return failed(s, place, err);
}

/* Replaces libjpeg's allocation functions. libjpeg frees the 2 KiB that it allocated before by
 * itself. */
static void use_pool(struct jpeg_source *s) {
    struct jpeg_memory_mgr *mem = s->jpeg.mem;
    mem->alloc_small = take;
    mem->alloc_large = take;
    mem->alloc_sarray = take_samples;
    mem->alloc_barray = take_blocks;
    mem->request_virt_barray = request_blocks;
    mem->realize_virt_arrays = realize;
    mem->access_virt_barray = access_blocks;
}

static void destroy(struct jpeg_source *s) {
    if (s->created) jpeg_destroy_decompress(&s->jpeg);
    s->created = false;
}

/* Starts the decoder at the beginning of the file and stops before the first scan. */
static enum rfx_status start(struct jpeg_source *s, struct rfx_error *err) {
    destroy(s);
    rfx_image_file_rewind(&s->file);
    rfx_image_pool_restart(&s->pool);
    rfx_coefficients_restart(&s->coefficients);
    s->started = s->broken = s->unsupported = false;
    s->next_row = 0;
    s->jpeg.err = jpeg_std_error(&s->errors);
    s->errors.error_exit = on_error;
    s->errors.emit_message = on_message;
    s->jpeg.client_data = s;
    s->created = true;
    s->jpeg.mem = NULL; /* makes destroy safe if create fails */
    if (setjmp(s->escape) != 0) return failed(s, "header", err);
    jpeg_create_decompress(&s->jpeg);
    use_pool(s);
    s->progress.progress_monitor = on_progress;
    s->jpeg.progress = &s->progress;
    s->input = (struct jpeg_source_mgr){.init_source = on_init,
                                        .fill_input_buffer = on_fill,
                                        .skip_input_data = on_skip,
                                        .resync_to_restart = jpeg_resync_to_restart,
                                        .term_source = on_init};
    s->jpeg.src = &s->input;
    (void)jpeg_read_header(&s->jpeg, TRUE);
    return RFX_OK;
}

/* Converts a row of CMYK to RGB. The file stores 255 - ink of cyan, magenta, yellow and black. */
static void convert_inks(const unsigned char *inks, int64_t cols, unsigned char *rgb) {
    for (int64_t i = 0; i < cols; i++)
        for (int c = 0; c < 3; c++)
            rgb[3 * i + c] = (unsigned char)((inks[4 * i + c] * inks[4 * i + 3] + 127) / 255);
}

static enum rfx_status decode_row(struct jpeg_source *s, struct rfx_error *err) {
    if (s->broken) return failed_in_row(s, err);
    if (setjmp(s->escape) != 0) return failed_in_row(s, err);
    if (!s->started)
        (void)jpeg_start_decompress(&s->jpeg); /* if there are several scans, reads all of them */
    s->started = true;
    unsigned char *to = s->window + (size_t)(s->next_row % s->window_rows) * s->row_bytes;
    JSAMPROW row = s->inks != NULL ? s->inks : to;
    (void)jpeg_read_scanlines(&s->jpeg, &row, 1);
    if (s->inks != NULL) convert_inks(s->inks, s->base.w, to);
    if (s->next_row + 1 == s->base.h)
        (void)jpeg_finish_decompress(&s->jpeg); /* reads up to the end mark */
    s->next_row++;
    return RFX_OK;
}

static enum rfx_status source_set_window(struct rfx_image_backend *b, int64_t rows,
                                         struct rfx_error *err) {
    struct jpeg_source *s = self_of(b);
    rows = rfx_min_i64(rows, b->h);
    rfx_memory_release(b->mem, s->window);
    s->window = NULL;
    s->window_rows = 0;
    destroy(s); /* before its pool is released */
    enum rfx_status status = RFX_OK;
    if (s->pool.bytes < s->pool_bytes)
        status = rfx_image_pool_reserve(b->mem, &s->pool, s->pool_bytes, b->name, err);
    if (status != RFX_OK) return status;
    size_t bytes = (size_t)rows * s->row_bytes; /* no overflow: both below 200,000 */
    s->window = rfx_memory_alloc(b->mem, bytes);
    if (s->window == NULL) return rfx_memory_fail(b->mem, b->name, bytes, err);
    s->window_rows = rows;
    return start(s, err);
}

static enum rfx_status source_fetch(struct rfx_image_backend *b, int64_t y, int64_t x0, int64_t x1,
                                    void *room, const void **samples, int64_t *end,
                                    struct rfx_error *err) {
    (void)room;
    struct jpeg_source *s = self_of(b);
    while (s->next_row <= y) {
        enum rfx_status status = decode_row(s, err);
        if (status != RFX_OK) return status;
    }
    *samples = s->window + (size_t)(y % s->window_rows) * s->row_bytes + (size_t)(x0 * b->c);
    *end = x1;
    return RFX_OK;
}

static enum rfx_status source_rewind(struct rfx_image_backend *b, struct rfx_error *err) {
    return start(self_of(b), err);
}

static void source_free(struct rfx_image_backend *b) {
    struct jpeg_source *s = self_of(b);
    destroy(s);
    rfx_coefficients_close(&s->coefficients);
    rfx_memory_release(b->mem, s->window);
    rfx_memory_release(b->mem, s->inks);
    rfx_image_pool_release(b->mem, &s->pool);
    rfx_image_file_close(&s->file);
    rfx_memory_release(b->mem, s);
}

static const struct rfx_image_backend_ops source_ops = {.set_window = source_set_window,
                                                        .fetch = source_fetch,
                                                        .rewind = source_rewind,
                                                        .free = source_free};

static size_t ceil_to(size_t value, size_t unit) {
    return (value + unit - 1) / unit * unit;
}

/* libjpeg requests up to five rows of coefficient blocks of a component at a time, times its
 * vertical sampling factor. */
#define MOST_ACCESS 5

/* Returns the bytes of one component's rows and, if all scans must be kept, of a strip of its
 * coefficients. No overflow: sides are at most 65,500 and sampling factors 4. */
static size_t component_bytes(struct jpeg_source *s, const jpeg_component_info *part, size_t max_h,
                              size_t max_v, bool keeps_scans) {
    size_t h = (size_t)part->h_samp_factor, v = (size_t)part->v_samp_factor;
    size_t blocks = ceil_to((size_t)s->base.w * h, max_h * DCTSIZE) / (max_h * DCTSIZE);
    size_t block_rows = ceil_to((size_t)s->base.h * v, max_v * DCTSIZE) / (max_v * DCTSIZE);
    size_t bytes = v * MAIN_ROW_GROUPS * sample_row_bytes(blocks * DCTSIZE);
    bytes += max_v * sample_row_bytes(ceil_to((size_t)s->base.w, max_h)); /* upsampled */
    if (!keeps_scans) return bytes;
    size_t across = ceil_to(blocks, h), down = ceil_to(block_rows, v);
    s->base.file_bytes += across * down * sizeof(JBLOCK);
    return bytes + rfx_coefficients_bytes(across, down, MOST_ACCESS * v);
}

/* Reads the frame header; refuses pictures that cannot be delivered. */
static enum rfx_status accept_header(struct jpeg_source *s, struct rfx_error *err) {
    const struct jpeg_decompress_struct *jpeg = &s->jpeg;
    const char *name = s->base.name;
    const bool inks = jpeg->num_components == 4 && jpeg->out_color_space == JCS_CMYK;
    if (jpeg->num_components != 1 && jpeg->num_components != 3 && !inks)
        return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                        "%s: JPEG with %d components; 1, 3 or 4 (CMYK) are read", name,
                        jpeg->num_components);
    s->base.h = jpeg->image_height;
    s->base.w = jpeg->image_width;
    s->base.c = inks ? 3 : jpeg->num_components;
    s->base.sample_bits = 8;
    s->base.orientation = rfx_exif_orientation(&s->file);
    s->row_bytes = (size_t)(s->base.w * s->base.c);
    size_t max_h = 1, max_v = 1;
    for (int i = 0; i < jpeg->num_components; i++) {
        size_t h = (size_t)jpeg->comp_info[i].h_samp_factor;
        size_t v = (size_t)jpeg->comp_info[i].v_samp_factor;
        max_h = h > max_h ? h : max_h;
        max_v = v > max_v ? v : max_v;
    }
    s->pool_bytes = POOL_BASE_BYTES;
    for (int i = 0; i < jpeg->num_components; i++)
        s->pool_bytes += component_bytes(s, &jpeg->comp_info[i], max_h, max_v,
                                         jpeg_has_multiple_scans(&s->jpeg));
    s->base.window_row_bytes = s->row_bytes;
    s->base.pass_picoseconds =
        rfx_decode_picoseconds(RFX_DECODE_JPEG, s->base.h, s->base.w, s->base.c);
    s->base.fixed_bytes = sizeof *s + s->pool_bytes;
    if (!inks) return RFX_OK;
    const size_t bytes = (size_t)s->base.w * 4;
    s->inks = rfx_memory_alloc(s->base.mem, bytes);
    if (s->inks == NULL) return rfx_memory_fail(s->base.mem, name, bytes, err);
    s->base.fixed_bytes += bytes;
    (void)snprintf(s->base.note, sizeof s->base.note,
                   "CMYK is converted to red, green and blue without its colour profile");
    return RFX_OK;
}

enum rfx_status rfx_image_jpeg_open(struct rfx_memory *mem, const char *name,
                                    const struct rfx_image_options *options,
                                    struct rfx_image_backend **out, struct rfx_error *err) {
    struct rfx_image_backend *b;
    enum rfx_status status = rfx_image_backend_create(mem, sizeof(struct jpeg_source), &source_ops,
                                                      name, "JPEG", &b, err);
    if (status != RFX_OK) return status;
    struct jpeg_source *s = self_of(b);
    s->coefficients = (struct rfx_coefficients){.folder = options->folder, .fd = -1};
    status = rfx_image_file_open(&s->file, name, err);
    if (status == RFX_OK)
        status = rfx_image_pool_reserve(mem, &s->pool, POOL_BASE_BYTES, name, err);
    if (status == RFX_OK) status = start(s, err);
    if (status == RFX_OK) status = accept_header(s, err);
    return rfx_image_backend_finish(b, status, out);
}
