/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding base64 against CPython's binascii, with the cases of make_json_cases.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../src/server/base64.h"
#include "cases.h"

static void check_result(const case_field fields[CASE_FIELDS], const char *out, size_t size, bool good,
                         const char *error) {
    const bool expected_good = fields[1].text[0] == '=';
    const char *shown = good ? out : error;
    const size_t shown_size = good ? size : strlen(error);
    if (good != expected_good || shown_size != fields[1].size - 1 || memcmp(shown, fields[1].text + 1, shown_size) != 0)
        fail_msg("%.*s\n  gives %d %.*s\n  not   %.*s", (int)fields[0].size, fields[0].text, good, (int)shown_size,
                 shown, (int)fields[1].size, fields[1].text);
}

static void check_case(case_field fields[CASE_FIELDS]) {
    const size_t size = fields[0].size;
    char error[BASE64_ERROR_SIZE] = "";
    size_t out_size = 0;
    char *out = malloc(base64_capacity(size));
    const bool good = base64_decode(fields[0].text, size, out, &out_size, error);
    check_result(fields, out, out_size, good, error);
    free(out);
    /* In its own place. */
    char *text = copy_bytes(fields[0].text, size);
    assert_int_equal(base64_decode(text, size, text, &out_size, error), good);
    check_result(fields, text, out_size, good, error);
    free(text);
}

static void test_cases(void **state) {
    (void)state;
    for_each_case(500, 3, check_case);
}

/* Every byte at every place of the steps of 32 and of 4 characters is taken or refused as alone. */
static void test_every_byte(void **state) {
    (void)state;
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t at = 0; at < 96; at++) {
        for (int byte = 1; byte < 256; byte++) {
            char text[96], error[BASE64_ERROR_SIZE];
            unsigned char out[96];
            size_t size;
            memset(text, 'A', sizeof text);
            text[at] = (char)byte;
            const char *letter = strchr(alphabet, byte);
            const bool padding = byte == '=' && at == sizeof text - 1;
            assert_int_equal(base64_decode(text, sizeof text, out, &size, error), letter != NULL || padding);
            if (letter == NULL)
                continue;
            const uint32_t bits = (uint32_t)(letter - alphabet) << (18 - 6 * (at % 4));
            assert_int_equal(size, 72);
            for (size_t i = 0; i < size; i++)
                assert_int_equal(out[i], i / 3 == at / 4 ? bits >> (16 - 8 * (i % 3)) & 255 : 0);
        }
    }
}

int main(int argument_count, char **arguments) {
    cases_path = argument_count > 1 ? arguments[1] : "base64_cases.txt";
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_every_byte)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
