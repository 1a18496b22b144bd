/* SPDX-License-Identifier: Apache-2.0 */
/* The reader and the writer of JSON against CPython's, with the cases of make_json_cases.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "../../../src/server/clock.h"
#include "../../../src/server/json_reader.h"
#include "cases.h"

static void add_result(json_document *document, json_result result, text_buffer *text) {
    char error[128];
    if (result == JSON_INVALID) {
        snprintf(error, sizeof error, "!%zu %s", document->position, document->error);
        text_buffer_add_text(text, error);
    } else if (result == JSON_READ) {
        text_buffer_add_text(text, "=");
        json_write_value(document, document->nodes, text);
    } else {
        text_buffer_add_text(text, "?");
    }
}

static void check_case(case_field fields[CASE_FIELDS]) {
    char *body = copy_bytes(fields[0].text, fields[0].size);
    json_document document;
    text_buffer text = {0};
    add_result(&document, json_document_read(&document, body, fields[0].size), &text);
    if (text.size != fields[1].size || memcmp(text.data, fields[1].text, text.size) != 0)
        fail_msg("%.*s\n  gives %.*s\n  not   %.*s", (int)fields[0].size, fields[0].text, (int)text.size, text.data,
                 (int)fields[1].size, fields[1].text);
    text_buffer_free(&text);
    json_document_free(&document);
    free(body);
}

static void test_cases(void **state) {
    (void)state;
    for_each_case(2500, 1, check_case);
}

static json_result read_copies(const char *begin, const char *text, size_t count, const char *end) {
    const size_t size = strlen(begin) + count * strlen(text) + strlen(end);
    char *body = malloc(size + 1), *at = stpcpy(body, begin);
    for (size_t i = 0; i < count; i++)
        at = stpcpy(at, text);
    strcpy(at, end);
    json_document document;
    const clock_t before = clock();
    const json_result result = json_document_read(&document, body, size);
    assert_in_range(clock() - before, 0, CLOCKS_PER_SEC / 2);
    text_buffer buffer = {0};
    if (result == JSON_READ)
        json_write_value(&document, document.nodes, &buffer);
    assert_in_range(clock() - before, 0, 2 * CLOCKS_PER_SEC);
    text_buffer_free(&buffer);
    json_document_free(&document);
    free(body);
    return result;
}

static void test_depth(void **state) {
    (void)state;
    assert_int_equal(read_copies("", "[", 100000, ""), JSON_UNREADABLE);
    assert_int_equal(read_copies("", "{\"a\":", 100000, ""), JSON_UNREADABLE);
    assert_int_equal(read_copies("", "[", JSON_DEPTH + 1, ""), JSON_UNREADABLE);
    assert_int_equal(read_copies("", "[", JSON_DEPTH, ""), JSON_INVALID);
    assert_int_equal(read_copies("", "[{\"a\":", JSON_DEPTH / 2, "1"), JSON_INVALID);
    assert_int_equal(read_copies("1", "]", 100000, ""), JSON_INVALID);
}

static void test_number_of_values(void **state) {
    (void)state;
    assert_int_equal(read_copies("[", "1,", JSON_NODES - 2, "1]"), JSON_READ);
    assert_int_equal(read_copies("[", "1,", JSON_NODES - 1, "1]"), JSON_TOO_MANY);
    /* Names that are all the same, or all nearly so. */
    assert_int_equal(read_copies("{", "\"name\":1,", JSON_NODES / 2 - 2, "\"x\":1}"), JSON_READ);
    assert_int_equal(read_copies("[", "5e-324,", JSON_NODES / 4, "1]"), JSON_READ);
}

static void test_find(void **state) {
    (void)state;
    char body[] = "{\"a\":{\"b\":1},\"b\":[2,3],\"\\u0061\":[],\"c\":\"x\\ny\"}";
    json_document document;
    assert_int_equal(json_document_read(&document, body, sizeof body - 1), JSON_READ);
    assert_int_equal(json_find(&document, document.nodes, "a")->kind, JSON_ARRAY);
    assert_int_equal(json_find(&document, document.nodes, "b")->kind, JSON_ARRAY);
    assert_int_equal(json_find(&document, document.nodes, "c")->size, 3);
    assert_null(json_find(&document, document.nodes, "B"));
    assert_null(json_find(&document, document.nodes, ""));
    json_document_free(&document);
}

/* Every place of a special byte in a long string is found. */
static void test_long_strings(void **state) {
    (void)state;
    static const char *const special[] = {"\\", "\"", "\n", "\x1f", "\xff"};
    for (size_t at = 0; at < 300; at++) {
        for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
            char body[302];
            memset(body, 'a', sizeof body);
            body[0] = body[301] = '"';
            body[1 + at] = special[i][0];
            json_document document;
            const json_result result = json_document_read(&document, body, sizeof body);
            assert_int_equal(result, i == 4 ? JSON_UNREADABLE : JSON_INVALID);
            if (result == JSON_INVALID && i != 0)
                assert_int_equal(document.position, i == 1 ? at + 2 : at + 1);
            json_document_free(&document);
        }
    }
}

/* A photo of 20 MB: no more than a look for the end of its string. */
static void test_large_string(void **state) {
    (void)state;
    const size_t size = 27000000;
    static const char begin[] = "{\"image\":\"", end[] = "\",\"max_keypoints\":5}";
    char *body = malloc(size);
    assert_non_null(body);
    double best = 1e9;
    for (int run = 0; run < 5; run++) {
        memset(body, 'A', size);
        memcpy(body, begin, sizeof begin - 1);
        memcpy(body + size - (sizeof end - 1), end, sizeof end - 1);
        json_document document;
        const double start = clock_ms();
        assert_int_equal(json_document_read(&document, body, size), JSON_READ);
        const double spent = clock_ms() - start;
        best = spent < best ? spent : best;
        assert_int_equal(json_find(&document, document.nodes, "image")->size, size - sizeof begin - sizeof end + 2);
        json_document_free(&document);
    }
    print_message("27 MB of JSON in %.2f ms\n", best);
    assert_true(best < (getenv("LENSING_STRICT") != NULL ? 10 : 2000)); /* a sanitizer takes its time */
    free(body);
}

int main(int argument_count, char **arguments) {
    cases_path = argument_count > 1 ? arguments[1] : "json_cases.txt";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases), cmocka_unit_test(test_depth),        cmocka_unit_test(test_number_of_values),
        cmocka_unit_test(test_find),  cmocka_unit_test(test_long_strings), cmocka_unit_test(test_large_string),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
