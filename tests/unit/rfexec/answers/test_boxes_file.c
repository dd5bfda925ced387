/* Which outputs can have boxes, and what a writer of boxes does with pieces that do not fit. What
 * the boxes are: tests/cli/test_cli_boxes.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/answers/boxes_file.h"
#include "rfexec/answers/oriented_boxes.h"

#define PATH "boxes_file.json"
enum { CHANNELS = 84, CELLS = 21 }; /* of an image of 32 x 32 pixels */

static const struct rfx_shape shape = {.rank = 3, .dims = {1, CHANNELS, CELLS}};

static struct rfx_output_format format_of(int64_t channels, int64_t channel_step) {
    return (struct rfx_output_format){
        .kind = &rfx_output_json,
        .answer = {.score = 0.25F, .overlap = 0.5, .most_boxes = CELLS},
        .cells = {32, 32, channels, channel_step}};
}

static struct rfx_boxes_file *opened(struct rfx_memory *mem, const struct rfx_output_format *format,
                                     const struct rfx_tensor *tensor) {
    struct rfx_boxes_file *file = NULL;
    struct rfx_error err = {{0}};
    if (rfx_boxes_file_open(mem, PATH, format, tensor, RFX_ANSWER_JSON, &file, &err) != RFX_OK)
        fail_msg("%s", err.text);
    return file;
}

static void discard(struct rfx_memory *mem, struct rfx_boxes_file *file) {
    rfx_boxes_file_free(file);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
    (void)unlink(PATH);
}

static enum rfx_status check(int64_t channels, int64_t channel_step) {
    const struct rfx_tensor tensor = rfx_tensor_plain(&shape, CHANNELS * CELLS);
    const struct rfx_output_format format = format_of(channels, channel_step);
    return rfx_output_format_check(&format, &tensor, "boxes.json", NULL);
}

static void test_values_of_a_candidate_come_together(void **state) {
    (void)state;
    assert_int_equal(check(CHANNELS, CELLS), RFX_OK);             /* maps of all channels */
    assert_int_equal(check(CHANNELS * CELLS, 1), RFX_OK);         /* the whole output at once */
    assert_int_equal(check(CHANNELS, 1), RFX_STATUS_UNSUPPORTED); /* channels on the other axis */
    assert_int_equal(check(4, CELLS), RFX_STATUS_UNSUPPORTED);
    assert_int_equal(check(0, 0), RFX_STATUS_UNSUPPORTED); /* maps of different channels */
}

static void test_cells_are_those_of_all_maps(void **state) {
    struct rfx_end ends[] = {{.output = 1, .channels = 3, .at = {0, 7, 1, 7}},
                             {.output = 0, .channels = 84, .at = {0, 4, 1, 21}},
                             {.output = 0, .channels = 84, .at = {16, 2, 1, 21}},
                             {.output = 0, .channels = 84, .at = {20, 1, 1, 21}}};
    struct rfx_output outputs[2] = {{.name = "boxes"}, {.name = "other"}};
    const struct rfx_graph graph = {
        .input = -1, .n_outputs = 2, .outputs = outputs, .n_ends = 4, .ends = ends};
    struct rfx_output_format format = {.kind = &rfx_output_json};
    (void)state;
    rfx_output_declare(&format, &graph, 0);
    assert_int_equal(format.cells.channels, 84);
    assert_int_equal(format.cells.channel_step, 21);
    for (int k = 1; k < 4; k++) { /* one map has other channels */
        ends[k].channels = 4;
        rfx_output_declare(&format, &graph, 0);
        assert_int_equal(format.cells.channels, 0);
        ends[k].channels = 84;
    }
    for (int k = 1; k < 4; k++) { /* pixels of several candidates: 3, 1 and 2 of 28 values */
        ends[k].channels = 28 * (k == 1 ? 3 : k - 1);
        ends[k].at.channel_step = 1;
    }
    rfx_output_declare(&format, &graph, 0);
    assert_int_equal(format.cells.channels, 28);
    assert_int_equal(format.cells.channel_step, 1);
}

/* A piece whose pixel has two candidates, one of which is above the threshold. */
static void test_pixels_have_several_candidates(void **state) {
    static float values[2 * CHANNELS];
    static const struct rfx_shape last = {.rank = 3, .dims = {1, CELLS, CHANNELS}};
    struct rfx_memory *mem = rfx_memory_create(0);
    const struct rfx_tensor tensor = rfx_tensor_plain(&last, CHANNELS * CELLS);
    struct rfx_output_format format = format_of(CHANNELS, 1);
    const struct rfx_view view = rfx_view_dense(values, rfx_rect_make(0, 1, 0, 1), 2 * CHANNELS);
    struct rfx_end end = {.channels = 2 * CHANNELS, .at = {0, 2 * CHANNELS, 2 * CHANNELS, 1}};
    struct rfx_error err;
    (void)state;
    format.answer.head = "yolov8";
    struct rfx_boxes_file *file = opened(mem, &format, &tensor);
    values[CHANNELS + 4] = 0.5F;
    assert_int_equal(rfx_boxes_file_take(file, &end, view.rect, &view, &err), RFX_OK);
    end.channels = CHANNELS + 1;
    assert_int_equal(rfx_boxes_file_take(file, &end, view.rect, &view, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(rfx_boxes_file_commit(file, &err), RFX_OK);
    assert_int_equal(rfx_boxes_file_found(file).count, 1);
    discard(mem, file);
}

static void test_other_pieces_are_refused(void **state) {
    static float values[CHANNELS];
    struct rfx_memory *mem = rfx_memory_create(0);
    const struct rfx_tensor tensor = rfx_tensor_plain(&shape, CHANNELS * CELLS);
    const struct rfx_output_format format = format_of(CHANNELS, CELLS);
    const struct rfx_view view = rfx_view_dense(values, rfx_rect_make(0, 1, 0, 1), CHANNELS);
    struct rfx_end end = {.channels = CHANNELS, .at = {0, 1, 1, CELLS}};
    struct rfx_error err;
    (void)state;
    struct rfx_boxes_file *file = opened(mem, &format, &tensor);
    values[4] = 0.5F; /* score of class 0 */
    assert_int_equal(rfx_boxes_file_take(file, &end, view.rect, &view, &err), RFX_OK);
    end.at.channel_step = 1;
    assert_int_equal(rfx_boxes_file_take(file, &end, view.rect, &view, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(rfx_boxes_file_commit(file, &err), RFX_OK);
    assert_int_equal(rfx_boxes_file_found(file).count, 1);
    discard(mem, file);
}

/* Turned boxes that the network has chosen: none is dropped. */
static void test_chosen_boxes_stay(void **state) {
    static float values[] = {50, 40, 20, 10, 0.5F, 3, 0.1F, 50, 40, 20, 10, 0.75F, 3, 0.1F};
    const struct rfx_shape chosen = {.rank = 3, .dims = {1, 2, 7}};
    const struct rfx_tensor tensor = rfx_tensor_plain(&chosen, 14);
    struct rfx_output_format format = format_of(14, 1);
    struct rfx_memory *mem = rfx_memory_create(0);
    const struct rfx_view view = rfx_view_dense(values, rfx_rect_make(0, 1, 0, 1), 14);
    struct rfx_error err = {{0}};
    (void)state;
    const struct rfx_end end = {.channels = 14, .at = {0, 1, 14, 1}};
    format.answer.head = "yolo26-obb";
    struct rfx_boxes_file *file = opened(mem, &format, &tensor);
    assert_int_equal(rfx_boxes_file_take(file, &end, view.rect, &view, &err), RFX_OK);
    assert_int_equal(rfx_boxes_file_commit(file, &err), RFX_OK);
    const struct rfx_found found = rfx_boxes_file_found(file);
    assert_int_equal(found.count, 2);
    assert_true(found.oriented[0].score == 0.75F && found.oriented[1].score == 0.5F);
    assert_true(found.oriented[0].index == 1 && found.oriented[0].label == 3);
    discard(mem, file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_of_a_candidate_come_together),
        cmocka_unit_test(test_cells_are_those_of_all_maps),
        cmocka_unit_test(test_pixels_have_several_candidates),
        cmocka_unit_test(test_other_pieces_are_refused),
        cmocka_unit_test(test_chosen_boxes_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
