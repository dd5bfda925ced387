/* Private: helpers of all functions of the public header: codes, error texts, and structs that
 * begin with their size.
 *
 * Invariants: 1. a struct of another version of the header is read and written only within its own
 * size, so that programs and libraries of different versions work together; 2. a member that this
 * library does not know is refused, not ignored, unless it is zero; zero always means "as before".
 */
#ifndef RFX_RFEXEC_API_API_SUPPORT_H
#define RFX_RFEXEC_API_API_SUPPORT_H

#include "layers/core/memory.h"
#include "layers/core/status.h"
#include "layers/graph/graph.h"
#include "rfexec/image/image_source.h"
#include "rfexec/rfexec.h"
#include "tiler/plan/plan.h"

/* Returns the code that callers of the library and of the program receive for a status. */
enum rfx_code rfx_code_of_status(enum rfx_status status);

/* Returns the code of a status. Writes err's text, or the status's name if the text is empty, to
 * *why, which may be NULL. Names of options of the program become names of members. */
enum rfx_code rfx_api_result(enum rfx_status status, const struct rfx_error *err,
                             struct rfx_why *why);

/* Checks a pointer that a call needs. INVALID_ARGUMENT: it is NULL; the text contains `name`. */
RFX_NODISCARD enum rfx_status rfx_api_need(const void *pointer, const char *name,
                                           struct rfx_error *err);

/* Makes an object of `bytes` zeros in an allocator of its own, *mem, whose blocks come from the
 * hooks. To be freed with rfx_memory_release, and then rfx_memory_free of *mem. NULL: no memory for
 * `what`, which the error says. */
void *rfx_api_create(const struct rfx_memory_hooks *hooks, size_t bytes, const char *what,
                     struct rfx_memory **mem, struct rfx_error *err);

/* Returns the status to report when a file cannot be opened. MALFORMED if it is missing, unreadable
 * or no regular file (a directory, a pipe), whatever the system's reason; else `status`. */
enum rfx_status rfx_api_opening(enum rfx_status status, const char *path);

/* Sets *choice to the internal value of a convolution choice. Returns false for an unknown number.
 */
bool rfx_api_conv_choice(enum rfx_convolution convolution, enum rfx_conv_choice *choice);

/* Sets *choice to the internal value of an arithmetic of 8-bit networks. Returns false for an
 * unknown number. */
bool rfx_api_int8_choice(enum rfx_int8 int8, enum rfx_int8_choice *choice);

/* Sets *mode to the internal value of a padding. Returns false for an unknown number. */
bool rfx_api_pad_mode(enum rfx_padding padding, enum rfx_pad_mode *mode);

/* Sets *out to the defaults, overwritten by the caller's options (given; NULL: none).
 * INVALID_ARGUMENT: the size is not set, or a value is unknown to this library. */
RFX_NODISCARD enum rfx_status rfx_api_read_open_options(const struct rfx_open_options *given,
                                                        struct rfx_open_options *out,
                                                        struct rfx_error *err);

/* Like rfx_api_read_open_options, for run options. out->threads is at least 1. INVALID_ARGUMENT
 * also: a number is out of its range. */
RFX_NODISCARD enum rfx_status rfx_api_read_run_options(const struct rfx_run_options *given,
                                                       struct rfx_run_options *out,
                                                       struct rfx_error *err);

/* Sets *out to the defaults, overwritten by one of the caller's files. INVALID_ARGUMENT: the size
 * is not set, or a member is unknown to this library. */
RFX_NODISCARD enum rfx_status rfx_api_read_result_file(const struct rfx_result_file *given,
                                                       struct rfx_result_file *out,
                                                       struct rfx_error *err);

/* Returns the image source's options for the run options. channels 0: as many as the file has. The
 * chosen bands are written to *bands, which must exist until the picture is open. */
struct rfx_image_options rfx_api_image_options(const struct rfx_run_options *options,
                                               int64_t channels, struct rfx_image_bands *bands);

/* Checks the caller's forecast. INVALID_ARGUMENT: it is NULL, or its member `size` is unset or out
 * of range. */
RFX_NODISCARD enum rfx_status rfx_api_check_forecast(const struct rfx_forecast *forecast,
                                                     struct rfx_error *err);

/* Writes *known into the caller's forecast, as far as given->size allows, and zeroes the rest. */
void rfx_api_write_forecast(const struct rfx_forecast *known, struct rfx_forecast *given);

/* Writes the memory and operations of a plan into the caller's forecast. */
void rfx_api_write_forecast_of(const struct rfx_plan *plan, struct rfx_forecast *given);

/* Copies the caller's source to *out. INVALID_ARGUMENT: it is NULL, its size is not set, or not
 * exactly one of values and read is given. */
RFX_NODISCARD enum rfx_status rfx_api_read_source(const struct rfx_source *given,
                                                  struct rfx_source *out, struct rfx_error *err);
#endif
