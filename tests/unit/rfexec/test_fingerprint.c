/* Fingerprints: XXH3-128's published value of nothing, one-shot against portions, single bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include <cmocka.h>

#include "rfexec/fingerprint.h"

static void of_nothing_is_the_known_value(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_fingerprint *fp = NULL;
    char hex[RFX_FINGERPRINT_CHARS];
    assert_int_equal(rfx_fingerprint_create(mem, &fp, NULL), RFX_OK);
    rfx_fingerprint_hex(fp, hex);
    assert_string_equal(hex, "99aa06d3014798d86001c324468d497f");
    rfx_fingerprint_free(fp);
    rfx_fingerprint_free(NULL);
    rfx_memory_fail_after(mem, 0);
    assert_int_equal(rfx_fingerprint_create(mem, &fp, NULL), RFX_STATUS_OUT_OF_MEMORY);
    rfx_memory_free(mem);
}

static void portions_equal_one_shot(void **state) {
    (void)state;
    enum { H = 11, W = 13, C = 5, WIDE = 7 };
    float map[H * W * C], wide[H * W * WIDE];
    for (int i = 0; i < H * W * C; i++) {
        map[i] = (float)(i * 3 - 500) / 7.0f;
        wide[i / C * WIDE + i % C] = map[i];
    }
    for (int i = 0; i < H * W; i++) wide[i * WIDE + 5] = wide[i * WIDE + 6] = (float)i;
    XXH128_hash_t hash = XXH3_128bits(map, sizeof map);
    char wanted[40], hex[RFX_FINGERPRINT_CHARS];
    (void)snprintf(wanted, sizeof wanted, "%016llx%016llx", (unsigned long long)hash.high64,
                   (unsigned long long)hash.low64);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_view views[2] = {rfx_view_dense(map, rfx_rect_full(H, W), C),
                                rfx_view_dense(wide, rfx_rect_full(H, W), WIDE)};
    for (int i = 0; i < 2; i++) {
        struct rfx_fingerprint *fp = NULL;
        assert_int_equal(rfx_fingerprint_create(mem, &fp, NULL), RFX_OK);
        for (int64_t y = 0; y < H; y += 4)
            rfx_fingerprint_add_rect(fp, rfx_rect_make(y, y + 4 < H ? y + 4 : H, 0, W), C,
                                     &views[i]);
        rfx_fingerprint_hex(fp, hex);
        assert_string_equal(hex, wanted);
        const float zeros[2] = {0.0f, -0.0f}; /* one bit apart */
        char plus[RFX_FINGERPRINT_CHARS];
        rfx_fingerprint_add(fp, zeros, 1);
        rfx_fingerprint_hex(fp, plus);
        assert_string_not_equal(plus, hex);
        rfx_fingerprint_free(fp);
        assert_int_equal(rfx_fingerprint_create(mem, &fp, NULL), RFX_OK);
        rfx_fingerprint_add(fp, map, H * W * C);
        rfx_fingerprint_add(fp, zeros + 1, 1);
        rfx_fingerprint_hex(fp, hex);
        assert_string_not_equal(plus, hex);
        rfx_fingerprint_free(fp);
    }
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_nothing_is_the_known_value),
        cmocka_unit_test(portions_equal_one_shot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
