/* Private: what all functions of the public header need: codes, texts, and structs that begin with
 * their size.
 *
 * Invariants: 1. a struct of another version of the header is read and written by its own size, so
 * that programs and libraries of different versions go together; 2. a member that this library does
 * not know is refused, not ignored, unless it is zero: zero always means "as before". */
#ifndef RFX_RFEXEC_API_API_SUPPORT_H
#define RFX_RFEXEC_API_API_SUPPORT_H

#include "layers/core/status.h"
#include "layers/graph/graph.h"
#include "rfexec/image/image_source.h"
#include "rfexec/rfexec.h"
#include "tiler/plan/plan.h"

/* What callers of the library, and of the program, are told of a status. */
enum rfx_code rfx_code_of_status(enum rfx_status status);

/* The code of a status, with err's text or else the status's name in why (may be NULL). */
enum rfx_code rfx_api_result(enum rfx_status status, const struct rfx_error *err,
                             struct rfx_why *why);

/* INVALID_ARGUMENT, naming it, where a pointer that a call needs is NULL. */
RFX_NODISCARD enum rfx_status rfx_api_need(const void *pointer, const char *name,
                                           struct rfx_error *err);

/* The status of a failure to open a file: one that cannot be read, a directory and a pipe are as
 * good as broken, whatever the system's reason. */
enum rfx_status rfx_api_opening(enum rfx_status status, const char *path);

/* The arithmetic by its name inside; false: there is none of that number. */
bool rfx_api_conv_choice(enum rfx_convolution convolution, enum rfx_conv_choice *choice);

/* Likewise a padding. */
bool rfx_api_pad_mode(enum rfx_padding padding, enum rfx_pad_mode *mode);

/* The options with those given (NULL: none) over the defaults. INVALID_ARGUMENT: no size, or a
 * value that this library does not know. */
RFX_NODISCARD enum rfx_status rfx_api_read_open_options(const struct rfx_open_options *given,
                                                        struct rfx_open_options *out,
                                                        struct rfx_error *err);

/* As above; threads are at least 1 in *out. INVALID_ARGUMENT also for a number out of its range. */
RFX_NODISCARD enum rfx_status rfx_api_read_run_options(const struct rfx_run_options *given,
                                                       struct rfx_run_options *out,
                                                       struct rfx_error *err);

/* A file of the options' over the defaults. INVALID_ARGUMENT: no size, or a member that this
 * library does not know. */
RFX_NODISCARD enum rfx_status rfx_api_read_result_file(const struct rfx_result_file *given,
                                                       struct rfx_result_file *out,
                                                       struct rfx_error *err);

/* Preprocessing as the image source takes it; channels 0: as the file has them. What it says of
 * bands goes to `bands`, which has to stay while the picture is opened. */
struct rfx_image_options rfx_api_image_options(const struct rfx_run_options *options,
                                               int64_t channels, struct rfx_image_bands *bands);

/* Checks the caller's forecast. INVALID_ARGUMENT: it is NULL, or its member `size` is unset or out
 * of range. */
RFX_NODISCARD enum rfx_status rfx_api_check_forecast(const struct rfx_forecast *forecast,
                                                     struct rfx_error *err);

/* Writes `known` into the caller's forecast, as much as that has room for; the rest is zeroed. */
void rfx_api_write_forecast(const struct rfx_forecast *known, struct rfx_forecast *given);

/* The same with what a plan takes. */
void rfx_api_write_forecast_of(const struct rfx_plan *plan, struct rfx_forecast *given);

/* The source, which must be there and say its size, and either have values or read. */
RFX_NODISCARD enum rfx_status rfx_api_read_source(const struct rfx_source *given,
                                                  struct rfx_source *out, struct rfx_error *err);
#endif
