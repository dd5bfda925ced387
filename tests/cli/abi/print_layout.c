/* Prints what programs that are built take from rfexec.h: where each member of each struct lies,
 * and the number of each enumerator. The same with every compiler for a processor of 64 bits;
 * tests/cli/test_abi.sh compares it with rfexec/api/layout.txt. Fails when a member is left out
 * here: then the next one does not lie where it would. */
#include <stddef.h>
#include <stdio.h>

#include "rfexec/rfexec.h"

static size_t end;
static int gaps;

static void member(const char *name, size_t offset, size_t size, size_t alignment) {
    size_t expected = (end + alignment - 1) / alignment * alignment;
    printf("  %3zu %3zu  %s\n", offset, size, name);
    if (offset != expected) {
        printf("  expected at %zu: a member before it is missing in print_layout.c\n", expected);
        gaps++;
    }
    end = offset + size;
}

static void whole(size_t size, size_t alignment) {
    if (size != (end + alignment - 1) / alignment * alignment) {
        printf("  of %zu bytes: the last members are missing in print_layout.c\n", size);
        gaps++;
    }
    end = 0;
}

#define BEGIN(s) printf("struct %s %zu\n", #s, sizeof(struct s))
#define MEMBER(s, m)                                              \
    member(#m, offsetof(struct s, m), sizeof(((struct s *)0)->m), \
           _Alignof(__typeof__(((struct s *)0)->m)))
#define END(s) whole(sizeof(struct s), _Alignof(struct s))
#define VALUE(e) printf("%s %d\n", #e, (int)(e))

static void print_options(void) {
    BEGIN(rfx_why);
    MEMBER(rfx_why, text);
    END(rfx_why);
    BEGIN(rfx_open_options);
    MEMBER(rfx_open_options, size);
    MEMBER(rfx_open_options, rows);
    MEMBER(rfx_open_options, columns);
    MEMBER(rfx_open_options, seed);
    MEMBER(rfx_open_options, convolution);
    MEMBER(rfx_open_options, allocate);
    MEMBER(rfx_open_options, release);
    MEMBER(rfx_open_options, memory_user);
    MEMBER(rfx_open_options, pad_to);
    MEMBER(rfx_open_options, padding);
    MEMBER(rfx_open_options, int8);
    MEMBER(rfx_open_options, dequantize);
    MEMBER(rfx_open_options, join_heads);
    MEMBER(rfx_open_options, head_file);
    MEMBER(rfx_open_options, late_nodes);
    END(rfx_open_options);
    BEGIN(rfx_result_file);
    MEMBER(rfx_result_file, size);
    MEMBER(rfx_result_file, output);
    MEMBER(rfx_result_file, bits);
    MEMBER(rfx_result_file, path);
    MEMBER(rfx_result_file, low);
    MEMBER(rfx_result_file, high);
    MEMBER(rfx_result_file, compression);
    MEMBER(rfx_result_file, overviews);
    MEMBER(rfx_result_file, channel_names);
    MEMBER(rfx_result_file, tile);
    MEMBER(rfx_result_file, cog);
    MEMBER(rfx_result_file, zarr_format);
    MEMBER(rfx_result_file, chunk);
    MEMBER(rfx_result_file, thresholds);
    MEMBER(rfx_result_file, n_thresholds);
    MEMBER(rfx_result_file, corners);
    MEMBER(rfx_result_file, all_labels);
    MEMBER(rfx_result_file, pixels);
    MEMBER(rfx_result_file, least_area);
    MEMBER(rfx_result_file, classes);
    MEMBER(rfx_result_file, answer_bytes);
    MEMBER(rfx_result_file, head);
    MEMBER(rfx_result_file, score);
    MEMBER(rfx_result_file, agnostic);
    MEMBER(rfx_result_file, overlap);
    MEMBER(rfx_result_file, most_boxes);
    MEMBER(rfx_result_file, distance);
    MEMBER(rfx_result_file, within);
    MEMBER(rfx_result_file, bins);
    MEMBER(rfx_result_file, bins_low);
    MEMBER(rfx_result_file, bins_high);
    MEMBER(rfx_result_file, simplify);
    MEMBER(rfx_result_file, soft_nms);
    MEMBER(rfx_result_file, class_count);
    MEMBER(rfx_result_file, quantiles);
    MEMBER(rfx_result_file, n_quantiles);
    END(rfx_result_file);
    BEGIN(rfx_run_options);
    MEMBER(rfx_run_options, size);
    MEMBER(rfx_run_options, memory_bytes);
    MEMBER(rfx_run_options, progress);
    MEMBER(rfx_run_options, user);
    MEMBER(rfx_run_options, threads);
    MEMBER(rfx_run_options, bgr);
    MEMBER(rfx_run_options, raw);
    MEMBER(rfx_run_options, scale);
    MEMBER(rfx_run_options, mean);
    MEMBER(rfx_run_options, std);
    MEMBER(rfx_run_options, n_mean);
    MEMBER(rfx_run_options, n_std);
    MEMBER(rfx_run_options, max_pixels);
    MEMBER(rfx_run_options, stop);
    MEMBER(rfx_run_options, write);
    MEMBER(rfx_run_options, spill_folder);
    MEMBER(rfx_run_options, page);
    MEMBER(rfx_run_options, channels);
    MEMBER(rfx_run_options, n_channels);
    MEMBER(rfx_run_options, as_stored);
    MEMBER(rfx_run_options, observe);
    MEMBER(rfx_run_options, region_row);
    MEMBER(rfx_run_options, region_column);
    MEMBER(rfx_run_options, region_rows);
    MEMBER(rfx_run_options, region_columns);
    MEMBER(rfx_run_options, files);
    MEMBER(rfx_run_options, n_files);
    MEMBER(rfx_run_options, plan_file);
    MEMBER(rfx_run_options, typed_outputs);
    MEMBER(rfx_run_options, mask);
    END(rfx_run_options);
}

static void print_values(void) {
    BEGIN(rfx_area);
    MEMBER(rfx_area, row);
    MEMBER(rfx_area, column);
    MEMBER(rfx_area, rows);
    MEMBER(rfx_area, columns);
    MEMBER(rfx_area, channels);
    MEMBER(rfx_area, row_step);
    MEMBER(rfx_area, column_step);
    MEMBER(rfx_area, channel_step);
    END(rfx_area);
    BEGIN(rfx_source);
    MEMBER(rfx_source, size);
    MEMBER(rfx_source, values);
    MEMBER(rfx_source, row_step);
    MEMBER(rfx_source, column_step);
    MEMBER(rfx_source, channel_step);
    MEMBER(rfx_source, read);
    MEMBER(rfx_source, user);
    MEMBER(rfx_source, concurrent);
    MEMBER(rfx_source, samples);
    MEMBER(rfx_source, sample_bits);
    END(rfx_source);
    BEGIN(rfx_forecast);
    MEMBER(rfx_forecast, size);
    MEMBER(rfx_forecast, peak_bytes);
    MEMBER(rfx_forecast, activation_bytes);
    MEMBER(rfx_forecast, weight_bytes);
    MEMBER(rfx_forecast, scratch_bytes);
    MEMBER(rfx_forecast, picture_bytes);
    MEMBER(rfx_forecast, reserve_bytes);
    MEMBER(rfx_forecast, macs);
    MEMBER(rfx_forecast, macs_whole);
    MEMBER(rfx_forecast, plan);
    MEMBER(rfx_forecast, spilled_bytes);
    END(rfx_forecast);
}

static void print_reports(void) {
    BEGIN(rfx_layer_report);
    MEMBER(rfx_layer_report, name);
    MEMBER(rfx_layer_report, op);
    MEMBER(rfx_layer_report, n_dims);
    MEMBER(rfx_layer_report, global);
    MEMBER(rfx_layer_report, dims);
    MEMBER(rfx_layer_report, field);
    MEMBER(rfx_layer_report, field_padding);
    MEMBER(rfx_layer_report, jump);
    MEMBER(rfx_layer_report, macs);
    MEMBER(rfx_layer_report, parameters);
    MEMBER(rfx_layer_report, output_bytes);
    MEMBER(rfx_layer_report, live_bytes);
    END(rfx_layer_report);
    BEGIN(rfx_stage_report);
    MEMBER(rfx_stage_report, mode);
    MEMBER(rfx_stage_report, first);
    MEMBER(rfx_stage_report, last);
    MEMBER(rfx_stage_report, tiles);
    MEMBER(rfx_stage_report, band_rows);
    MEMBER(rfx_stage_report, macs);
    MEMBER(rfx_stage_report, arena_bytes);
    MEMBER(rfx_stage_report, spilled_bytes);
    END(rfx_stage_report);
    BEGIN(rfx_step_report);
    MEMBER(rfx_step_report, size);
    MEMBER(rfx_step_report, stage);
    MEMBER(rfx_step_report, n_stages);
    MEMBER(rfx_step_report, work);
    MEMBER(rfx_step_report, layer);
    MEMBER(rfx_step_report, name);
    MEMBER(rfx_step_report, output);
    MEMBER(rfx_step_report, step);
    MEMBER(rfx_step_report, done);
    MEMBER(rfx_step_report, total);
    MEMBER(rfx_step_report, row);
    MEMBER(rfx_step_report, column);
    MEMBER(rfx_step_report, rows);
    MEMBER(rfx_step_report, columns);
    MEMBER(rfx_step_report, channels);
    MEMBER(rfx_step_report, planned_bytes);
    MEMBER(rfx_step_report, held_bytes);
    MEMBER(rfx_step_report, seconds);
    END(rfx_step_report);
}

static void print_numbers(void) {
    VALUE(RFX_CODE_OK);
    VALUE(RFX_CODE_USAGE);
    VALUE(RFX_CODE_REFUSED);
    VALUE(RFX_CODE_BUDGET);
    VALUE(RFX_CODE_SYSTEM);
    VALUE(RFX_CODE_CANCELLED);
    VALUE(RFX_CONVOLUTION_DIRECT);
    VALUE(RFX_CONVOLUTION_OPENBLAS);
    VALUE(RFX_CONVOLUTION_WINOGRAD);
    VALUE(RFX_PADDING_REFLECT);
    VALUE(RFX_PADDING_EDGE);
    VALUE(RFX_PADDING_ZERO);
    VALUE(RFX_INT8_ONNXRUNTIME);
    VALUE(RFX_INT8_STANDARD);
    VALUE(RFX_STEP_WORK_READ);
    VALUE(RFX_STEP_WORK_COMPUTE);
    VALUE(RFX_STEP_WORK_SUM);
    VALUE(RFX_STEP_WORK_KEEP);
    VALUE(RFX_STEP_WORK_WRITE);
    VALUE(RFX_STEP_WORK_SPILL);
    VALUE(RFX_STEP_WORK_FETCH);
    VALUE(RFX_STEP_WORK_PACK);
    VALUE(RFX_MAX_DIMS);
}

int main(void) {
    print_options();
    print_values();
    print_reports();
    print_numbers();
    return gaps == 0 ? 0 : 1;
}
