/* Codes, texts and sized structs of the public header; see api_support.h. */
#include "rfexec/api/api_support.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rfexec/output/answer_options.h"
#include "rfexec/run/fit_size.h"

/* A size above this limit is not that of a newer version: the member was never set. */
#define MOST_STRUCT_BYTES ((size_t)4096)
#define MOST_THREADS 1024

/* Sizes of the structs in their first version. A smaller size means that the member was never set.
 */
enum {
    OPEN_OPTIONS_FIRST = 32,
    RUN_OPTIONS_FIRST = 72,
    RESULT_FILE_FIRST = 80,
    FORECAST_FIRST = 472,
    SOURCE_FIRST = 64
};

const char *rfx_version(void) {
    return RFX_VERSION;
}

enum rfx_code rfx_code_of_status(enum rfx_status status) {
    switch (status) {
        case RFX_OK:
            return RFX_CODE_OK;
        case RFX_STATUS_INVALID_ARGUMENT:
            return RFX_CODE_USAGE;
        case RFX_STATUS_UNSUPPORTED:
        case RFX_STATUS_MALFORMED:
            return RFX_CODE_REFUSED;
        case RFX_STATUS_BUDGET_IMPOSSIBLE:
            return RFX_CODE_BUDGET;
        case RFX_STATUS_CANCELLED:
            return RFX_CODE_CANCELLED;
        case RFX_STATUS_OUT_OF_MEMORY:
        case RFX_STATUS_IO:
        case RFX_STATUS_INTERNAL:
        case RFX_STATUS_COUNT:
            break;
    }
    return RFX_CODE_SYSTEM;
}

/* The library's texts name options of the program. Callers of the library must read the name of the
 * struct member instead. This table lists options whose member has another name; all others have
 * the same name with underscores for dashes. */
static const struct {
    const char *option, *member;
} members[] = {{"--size HxW", "rows and columns"},
               {"--memory", "memory_bytes"},
               {"--spill DIR", "spill_folder"},
               {"--spill", "spill_folder"},
               {"--no-orient", "as_stored"},
               {"--max-pixels, ", ""},
               {"--level", "page"}};

/* Writes the member's name for the option at `at` to `to`, at most `room` bytes. Sets *used to the
 * number of bytes written. Returns the text after the option. */
static const char *put_member(const char *at, char *to, size_t room, size_t *used) {
    const char *text = at + 2;
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz-"), begin = 0;
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        size_t length = strlen(members[i].option);
        if (strncmp(at, members[i].option, length) != 0) continue;
        begin = length;
        text = members[i].member;
        n = strlen(text);
        break;
    }
    n = n < room ? n : room;
    for (size_t i = 0; i < n; i++) to[i] = begin == 0 && text[i] == '-' ? '_' : text[i];
    *used = n;
    return begin != 0 ? at + begin : at + 2 + strspn(at + 2, "abcdefghijklmnopqrstuvwxyz-");
}

/* Copies a text and replaces names of options by names of members. */
static void put_text(const char *text, char *to, size_t size) {
    size_t n = 0;
    for (const char *at = text; *at != '\0' && n + 1 < size;) {
        bool option = (at == text || at[-1] == ' ' || at[-1] == '(') && at[0] == '-' &&
                      at[1] == '-' && at[2] >= 'a' && at[2] <= 'z';
        size_t used = 1;
        if (option)
            at = put_member(at, to + n, size - 1 - n, &used);
        else
            to[n] = *at++;
        n += used;
    }
    to[n] = '\0';
}

enum rfx_code rfx_api_result(enum rfx_status status, const struct rfx_error *err,
                             struct rfx_why *why) {
    const char *text = err->text[0] != '\0' ? err->text : rfx_status_name(status);
    if (why != NULL) put_text(status == RFX_OK ? "" : text, why->text, sizeof why->text);
    return rfx_code_of_status(status);
}

enum rfx_status rfx_api_need(const void *pointer, const char *name, struct rfx_error *err) {
    return pointer != NULL ? RFX_OK
                           : rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%s is NULL", name);
}

void *rfx_api_create(const struct rfx_memory_hooks *hooks, size_t bytes, const char *what,
                     struct rfx_memory **mem, struct rfx_error *err) {
    *mem = rfx_memory_create_with(hooks);
    void *object = *mem != NULL ? rfx_memory_calloc(*mem, 1, bytes) : NULL;
    if (object != NULL) return object;
    rfx_memory_free(*mem);
    (void)rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "out of memory: cannot allocate %s", what);
    return NULL;
}

enum rfx_status rfx_api_opening(enum rfx_status status, const char *path) {
    struct stat info;
    if (status != RFX_STATUS_IO && status != RFX_STATUS_INVALID_ARGUMENT) return status;
    bool file = stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, R_OK) == 0;
    return file ? status : RFX_STATUS_MALFORMED;
}

static bool all_zero(const unsigned char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != 0) return false;
    return true;
}

static enum rfx_status check_size(size_t size, size_t first_bytes, const char *name,
                                  struct rfx_error *err) {
    if (size >= first_bytes && size <= MOST_STRUCT_BYTES) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "struct %s says a size of %zu bytes: at least %zu are needed; was it set?",
                    name, size, first_bytes);
}

/* Copies a caller's struct of `size` bytes over the defaults in `known`. The size was checked
 * before. INVALID_ARGUMENT: bytes after known_bytes are not zero. */
static enum rfx_status read_sized(void *known, size_t known_bytes, const void *given, size_t size,
                                  const char *name, struct rfx_error *err) {
    size_t common = size < known_bytes ? size : known_bytes;
    if (!all_zero((const unsigned char *)given + common, size - common))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "struct %s sets members that rfexec %s does not know", name, rfx_version());
    memcpy(known, given, common);
    return RFX_OK;
}

/* Sets a caller's struct of `size` bytes to `defaults`. Members that this library does not know
 * become zero. */
static void write_sized(void *given, size_t size, const void *defaults, size_t known_bytes) {
    size_t common = size < known_bytes ? size : known_bytes;
    memset(given, 0, size);
    memcpy(given, defaults, common);
}

static const struct rfx_open_options open_defaults = {.size = sizeof open_defaults};

void rfx_open_options_init(struct rfx_open_options *options, size_t size) {
    struct rfx_open_options defaults = open_defaults;
    if (options == NULL) return;
    defaults.size = size;
    write_sized(options, size, &defaults, sizeof defaults);
}

bool rfx_api_pad_mode(enum rfx_padding padding, enum rfx_pad_mode *mode) {
    switch (padding) {
        case RFX_PADDING_REFLECT:
            *mode = RFX_PAD_REFLECT;
            return true;
        case RFX_PADDING_EDGE:
            *mode = RFX_PAD_EDGE;
            return true;
        case RFX_PADDING_ZERO:
            *mode = RFX_PAD_CONSTANT;
            return true;
    }
    return false;
}

bool rfx_api_conv_choice(enum rfx_convolution convolution, enum rfx_conv_choice *choice) {
    switch (convolution) {
        case RFX_CONVOLUTION_DIRECT:
            *choice = RFX_CONV_DIRECT;
            return true;
        case RFX_CONVOLUTION_OPENBLAS:
            *choice = RFX_CONV_OPENBLAS;
            return true;
        case RFX_CONVOLUTION_WINOGRAD:
            *choice = RFX_CONV_WINOGRAD;
            return true;
    }
    return false;
}

bool rfx_api_int8_choice(enum rfx_int8 int8, enum rfx_int8_choice *choice) {
    switch (int8) {
        case RFX_INT8_ONNXRUNTIME:
            *choice = RFX_INT8_ORT;
            return true;
        case RFX_INT8_STANDARD:
            *choice = RFX_INT8_SPEC;
            return true;
    }
    return false;
}

enum rfx_status rfx_api_read_open_options(const struct rfx_open_options *given,
                                          struct rfx_open_options *out, struct rfx_error *err) {
    *out = open_defaults;
    if (given == NULL) return RFX_OK;
    static const char name[] = "rfx_open_options";
    enum rfx_status status = check_size(given->size, OPEN_OPTIONS_FIRST, name, err);
    if (status == RFX_OK) status = read_sized(out, sizeof *out, given, given->size, name, err);
    if (status != RFX_OK) return status;
    if (out->rows < 0 || out->columns < 0 || (out->rows == 0) != (out->columns == 0))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "an image of %lld rows and %lld columns: both must be positive, or both 0 "
                        "for the model's own",
                        (long long)out->rows, (long long)out->columns);
    if ((out->allocate == NULL) != (out->release == NULL))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "memory: %s is given, %s is not: both are needed",
                        out->allocate != NULL ? "allocate" : "release",
                        out->allocate != NULL ? "release" : "allocate");
    enum rfx_pad_mode mode;
    if (out->pad_to < 0 || out->pad_to > RFX_FIT_MOST)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "pad_to is %lld: 0 to %d are possible",
                        (long long)out->pad_to, RFX_FIT_MOST);
    if (!rfx_api_pad_mode(out->padding, &mode))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "padding is %d: rfexec %s knows no such padding", (int)out->padding,
                        rfx_version());
    enum rfx_conv_choice choice;
    if (!rfx_api_conv_choice(out->convolution, &choice))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "convolution is %d: rfexec %s knows no such arithmetic",
                        (int)out->convolution, rfx_version());
    enum rfx_int8_choice int8;
    if (!rfx_api_int8_choice(out->int8, &int8))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "int8 is %d: rfexec %s knows no such arithmetic", (int)out->int8,
                        rfx_version());
    return RFX_OK;
}

static struct rfx_result_file result_file_defaults(void) {
    return (struct rfx_result_file){.size = sizeof(struct rfx_result_file),
                                    .score = RFX_ANSWER_SCORE,
                                    .overlap = RFX_ANSWER_OVERLAP};
}

void rfx_result_file_init(struct rfx_result_file *file, size_t size) {
    struct rfx_result_file defaults = result_file_defaults();
    defaults.size = size;
    if (file != NULL) write_sized(file, size, &defaults, sizeof defaults);
}

enum rfx_status rfx_api_read_result_file(const struct rfx_result_file *given,
                                         struct rfx_result_file *out, struct rfx_error *err) {
    static const char name[] = "rfx_result_file";
    *out = result_file_defaults();
    enum rfx_status status = check_size(given->size, RESULT_FILE_FIRST, name, err);
    return status == RFX_OK ? read_sized(out, sizeof *out, given, given->size, name, err) : status;
}

static struct rfx_run_options run_defaults(void) {
    struct rfx_image_options image = rfx_image_default_options();
    return (struct rfx_run_options){.size = sizeof(struct rfx_run_options), .scale = image.scale};
}

void rfx_run_options_init(struct rfx_run_options *options, size_t size) {
    struct rfx_run_options defaults = run_defaults();
    if (options == NULL) return;
    defaults.size = size;
    write_sized(options, size, &defaults, sizeof defaults);
}

static int usable_processors(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    int count = CPU_COUNT(&set);
    return count < 1 ? 1 : count < MOST_THREADS ? count : MOST_THREADS;
}

static enum rfx_status check_numbers(const char *name, const float *numbers, int n,
                                     struct rfx_error *err) {
    if (n >= 0 && n <= RFX_IMAGE_MAX_BANDS && (n == 0) == (numbers == NULL)) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "%s is %s and n_%s %d: 1 to %d numbers, or NULL and 0 for the default", name,
                    numbers != NULL ? "given" : "NULL", name, n, RFX_IMAGE_MAX_BANDS);
}

/* Checks the options that select a part of a picture file: page, region, channels. */
static enum rfx_status check_choice(const struct rfx_run_options *o, struct rfx_error *err) {
    if (o->page < 0)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "page is %lld: they count from 0",
                        (long long)o->page);
    if (o->region_row < 0 || o->region_column < 0 || o->region_rows < 0 || o->region_columns < 0 ||
        (o->region_rows == 0) != (o->region_columns == 0) ||
        o->region_row > INT64_MAX - o->region_rows ||
        o->region_column > INT64_MAX - o->region_columns)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "region has %lld rows from %lld on and %lld columns from %lld on: counts "
                        "must be positive, or both 0 for all of the picture",
                        (long long)o->region_rows, (long long)o->region_row,
                        (long long)o->region_columns, (long long)o->region_column);
    if (o->n_channels < 0 || o->n_channels > RFX_IMAGE_MAX_BANDS ||
        (o->n_channels == 0) != (o->channels == NULL))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "channels is %s and n_channels %d: 1 to %d numbers, or NULL and 0 for all",
                        o->channels != NULL ? "given" : "NULL", o->n_channels, RFX_IMAGE_MAX_BANDS);
    for (int i = 0; i < o->n_channels; i++)
        if (o->channels[i] < 1 || o->channels[i] > UINT16_MAX)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                            "channels[%d] is %d: bands count from 1 to %d", i, o->channels[i],
                            UINT16_MAX);
    if (o->n_channels == 0 || o->bgr == 0) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "channels says the order: bgr has to be 0");
}

enum rfx_status rfx_api_read_run_options(const struct rfx_run_options *given,
                                         struct rfx_run_options *out, struct rfx_error *err) {
    static const char name[] = "rfx_run_options";
    enum rfx_status status = RFX_OK;
    *out = run_defaults();
    if (given != NULL) status = check_size(given->size, RUN_OPTIONS_FIRST, name, err);
    if (given != NULL && status == RFX_OK)
        status = read_sized(out, sizeof *out, given, given->size, name, err);
    if (status != RFX_OK) return status;
    if (out->threads < 0 || out->threads > MOST_THREADS)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "threads is %d: 1 to %d, or 0 for as many as there are processors",
                        out->threads, MOST_THREADS);
    if (out->max_pixels < 0)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "max_pixels is %lld: a number of pixels, or 0 for the default",
                        (long long)out->max_pixels);
    if (out->threads == 0) out->threads = usable_processors();
    status = check_numbers("mean", out->mean, out->n_mean, err);
    if (status == RFX_OK) status = check_numbers("std", out->std, out->n_std, err);
    return status == RFX_OK ? check_choice(out, err) : status;
}

static struct rfx_rect region_of(const struct rfx_run_options *o) {
    return rfx_rect_make(o->region_row, o->region_row + o->region_rows, o->region_column,
                         o->region_column + o->region_columns);
}

struct rfx_image_options rfx_api_image_options(const struct rfx_run_options *options,
                                               int64_t channels, struct rfx_image_bands *bands) {
    struct rfx_image_options image = {.scale = options->scale,
                                      .raw = options->raw != 0,
                                      .mean = options->mean,
                                      .std = options->std,
                                      .n_mean = options->n_mean,
                                      .n_std = options->n_std,
                                      .bgr = options->bgr != 0,
                                      .channels = channels,
                                      .page = options->page,
                                      .region = region_of(options),
                                      .as_stored = options->as_stored != 0,
                                      .folder = options->spill_folder};
    bands->n = options->n_channels;
    for (int i = 0; i < bands->n; i++) bands->numbers[i] = (uint16_t)options->channels[i];
    if (bands->n > 0) image.bands = bands;
    if (options->memory_bytes == 0)
        image.max_pixels = options->max_pixels != 0 ? options->max_pixels : RFX_IMAGE_WHOLE_PIXELS;
    return image;
}

enum rfx_status rfx_api_check_forecast(const struct rfx_forecast *forecast, struct rfx_error *err) {
    enum rfx_status status = rfx_api_need(forecast, "forecast", err);
    return status != RFX_OK ? status
                            : check_size(forecast->size, FORECAST_FIRST, "rfx_forecast", err);
}

void rfx_api_write_forecast(const struct rfx_forecast *known, struct rfx_forecast *given) {
    size_t size = given->size;
    write_sized(given, size, known, sizeof *known);
    given->size = size;
}

void rfx_api_write_forecast_of(const struct rfx_plan *plan, struct rfx_forecast *given) {
    struct rfx_forecast f = {.size = sizeof f,
                             .peak_bytes = plan->peak_bytes,
                             .activation_bytes = plan->bytes.arena,
                             .weight_bytes = plan->bytes.weights,
                             .scratch_bytes = plan->bytes.scratch,
                             .picture_bytes = plan->bytes.source,
                             .reserve_bytes = plan->bytes.reserve,
                             .macs = plan->macs,
                             .macs_whole = plan->macs_untiled,
                             .spilled_bytes = plan->spill.most};
    rfx_plan_describe(plan, f.plan, sizeof f.plan);
    rfx_api_write_forecast(&f, given);
}

enum rfx_status rfx_api_read_source(const struct rfx_source *given, struct rfx_source *out,
                                    struct rfx_error *err) {
    static const char name[] = "rfx_source";
    *out = (struct rfx_source){.size = sizeof *out};
    if (given == NULL) return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "no source");
    enum rfx_status status = check_size(given->size, SOURCE_FIRST, name, err);
    if (status == RFX_OK) status = read_sized(out, sizeof *out, given, given->size, name, err);
    if (status != RFX_OK) return status;
    int kinds = (out->values != NULL) + (out->read != NULL) + (out->samples != NULL);
    if (kinds != 1)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "a source gives %s",
                        kinds == 0 ? "neither values nor read nor samples"
                                   : "more than one of values, read and samples");
    if (out->samples != NULL && out->sample_bits != 8 && out->sample_bits != 16)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "sample_bits is %d: 8 or 16",
                        out->sample_bits);
    return RFX_OK;
}
