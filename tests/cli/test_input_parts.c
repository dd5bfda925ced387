/* Standard input that is kept, up to a bound, and lists of paths. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/cli/standard_input.h"
#include "tools/commands/batch_list.h"

#define FILE_NAME "input_parts_tmp.txt"

/* Puts a pipe with n bytes in the place of standard input; returns what was there. */
static int replace_input(int n) {
    int ends[2], saved = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    for (int i = 0; i < n; ++i) {
        char byte = (char)(i % 7 + '0');
        assert_int_equal(write(ends[1], &byte, 1), 1);
    }
    (void)close(ends[1]);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    (void)close(ends[0]);
    return saved;
}

static void restore_input(int saved) {
    assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
    (void)close(saved);
}

static bool always(void) {
    return true;
}

static void keeps_what_comes_through_a_pipe(void **state) {
    (void)state;
    struct rfx_error err;
    char bytes[40];
    int64_t kept = -1;
    int saved = replace_input(30);
    assert_int_equal(rfx_standard_input(".", 30, NULL, &kept, &err), RFX_OK);
    assert_int_equal(kept, 30);
    for (int i = 0; i < 2; ++i) { /* by its name, again and again */
        int file = open(RFX_STANDARD_INPUT, O_RDONLY);
        assert_true(file >= 0);
        assert_int_equal(read(file, bytes, sizeof bytes), 30);
        assert_int_equal(bytes[29], '1');
        (void)close(file);
    }
    /* that is a file, which needs no copy unless it is met from another place than its beginning */
    assert_int_equal(lseek(STDIN_FILENO, 0, SEEK_SET), 0);
    assert_int_equal(rfx_standard_input(".", 30, NULL, &kept, &err), RFX_OK);
    assert_int_equal(kept, 0);
    assert_int_equal(lseek(STDIN_FILENO, 10, SEEK_SET), 10);
    assert_int_equal(rfx_standard_input(".", 30, NULL, &kept, &err), RFX_OK);
    assert_int_equal(kept, 20);
    restore_input(saved);
}

static void keeps_no_more_than_it_may(void **state) {
    (void)state;
    struct rfx_error err;
    int64_t kept;
    int saved = replace_input(31);
    assert_int_equal(rfx_standard_input(".", 30, NULL, &kept, &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, "more than 30 bytes"));
    restore_input(saved);
    saved = replace_input(31);
    assert_int_equal(rfx_standard_input(".", 40, always, &kept, &err), RFX_STATUS_CANCELLED);
    assert_int_equal(rfx_standard_input("no/folder", 40, NULL, &kept, &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, "'no/folder': No such file"));
    restore_input(saved);
}

static void write_list(const char *bytes, size_t count) {
    FILE *file = fopen(FILE_NAME, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static void lists_are_cut_at_line_ends(void **state) {
    (void)state;
    static const char text[] = "\n a b.png\r\n\r\n\nx/#1.tif\nlast";
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_batch_list list;
    struct rfx_error err;
    write_list(text, sizeof text - 1);
    assert_int_equal(rfx_batch_list_read(mem, FILE_NAME, &list, &err), RFX_OK);
    assert_int_equal(list.n, 3);
    assert_string_equal(list.paths[0], " a b.png");
    assert_string_equal(list.paths[1], "x/#1.tif");
    assert_string_equal(list.paths[2], "last");
    assert_string_equal(rfx_batch_list_base(list.paths[1]), "#1.tif");
    assert_true(rfx_memory_high_water_bytes(mem) <= list.bytes);
    assert_int_equal(rfx_batch_list_check_bases(&list, &err), RFX_OK);
    rfx_batch_list_free(&list);
    write_list("a\0b\n", 4);
    assert_int_equal(rfx_batch_list_read(mem, FILE_NAME, &list, &err), RFX_STATUS_MALFORMED);
    assert_non_null(strstr(err.text, "byte 1 is zero"));
    rfx_batch_list_free(&list);
    rfx_batch_list_free(&list);
    rfx_memory_free(mem);
}

static void long_lists_are_read_whole(void **state) {
    (void)state;
    enum { N = 30000 };
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_batch_list list;
    struct rfx_error err;
    FILE *file = fopen(FILE_NAME, "wb");
    assert_non_null(file);
    for (int i = 0; i < N; ++i) (void)fprintf(file, "folder/%d.png\n", i);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rfx_batch_list_read(mem, FILE_NAME, &list, &err), RFX_OK);
    assert_int_equal(list.n, N);
    assert_string_equal(list.paths[N - 1], "folder/29999.png");
    assert_int_equal(rfx_batch_list_check_bases(&list, &err), RFX_OK);
    char twice[] = "other/77.png";
    list.paths[N - 1] = twice;
    assert_int_equal(rfx_batch_list_check_bases(&list, &err), RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "'folder/77.png'"));
    assert_non_null(strstr(err.text, "'other/77.png'"));
    rfx_batch_list_free(&list);
    rfx_memory_free(mem);
}

static void survives_failing_allocations(void **state) {
    (void)state;
    for (int k = 0;; ++k) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_batch_list list;
        struct rfx_error err;
        rfx_memory_fail_after(mem, k);
        enum rfx_status status = rfx_batch_list_read(mem, FILE_NAME, &list, &err);
        if (status == RFX_OK) status = rfx_batch_list_check_bases(&list, &err);
        rfx_batch_list_free(&list);
        rfx_memory_free(mem);
        if (status == RFX_OK) break;
        assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
        assert_true(k < 20);
    }
    (void)unlink(FILE_NAME);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_what_comes_through_a_pipe),
        cmocka_unit_test(keeps_no_more_than_it_may),
        cmocka_unit_test(lists_are_cut_at_line_ends),
        cmocka_unit_test(long_lists_are_read_whole),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
